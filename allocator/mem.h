/* SPDX-License-Identifier: MIT */
#ifndef NUMASLAB_MEM_H
#define NUMASLAB_MEM_H

/*
 * Where memory comes in, where it landed, and how it goes back.  Placement is decided here; which
 * slab is wanted is decided in refill.c.
 */

#include "allocator/slab.h"
#include "allocator/topology.h"

#define GRANULE	     (UNIT_SIZE / 16) /* a bit of slab.resident */
#define RETAIN_FLOOR ((size_t)512 << 10)

/* Bytes, process-wide; relaxed: they steer, they prove nothing. */
struct mem {
	_Atomic size_t held;  /* populated and not given back: slabs, and large blocks' sizes */
	_Atomic size_t peak;  /* of held */
	_Atomic size_t dirty; /* the part of held that lies in free spans */
	_Atomic size_t idle;  /* the part of held in empty slabs that heaps keep */
	_Atomic size_t kept;  /* the large block kept aside (large.c), part of neither */
	_Atomic size_t extra; /* what may stay dirty beyond the floor: see mem_regret() */
	_Atomic uint64_t regret_ms;
	_Atomic bool unmap;   /* address space or commitment is short: see mem_give_back() */
	_Atomic bool altered; /* the program changed mappings: large blocks are laid afresh */
};

extern hidden_ struct mem mem;

/*
 * Whether free memory loses its mapping too.  Set where the machine counts what is mapped
 * (overcommit_memory=2), and once a limit refused a mapping; never reset.
 */
inline_ bool mem_unmaps(void)
{
	return unlikely(atomic_load_explicit(&mem.unmap, memory_order_relaxed));
}

/* Asks the system how it counts; at start. */
void mem_learn_commit(void);

/* A range of a free span goes back to the system; false: refused. */
bool mem_give_back(void *at, size_t bytes);

void mem_grow(size_t bytes);
void mem_shrink(size_t bytes);

/* How much may stay dirty: max(512 KiB, peak / 128), and more for a program that proved to cycle.
 */
size_t mem_allowance(void);

/* Memory that was given back a moment ago is wanted again: keep more of it next time. */
void mem_regret(size_t bytes);

/*
 * Brings in what is not resident of the first `bytes` of s's span, wanted on node index `want`.
 * Returns the index where it landed (== want after move_pages if need be), or -1: no memory, or
 * `strict` and it would have landed elsewhere; then nothing of this step stays.
 * Called with no lock, or with the lock of a pool: never sleeps on ours.
 */
int mem_bring(struct slab *s, size_t bytes, unsigned want, bool strict);

/* The same for the granules of mask in a one-unit slab. */
int mem_bring_mask(struct slab *s, uint16_t mask, unsigned want, bool strict);

/*
 * Where the block's page lies now, as an index; -1: not known (nobody asks, or it cannot be told).
 * Balancing and migratepages(8) move pages behind our back: asked again when memory is reused.
 */
int mem_look_again(const void *block);

/* Bytes of the span that are resident, as we populated them. */
size_t mem_resident(const struct slab *s);

/* A unit became wholly resident; memory of one is about to go back (huge.c). */
void huge_filled(const struct slab *unit);
void huge_leaves(const struct slab *unit, bool was_full);

/* Gives back all of the span (or granules of a one-unit slab); bytes returned to the system. */
size_t mem_discard(struct slab *s);
size_t mem_discard_mask(struct slab *s, uint16_t mask);

#endif
