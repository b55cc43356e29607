/* SPDX-License-Identifier: MIT */
#include "allocator/heap.h"

/*
 * Free pages inside slabs of large blocks (>= 1 KiB, at most 64 to a slab) go back to the system.
 * Blocks that touch such a page leave the free list and are remembered in .hidden, a bit each, so
 * that nothing is ever read from a page that is gone.  Done only where much of the class is free:
 * a program that replaces its blocks one by one never pays for it.
 */

#define HIDE_FREE_MIN ((int64_t)128 << 10) /* bytes free in the node's slabs of the class */

bool slab_is_sparse(const struct slab *s)
{
	const struct pool *p = &pools[s->node];
	const _Atomic uint64_t *count = p->count[s->cls];
	int64_t slots = (int64_t)atomic_load_explicit(&count[COUNT_slots], memory_order_relaxed);
	int64_t used = (int64_t)atomic_load_explicit(&count[COUNT_used], memory_order_relaxed);
	int64_t late = (int64_t)atomic_load_explicit(&p->late[s->cls], memory_order_relaxed);
	int64_t own = (int64_t)s->tallied - s->late - slab_used(s);
	int64_t spare = slots - used + late + own;

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

/* A bit for each granule of a slab of up to eight units. */
typedef unsigned __int128 granules;

static granules granule_range(size_t lo, size_t hi)
{
	granules below_hi = hi >= 128 ? ~(granules)0 : ((granules)1 << hi) - 1;

	return below_hi & ~(((granules)1 << lo) - 1);
}

/* The pages that a block touches, as granules. */
static granules block_granules(const struct slab *s, unsigned i)
{
	size_t page = max_size(GRANULE, os_page_size);

	return granule_range(round_down((size_t)i * s->size, page) / GRANULE,
			     round_up((size_t)(i + 1) * s->size, page) / GRANULE);
}

static granules resident_granules(const struct slab *s)
{
	granules mask = 0;

	for (unsigned i = 0; i < s->units; i++)
		mask |= (granules)s[i].resident << (16 * i);
	return mask;
}

/* Granules that lie wholly in blocks of the mask, or beyond the extended ones. */
static granules idle_granules(const struct slab *s, uint64_t blocks)
{
	granules mask = resident_granules(s);

	for (unsigned i = 0; i < s->extended; i++)
		if (!(blocks >> i & 1))
			mask &= ~block_granules(s, i);
	return mask;
}

/* Blocks of the mask that touch a granule of gone. */
static uint64_t touching(const struct slab *s, uint64_t blocks, granules gone)
{
	uint64_t touch = 0;

	for (uint64_t rest = blocks; rest; rest &= rest - 1) {
		unsigned i = (unsigned)__builtin_ctzll(rest);

		if (gone & block_granules(s, i))
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
	if (s->capacity > 64)
		return;
	uint64_t blocks = free_mask(s);
	granules gone = idle_granules(s, blocks | s->hidden);
	uint64_t hide = touching(s, blocks, gone);
	size_t bytes = 0;

	if (!hide)
		return;
	relink(s, blocks & ~hide);
	s->hidden |= hide;
	for (unsigned i = 0; i < s->units; i++)
		bytes += mem_discard_mask(s + i, (uint16_t)(gone >> (16 * i)));
	tally(s->node, s->cls, COUNT_held, -(int64_t)bytes);
	tally(s->node, s->cls, COUNT_released, (int64_t)bytes);
}

/* The pages of the hidden blocks of mask; false: no memory. */
static bool bring_blocks(struct slab *s, uint64_t blocks)
{
	granules mask = 0;
	size_t before = mem_resident(s);
	int landed = 0;

	for (uint64_t left = blocks; left; left &= left - 1)
		mask |= block_granules(s, (unsigned)__builtin_ctzll(left));
	for (unsigned i = 0; i < s->units && landed >= 0; i++)
		landed = mem_bring_mask(s + i, (uint16_t)(mask >> (16 * i)), s->node, true);
	tally(s->node, s->cls, COUNT_held, (int64_t)(mem_resident(s) - before));
	return landed >= 0;
}

/* Hidden blocks come back as a list: all of them, or one if there is no memory for more; or 0. */
uintptr_t slab_unhide(struct slab *s, unsigned *count)
{
	uint64_t blocks = s->hidden;
	uintptr_t rest = s->free, first;

	if (!bring_blocks(s, blocks)) {
		blocks &= -blocks;
		if (!bring_blocks(s, blocks))
			return 0;
	}
	relink(s, blocks);
	first = s->free;
	s->free = rest;
	*count = (unsigned)__builtin_popcountll(blocks);
	s->hidden &= ~blocks;
	return first;
}

/*
 * malloc_trim: partial slabs that nobody owns.  What others freed counts as free once it is on
 * the slab's own list.
 */
static void trim_slab(struct slab *s)
{
	unsigned n = 0;
	uintptr_t first = slab_take_remote(s, &n), last = first;

	if (first) {
		for (unsigned i = 1; i < n && slab_has(s, link_read((void *)last)); i++)
			last = link_read((void *)last);
		link_write((void *)last, s->free);
		s->free = first;
		slab_set_used(s, slab_used(s) - n, 1);
		tally(s->node, s->cls, COUNT_remote_in, n);
	}
	slab_settle(s);
	slab_hide(s);
	pool_list_slab(s, COUNT_active);
}

void pool_trim_partial(struct pool *p)
{
	for (unsigned cls = class_of(HIDE_SIZE_MIN); cls < CLASS_COUNT; cls++) {
		struct slab *taken = NULL, *s;

		while ((s = pool_take_partial(p, cls)) != NULL) {
			s->next = taken;
			taken = s;
		}
		while ((s = taken) != NULL) {
			taken = s->next;
			trim_slab(s);
		}
	}
}
