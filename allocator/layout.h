/* SPDX-License-Identifier: MIT */
#ifndef NUMASLAB_LAYOUT_H
#define NUMASLAB_LAYOUT_H

/*
 * Address arithmetic, pure; the same words resolve an address from inside and from outside.
 *
 *	base                                base + span
 *	| window 0 | window 1 | ... | large window |      windows of 1 << window_shift bytes
 *	unit u of 64 KiB at base + (u << 16), its descriptor at table + u * SLAB_DESC_SIZE
 *
 * Window n is where slabs meant for node index n live; the last one holds the large blocks.
 */

#include "allocator/sizeclass.h"

#define SLAB_DESC_SHIFT 7
#define SLAB_DESC_SIZE	((size_t)1 << SLAB_DESC_SHIFT)

/*
 * All that the fast paths read besides the heap, together.  Written at start: the limits stay 0
 * until the library's constructor has run, small_limit where there are several nodes (or checks).
 */
struct layout {
	size_t small_limit;  /* the fast path of one node takes sizes up to here */
	size_t medium_limit; /* the guarded one of several */
	uintptr_t base;
	uintptr_t fast_span; /* free's fast path takes so much: span, or 0 to have all looked at */
	uintptr_t span;	     /* bytes in all windows */
	uintptr_t table;     /* descriptor of unit 0 */
	long where_offset;   /* from the thread pointer: the rseq word that says where we run */
	unsigned window_shift;
	unsigned window_count; /* nodes + 1 */
} cache_aligned;

extern hidden_ struct layout layout;

inline_ bool layout_owns(const struct layout *l, uintptr_t addr)
{
	return addr - l->base < l->span;
}

/* The three below: layout_owns(addr). */
inline_ unsigned layout_window_of(const struct layout *l, uintptr_t addr)
{
	return (unsigned)((addr - l->base) >> l->window_shift);
}

inline_ uintptr_t layout_unit_of(const struct layout *l, uintptr_t addr)
{
	return (addr - l->base) >> UNIT_SHIFT;
}

inline_ uintptr_t layout_desc_of(const struct layout *l, uintptr_t addr)
{
	return l->table + (layout_unit_of(l, addr) << SLAB_DESC_SHIFT);
}

inline_ uintptr_t layout_addr_of(const struct layout *l, uintptr_t desc)
{
	return l->base + (((desc - l->table) >> SLAB_DESC_SHIFT) << UNIT_SHIFT);
}

#endif
