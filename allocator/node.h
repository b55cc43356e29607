/* SPDX-License-Identifier: MIT */
#ifndef NUMASLAB_NODE_H
#define NUMASLAB_NODE_H

/*
 * A node's pool: its window of memory, the partial slabs that lie on it, its counters.  One more
 * pool, after the nodes', has the large blocks.
 *
 * Under .lock: the window, the partial lists, the change of a slab to and from LISTED.  Counters
 * are added to with relaxed atomics from anywhere.
 */

#include "allocator/lock.h"
#include "allocator/span.h"
#include "telemetry/publish.h"

struct pool {
	struct lock lock cache_aligned;
	unsigned index;
	_Atomic uint64_t full_until_ms; /* the node had no memory; 0: not known to be full */
	_Atomic uint32_t backoff_ms;
	struct window window;
	struct heap *idle_heaps;
	struct slab *partial[CLASS_COUNT], *partial_last[CLASS_COUNT];
	_Atomic uint32_t partial_count[CLASS_COUNT]; /* read without the lock as a hint */
	_Atomic uint64_t late[CLASS_COUNT];	     /* sums of the slabs' .late */
	/* What changes most of a class shares a line, in the mirror too. */
	_Atomic uint64_t count[CLASS_COUNT][TELEMETRY_ROW_WORDS] cache_aligned;
};

extern hidden_ struct pool *pools; /* topology.count + 1 */

inline_ struct pool *pool_large(void)
{
	return &pools[topology.count];
}

inline_ void tally(unsigned index, unsigned cls, enum counter c, int64_t delta)
{
	_Atomic uint64_t *count = &pools[index].count[cls][c];

	count_add(count, (uint64_t)delta);
	telemetry_mirror(index, cls, c, count);
}

/* The owner saw so many frees that the counters learn of later. */
inline_ void slab_set_late(struct slab *s, unsigned late)
{
	int64_t more = (int64_t)late - s->late;

	if (more)
		count_add(&pools[s->node].late[s->cls], (uint64_t)more);
	s->late = (uint16_t)late;
}

struct tally_item {
	enum counter c;
	int64_t by;
};

/* Two to four counters of a row at once: one barrier for what the mirror gets. */
inline_ void tally_items(unsigned index, unsigned cls, const struct tally_item *item, unsigned n)
{
	_Atomic uint64_t *truth = pools[index].count[cls];

	for (unsigned i = 0; i < n; i++)
		if (item[i].by)
			count_add(&truth[item[i].c], (uint64_t)item[i].by);
	uint64_t *row = telemetry_row(index, cls);

	if (likely(!row))
		return;
	if (n == 2)
		telemetry_store_two(row, truth, item[0].c, item[1].c);
	else
		telemetry_store_four(row, truth, item[0].c, item[1].c, item[2].c, item[n - 1].c);
}

#define tally_row(index, cls, ...)                                                                 \
	tally_items(index, cls, (const struct tally_item[]){__VA_ARGS__},                          \
		    sizeof((const struct tally_item[]){__VA_ARGS__}) / sizeof(struct tally_item))

/* A slab's change of state, all that changes most often: constants, so that little is done. */
inline_ void tally_state(unsigned index, unsigned cls, int64_t active, int64_t partial,
			 int64_t full, int64_t used)
{
	_Atomic uint64_t *truth = pools[index].count[cls];

	if (active)
		count_add(&truth[COUNT_active], (uint64_t)active);
	if (partial)
		count_add(&truth[COUNT_partial], (uint64_t)partial);
	if (full)
		count_add(&truth[COUNT_full], (uint64_t)full);
	if (used)
		count_add(&truth[COUNT_used], (uint64_t)used);
	uint64_t *row = telemetry_row(index, cls);

	if (unlikely(row))
		telemetry_store_state(row, truth);
}

/* What an OWNED slab uses, as its owner counts it now. */
inline_ void tally_used(const struct slab *s, int64_t by)
{
	_Atomic uint64_t *truth = pools[s->node].count[s->cls];

	count_add(&truth[COUNT_used], (uint64_t)by);
	uint64_t *row = telemetry_row(s->node, s->cls);

	if (unlikely(row))
		telemetry_store_used(row, truth, s);
}

