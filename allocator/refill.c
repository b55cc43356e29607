/* SPDX-License-Identifier: MIT */
#include "allocator/heap.h"
#include "allocator/observe.h"

#include <limits.h>

/*
 * The ladder (Linux mm/slub.c, "partial slabs of this node first"; numbers as the counters'):
 *
 *	1 own		what the heap's own slabs have: freed here, freed by others, not yet
 *			handed out
 *	2 node_partial	a slab of this node that nobody owns and that has room
 *	3 node_new	a new slab on this node, and only there
 *	4 any_partial	another node's partial slab, nearest first
 *	5 any_new	a new slab wherever there is memory, nearest first
 *
 * Why 4 before 5: on an exhausted node the other order opens a fresh slab elsewhere for every
 * refill, and parks it on a list that nobody reads.
 */

#define TAKE_TRIES   8	 /* partial slabs looked at that turn out to have nothing */
#define SPARE	     2	 /* partial slabs that a node keeps in the first round of step 4 */
#define CACHED_SLACK 32	 /* blocks that a bin may be counted to have and has not */
#define OFTEN_CLOCK  64	 /* refills of steps 1 and 2 between two looks at the clock */
#define OFTEN_TOLD   256 /* and until the node's counters learn of them */
#define TOP_UP_MIN   8	 /* blocks for which a bin is filled again while other slabs have some */
#define BOLD_FILLED  4	 /* slabs of a class used up, after which memory comes in larger steps */
#define SHY_BLOCKS   4	 /* of a fresh slab that are threaded first, doubling from there */
#define BOLD_STEP    (UNIT_SIZE / 4)

/* The node's counters learn what the slab uses and the bin has. */
noinline_ static void bin_tally(struct heap *h, struct slab *s, unsigned cached)
{
	struct class_heap *c = &h->cls[s->cls];

	if (unlikely(c->cached_node != s->node))
		heap_set_cached(h, s, cached);
	int64_t more = (int64_t)cached - c->cached, by = slab_retally(s);

	c->cached = (uint16_t)cached;
	if (by && more)
		tally_bin(s, by, more);
	else if (by)
		tally_used(s, by);
	else if (more)
		tally(s->node, s->cls, COUNT_cached, more);
}

/*
 * Blocks go from the slab to the bin, which has `cached` of them then: counts it all, and when to
 * look whether the slab is empty again.  What was counted as cached may stay a little more than
 * there is: bins of a few blocks differ all the time.
 */
static void bin_account(struct heap *h, struct slab *s, unsigned used, unsigned cached)
{
	const struct class_heap *c = &h->cls[s->cls];
	unsigned left = (unsigned)max_size(used - cached, s->patience ? 1u << s->patience : 1);

	if (unlikely(s->idle))
		left = slab_idle_left(cached);
	slab_set_used(s, used, left);
	bool same = c->cached_node == s->node && (unsigned)c->cached - cached < CACHED_SLACK;

	if (likely(slab_is_told(s, used) && same))
		return;
	slab_set_late(s, 0);
	if (used != s->tallied || !same)
		bin_tally(h, s, cached);
}

/* How far to populate: a page or double what there is, at most a quarter of a unit more. */
static size_t bring_bytes(const struct class_heap *c, const struct slab *s)
{
	size_t have = (size_t)s->extended * s->size;
	size_t more = c->filled >= BOLD_FILLED ? BOLD_STEP : min_size(have, BOLD_STEP);

	more = max_size(more, max_size(s->size, min_size(s->size * SHY_BLOCKS, GRANULE)));
	return min_size(have + more, slab_bytes(s));
}

static void tally_held(const struct slab *s, size_t before)
{
	size_t after = mem_resident(s);

	if (after != before)
		tally(s->node, s->cls, COUNT_held, (int64_t)(after - before));
}

/*
 * Never handed out blocks, still to be threaded; 0: none, or no memory (where the slab lies, and
 * only there).
 */
static uintptr_t take_fresh(struct heap *h, struct slab *s, unsigned *n)
{
	size_t before = mem_resident(s), bytes = bring_bytes(&h->cls[s->cls], s);

	if (s->extended == s->capacity)
		return 0;
	if (mem_bring(s, bytes, s->node, true) < 0) {
		/* One block's worth before we give up. */
		bytes = (size_t)(s->extended + 1) * s->size;
		if (mem_bring(s, bytes, s->node, true) < 0)
			bytes = 0;
	}
	tally_held(s, before);
	if (bytes == 0)
		pool_set_full(&pools[s->node]);
	if (bytes == 0)
		return 0;
	uintptr_t first = slab_extend(s, bytes, n);
	if (s->extended == s->capacity && h->cls[s->cls].filled < BOLD_FILLED)
		h->cls[s->cls].filled++;
	return first;
}

