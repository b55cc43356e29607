/* SPDX-License-Identifier: MIT */
#include "allocator/heap.h"

/*
 * Free pages inside slabs of large blocks (>= 1 KiB, at most 64 to a unit) go back to the system.
 * Blocks that touch such a page leave the free list and are remembered in .hidden, a bit each, so
 * that nothing is ever read from a page that is gone.  Done only where much of the class is free:
 * a program that replaces its blocks one by one never pays for it.
 */

#define HIDE_FREE_MIN ((int64_t)128 << 10) /* bytes free in the node's slabs of the class */

static bool class_is_sparse(const struct slab *s)
{
	_Atomic uint64_t *count = pools[s->node].count[s->cls];
	int64_t slots = (int64_t)atomic_load_explicit(&count[COUNT_slots], memory_order_relaxed);
	int64_t used = (int64_t)atomic_load_explicit(&count[COUNT_used], memory_order_relaxed);
	int64_t spare = slots - used;

	return spare * 5 >= slots && spare * (int64_t)s->size >= HIDE_FREE_MIN;
}

static unsigned block_index(const struct slab *s, uintptr_t block)
{
	return (unsigned)((block - slab_addr(s)) / s->size);
}

/* Blocks on the free list, a bit each. */
static uint64_t free_mask(const struct slab *s)
{
	uint64_t mask = 0;
	unsigned n = 0;

	for (uintptr_t at = s->free; slab_has(s, at) && n < 64; n++) {
		mask |= (uint64_t)1 << block_index(s, at);
		at = link_read((const void *)at);
	}
	return mask;
}

/* Granules that lie wholly in blocks of the mask, or beyond the extended ones. */
static uint16_t idle_granules(const struct slab *s, uint64_t blocks)
{
	size_t page = max_size(GRANULE, os_page_size);
	uint16_t mask = UINT16_MAX;

	for (unsigned i = 0; i < s->extended; i++) {
		if (blocks >> i & 1)
			continue;
		size_t lo = round_down((size_t)i * s->size, page) / GRANULE;
		size_t hi = round_up((size_t)(i + 1) * s->size, page) / GRANULE;

		mask &= (uint16_t) ~(((1u << (hi - lo)) - 1) << lo);
	}
	return mask & s->resident;
}

/* Blocks of the mask that touch a granule of gone. */
static uint64_t touching(const struct slab *s, uint64_t blocks, uint16_t gone)
{
	uint64_t touch = 0;

	for (uint64_t rest = blocks; rest; rest &= rest - 1) {
		unsigned i = (unsigned)__builtin_ctzll(rest);
		size_t lo = (size_t)i * s->size / GRANULE;
		size_t hi = ((size_t)(i + 1) * s->size - 1) / GRANULE;

		if (gone & (uint16_t)(((1u << (hi - lo + 1)) - 1) << lo))
			touch |= (uint64_t)1 << i;
	}
	return touch;
}

static void relink(struct slab *s, uint64_t blocks)
{
	s->free = slab_end(s);
	while (blocks) {
		unsigned i = log2_floor(blocks);
		uintptr_t block = slab_addr(s) + (size_t)i * s->size;

		link_write((void *)block, s->free);
		s->free = block;
		blocks &= ~((uint64_t)1 << i);
	}
}

void slab_hide(struct slab *s)
{
	if (s->units != 1 || s->capacity > 64 || !class_is_sparse(s))
		return;
	uint64_t blocks = free_mask(s);
	uint16_t gone = idle_granules(s, blocks | s->hidden);
	uint64_t hide = touching(s, blocks, gone);

	if (!hide)
		return;
	relink(s, blocks & ~hide);
	s->hidden |= hide;
	size_t bytes = mem_discard_mask(s, gone);

	tally(s->node, s->cls, COUNT_held, -(int64_t)bytes);
	tally(s->node, s->cls, COUNT_released, (int64_t)bytes);
}

/* The granules of the hidden blocks come back, and the blocks as a list; 0: no memory. */
uintptr_t slab_unhide(struct slab *s, unsigned *count)
{
	uint16_t mask = 0;
	size_t before = mem_resident(s);
	uintptr_t rest = s->free, first;

	for (uint64_t left = s->hidden; left; left &= left - 1) {
		unsigned i = (unsigned)__builtin_ctzll(left);
		size_t lo = (size_t)i * s->size / GRANULE;
		size_t hi = ((size_t)(i + 1) * s->size - 1) / GRANULE;

		mask |= (uint16_t)(((1u << (hi - lo + 1)) - 1) << lo);
	}
	int landed = mem_bring_mask(s, mask, s->node, true);
	tally(s->node, s->cls, COUNT_held, (int64_t)(mem_resident(s) - before));
	if (landed < 0)
		return 0;
	relink(s, s->hidden);
	first = s->free;
	s->free = rest;
	*count = (unsigned)__builtin_popcountll(s->hidden);
	s->hidden = 0;
	return first;
}