/* And what the bin has that was filled from it. */
inline_ void tally_bin(const struct slab *s, int64_t by, int64_t cached)
{
	_Atomic uint64_t *truth = pools[s->node].count[s->cls];

	count_add(&truth[COUNT_used], (uint64_t)by);
	count_add(&truth[COUNT_cached], (uint64_t)cached);
	uint64_t *row = telemetry_row(s->node, s->cls);

	if (unlikely(row))
		telemetry_store_bin(row, truth, s);
}

/* A step more was pushed onto a LISTED slab of the node and class; it may be anything by now. */
inline_ void tally_pushed(unsigned index, unsigned cls, const struct slab *s, unsigned step)
{
	_Atomic uint64_t *truth = pools[index].count[cls];

	count_add(&truth[COUNT_used], -(uint64_t)step);
	uint64_t *row = telemetry_row(index, cls);

	if (unlikely(row))
		telemetry_store_pushed(row, truth, s);
}

/* Chooses the windows' place (and looks whether it is free), sets up `layout` and the pools; false:
 * no memory. */
bool pools_init(uint64_t random, bool look);

/* Whether a window has come as far as addr, which lies in it: its descriptor can be read. */
bool pools_reach(uintptr_t addr);

/* Memory of the allocator's own, zero, for ever (heaps, pools); NULL: none. */
void *meta_alloc(size_t bytes);
void meta_fork_prepare(void);
void meta_fork_parent(void);
void meta_fork_child(void);

/*
 * A new OWNED slab of cls from the window of `index`, its first `bytes` populated there (any
 * landing is accepted unless strict).  NULL: the node (strict) or the machine has no memory.
 */
struct slab *pool_new_slab(unsigned index, unsigned cls, size_t bytes, bool strict);

/* A bit for each node (mod 64) that ran out of memory and got none back: a hint. */
extern hidden_ _Atomic uint64_t pools_scarce;

/* Each free block counts now: none waits until there are a few (slab.h). */
inline_ bool pools_are_scarce(void)
{
	return unlikely(atomic_load_explicit(&pools_scarce, memory_order_relaxed));
}

/*
 * FULL slabs with a few freed blocks go to their nodes' lists; true: there were any.  And the same
 * where it is worth it: a node ran out, and it was not done just now (gather.c).
 */
bool pools_gather(void);
bool pools_gather_due(void);

/* Whether the node ran out of memory a moment ago, so that asking again is idle. */
bool pool_is_full(struct pool *p);
void pool_set_full(struct pool *p);

/*
 * A slab of which nothing is out goes back to its window; it is on no list and has no owner.
 * Its counters must be settled but for the slab's own: `was` names the one to take it from.
 */
void pool_free_slab(struct slab *s, enum counter was);

/* An OWNED slab, its owner calling, was moved to another node: filed there from now on. */
void slab_refile(struct slab *s, unsigned index);

/*
 * Puts an owned slab (owner already NULL), counted as `was`, on its node's list, or frees it if
 * nothing is out.
 */
void pool_list_slab(struct slab *s, enum counter was);

/* A block was the last one out of a LISTED slab: frees it, unless somebody took it meanwhile. */
void pool_reap_slab(struct slab *s);

/* Takes a partial slab of cls off the node's list, OWNED now; NULL: none. */
struct slab *pool_take_partial(struct pool *p, unsigned cls);

/* span_take() with memory under it; what is free elsewhere is unmapped if the system refuses. */
struct slab *pool_take_span(struct pool *p, size_t units, size_t align, unsigned near,
			    bool *was_clean);
void pools_reclaim(void);

/* Gives memory back until no more than `keep` bytes of free spans stay; how much went. */
size_t pools_purge(unsigned first, size_t keep);

/* After each free of a span. */
inline_ void pools_settle(unsigned first)
{
	size_t allowed = mem_allowance();

	if (unlikely(atomic_load_explicit(&mem.dirty, memory_order_relaxed) > allowed))
		pools_purge(first, allowed - allowed / 4);
}

#endif