/*
 * The bin has just given its last block: what was freed here meanwhile fills it again, so that
 * the next malloc finds it full.  A refill of step 1.  A slab's first page is threaded as the few
 * blocks that are used of it go round: the longer the list, the rarer this.  A slab with few waits
 * behind the others, which have gathered some: each refill is a slow malloc.
 */
void bin_top_up(struct heap *h, struct slab *s)
{
	struct class_heap *c = &h->cls[s->cls];
	unsigned n = 0, used = slab_used(s);
	uintptr_t first = 0;
	bool fresh;

	if (link_is_end(s->free))
		return;
	if (c->partial.first && s->extended - used < TOP_UP_MIN && !s->hidden && !s->idle) {
		c->current = NULL;
		slab_set_used(s, used, slab_look_step(s, used));
		heap_partial_add(h, s);
		return;
	}
	if ((size_t)s->extended * s->size < GRANULE && s->size < GRANULE / SHY_BLOCKS)
		first = take_fresh(h, s, &n);
	fresh = first != 0;
	if (!fresh)
		first = slab_take_free(s, &n);
	bin_account(h, s, used + n, n);
	if (fresh)
		slab_thread(s, first, n);
	h->bin[s->cls] = first;
	c->own++;
}

/*
 * Memory about to be used again may have moved: where the kernel is to place it, and where a slab
 * was idle for a while.
 */
static void look_where(struct slab *s)
{
	if (tunables.placement != PLACEMENT_KERNEL && !s->idle)
		return;
	uintptr_t block = link_is_end(s->free) ? slab_addr(s) : s->free;
	int index = mem_look_again((void *)block);

	if (index >= 0 && index != s->node)
		slab_refile(s, (unsigned)index);
}

/* Blocks that were free already: freed here, or by others.  NULL: there are none. */
static void *take_freed(struct heap *h, struct slab *s)
{
	if (topology.guarded)
		look_where(s);
	unsigned n = 0, used = slab_used(s);
	uintptr_t first = slab_take_free(s, &n);

	if (first)
		used += n;
	else if ((first = slab_take_remote(s, &n)) == 0)
		return NULL;
	else if (likely(s->node == h->index))
		h->cls[s->cls].remote_in += n;
	else
		tally(s->node, s->cls, COUNT_remote_in, n);
	bin_account(h, s, used, n - 1);
	h->bin[s->cls] = bin_after(s, first);
	return (void *)first;
}

/* Blocks whose memory must come in first.  NULL: there are none, or no memory. */
static void *take_rest(struct heap *h, struct slab *s)
{
	unsigned n = 0, used = slab_used(s);
	uintptr_t first = s->hidden ? slab_unhide(s, &n) : 0;

	bool fresh = !first;

	if (fresh)
		first = take_fresh(h, s, &n);
	if (!first)
		return NULL;
	if (s->idle)
		slab_set_busy(s);
	bin_account(h, s, used + n, n - 1);
	/* Last: a locked instruction of the counters would wait for stores to cold memory. */
	if (fresh)
		slab_thread(s, first, n);
	h->bin[s->cls] = bin_after(s, first);
	return (void *)first;
}

/* Step 1.  A slab to be extended waits in .room while others have freed blocks. */
static void *refill_own(struct heap *h, struct class_heap *c)
{
	bool sought = false;

	for (;;) {
		struct slab *s = c->current;

		if (s) {
			bool rest = s->hidden || s->extended < s->capacity;
			void *block = take_freed(h, s);

			if (block)
				return block;
			if (rest && c->partial.first && !c->room) {
				c->room = s;
				c->current = NULL;
			} else if (rest && (block = take_rest(h, s)) != NULL) {
				return block;
			} else {
				heap_spend_current(h, c);
			}
		}
		if (c->partial.first) {
			c->current = c->partial.first;
			heap_unlink(h, c->current);
		} else if (c->room) {
			c->current = c->room;
			c->room = NULL;
		} else if (c->spent.first) {
			if (sought || !heap_find_spent(h, c))
				heap_retire_spent(h, c);
			sought = true;
		} else {
			return NULL;
		}
	}
}

/* A slab that was nobody's becomes the heap's current one. */
static void *refill_from(struct heap *h, struct class_heap *c, struct slab *s)
{
	void *block;

	atomic_store_explicit(&s->owner, heap_tag(h), memory_order_relaxed);
	c->current = s;
	if ((block = take_freed(h, s)) || (block = take_rest(h, s)))
		return block;
	heap_spend_current(h, c);
	return NULL;
}

