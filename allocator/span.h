/* SPDX-License-Identifier: MIT */
#ifndef NUMASLAB_SPAN_H
#define NUMASLAB_SPAN_H

/*
 * A window's units: free spans by size (two levels, as TLSF: Masmano et al., ECRTS 2004), dirty
 * ones apart from clean ones, and a frontier beyond which nothing was ever used.
 *
 *	units of the window = allocated + free dirty + free clean + (end - top)
 *
 * A free span's length stands in its first unit (.units), its first unit's distance in its last
 * (.head_units).  Neighbours of the same kind are one span.  All under the lock of the pool that
 * the window belongs to; none makes a system call but window_grow (mprotect).
 */

#include "allocator/mem.h"

#define SPAN_BINS 92u

struct span_bins {
	uint64_t map[2];
	struct slab *head[SPAN_BINS];
};

struct window {
	struct slab *first; /* descriptor of its first unit */
	size_t units;
	_Atomic size_t top; /* the frontier; also read without the lock (pools_reach) */
	size_t committed;   /* units that are mapped, >= top */
	size_t tabled;	    /* units whose descriptors are */
	bool no_huge;
	int policy, node; /* MPOL_* and node number of its memory; -1: none */
	struct span_bins dirty, clean;
};

/* Pure: the bin that a span of n >= 1 units lies in, and the first whose spans all have n. */
unsigned span_bin_of(size_t n);
unsigned span_bin_for(size_t n);

/* Where a span came from: kept memory, memory given back before, memory never used. */
enum span_found { SPAN_FOUND_DIRTY, SPAN_FOUND_CLEAN, SPAN_FOUND_NEW };

/*
 * A span of exactly n units, its address a multiple of `align` units (a power of two); state
 * SPAN_BUSY, .dirty as found, .units set; NULL: the window is full or the system refuses.
 * A dirty one is taken only if its first unit was on node index `near`, unless that is SPAN_ANY.
 */
#define SPAN_ANY UINT32_MAX
struct slab *span_take(struct window *w, size_t n, size_t align, unsigned near,
		       enum span_found *found);

/* Back to the free ones, dirty as s->dirty says. */
void span_put(struct window *w, struct slab *s);

/* The largest dirty span, off the list (SPAN_BUSY); NULL: none. */
struct slab *span_pop_dirty(struct window *w);

/*
 * Grows an allocated span in place to n units, if what follows is one free span or beyond the
 * frontier; false: it is not.  What is dirty must be of s's node.
 */
bool span_extend(struct window *w, struct slab *s, size_t n, enum span_found *found);

/* Unmaps all that is free and clean (mem.unmap is set); span_restore() brings it back. */
void span_unmap_clean(struct window *w);

/* A free span whose mapping differs from its neighbours' (policy, locks) is mapped afresh. */
bool span_remap(const struct window *w, struct slab *s);

/* A span taken as clean has a mapping again, if it lost it; false: refused.  No lock needed. */
bool span_restore(const struct window *w, struct slab *s);

/* Cuts an allocated span to n units; the rest becomes a BUSY span, returned. */
struct slab *span_cut(struct slab *s, size_t n);

#endif