/* Steps 2 and 4, one node's list. */
static void *refill_partial(struct heap *h, unsigned cls, struct pool *p)
{
	for (int tries = TAKE_TRIES; tries > 0; tries--) {
		struct slab *s = pool_take_partial(p, cls);

		if (!s)
			return NULL;
		void *block = refill_from(h, &h->cls[cls], s);
		if (block)
			return block;
	}
	return NULL;
}

/* Steps 3 and 5, one node's window. */
static void *refill_new(struct heap *h, unsigned cls, struct pool *p, bool strict)
{
	struct class_heap *c = &h->cls[cls];
	size_t bytes = max_size(class_size(cls), GRANULE);

	if (c->filled >= BOLD_FILLED)
		bytes = max_size(bytes, BOLD_STEP);
	if (strict && pool_is_full(p))
		return NULL;
	struct slab *s = pool_new_slab(p->index, cls, bytes, strict);
	if (!s) {
		pool_set_full(p);
		return NULL;
	}
	if (alloc_checked)
		check_birth(s);
	s->patience = c->churn;
	return refill_from(h, c, s);
}

static void *step_any_partial(struct heap *h, unsigned cls)
{
	for (unsigned round = 0; round < 2; round++)
		for (unsigned i = 1; i < topology.count; i++) {
			struct pool *p = &pools[topology.order[h->index][i]];
			uint32_t have =
			    atomic_load_explicit(&p->partial_count[cls], memory_order_relaxed);
			void *block = have > (round ? 0 : SPARE) ? refill_partial(h, cls, p) : NULL;

			if (block)
				return block;
		}
	return NULL;
}

static void *step_any_new(struct heap *h, unsigned cls)
{
	for (unsigned i = 1; i < topology.count; i++) {
		void *block = refill_new(h, cls, &pools[topology.order[h->index][i]], true);

		if (block)
			return block;
	}
	return refill_new(h, cls, &pools[h->index], false);
}

#ifdef NUMASLAB_MUTANT_SWAP /* the tests show what this order costs */
#define step_fourth(h, cls) step_any_new(h, cls)
#define step_fifth(h, cls)  step_any_partial(h, cls)
#else
#define step_fourth(h, cls) step_any_partial(h, cls)
#define step_fifth(h, cls)  step_any_new(h, cls)
#endif

/*
 * A heap whose node was full may own slabs of others.  They go to their nodes' lists when only
 * this node will do, or when it may have memory again.
 */
cold void heap_come_home(struct heap *h, unsigned cls)
{
	h->cls[cls].away = false;
	heap_drain_class(h, cls, UINT_MAX);
}

cold static void *refill_away(struct heap *h, unsigned cls)
{
	void *block = step_fourth(h, cls);

	h->cls[cls].away = true;

	if (block) {
		tally(h->index, cls, COUNT_any_partial, 1);
		return block;
	}
	block = step_fifth(h, cls);
	if (block)
		tally(h->index, cls, COUNT_any_new, 1);
	return block;
}

/* What is due by the clock. */
static void upkeep(const struct heap *h)
{
	uint64_t now_ms = os_now_ms();

	telemetry_tick(now_ms);
	observe_tick(now_ms);
	pools_settle(h->index);
}

/* Steps 1 and 2, which are taken again and again: what is due after them is not each time. */
static void *refill_often(struct heap *h, unsigned cls)
{
	struct class_heap *c = &h->cls[cls];
	void *block = refill_own(h, c);

	if (likely(block != NULL))
		c->own++;
	else if ((block = refill_partial(h, cls, &pools[h->index])) != NULL)
		c->took++;
	else
		return NULL;
	if (unlikely(++c->refills % OFTEN_CLOCK == 0)) {
		if (c->refills % OFTEN_TOLD == 0)
			heap_settle_class(h, cls);
		upkeep(h);
	}
	return block;
}

noinline_ void *heap_refill(struct heap *h, unsigned cls, bool strict)
{
	struct pool *p = &pools[h->index];
	if (unlikely(h->cls[cls].away) && !pool_is_full(p))
		heap_come_home(h, cls);
	void *block = refill_often(h, cls);

	if (likely(block != NULL))
		return block;
	heap_settle_class(h, cls);
	upkeep(h);
	while (unlikely(alloc_forked) && heaps_salvage())
		if ((block = refill_often(h, cls)) != NULL)
			return block;
	bool alone = topology.count == 1;
	if ((block = refill_new(h, cls, p, !alone || strict)) != NULL) {
		tally(h->index, cls, COUNT_node_new, 1);
		return block;
	}
	if (pools_gather_due() && (block = refill_often(h, cls)) != NULL)
		return block;
	return alone || strict ? NULL : refill_away(h, cls);
}
