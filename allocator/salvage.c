/* SPDX-License-Identifier: MIT */
#include "allocator/heap.h"

/*
 * What threads that fork removed left behind.  The child marks their heaps, O(threads); when a
 * refill would need a new slab, one marked heap's slabs go to their nodes' lists first.
 *
 * Such a thread stopped between any two instructions.  So nothing of its heap is believed: lists
 * are walked within their slab and cut where they leave it, and what the slab has in use is what
 * is not on a list.  Lost is what the thread had in hand: a block, a list, a slab on no list.
 */

#define BLOCKS_MAX (UNIT_SIZE / 16)

static struct heap *_Atomic every; /* all heaps, by .every */
static _Atomic unsigned orphans, count;
_Atomic bool heaps_several;

struct walk {
	struct slab *slab;
	uintptr_t last; /* of the list kept so far; 0: none */
	unsigned count;
	uint64_t seen[BLOCKS_MAX / 64];
};

void heap_register(struct heap *h)
{
	struct heap *first = atomic_load_explicit(&every, memory_order_relaxed);

	if (first)
		atomic_store_explicit(&heaps_several, true, memory_order_relaxed);
	h->number = atomic_fetch_add_explicit(&count, 1, memory_order_relaxed) + 1;
	do
		h->every = first;
	while (!atomic_compare_exchange_weak_explicit(&every, &first, h, memory_order_release,
						      memory_order_relaxed));
}

static void set_orphan(struct heap *h, bool is)
{
	atomic_store_explicit(&h->orphan, is, memory_order_relaxed);
}

/* The only thread of a child: whose heap is neither its own nor idle has no thread any more. */
bool heaps_fork_child(void)
{
	unsigned n = 0;

	for (struct heap *h = atomic_load(&every); h; h = h->every)
		set_orphan(h, true);
	for (struct heap *h = thread_heap(); h && h != &heap_none; h = h->left)
		set_orphan(h, false);
	for (unsigned i = 0; i < topology.count; i++)
		for (struct heap *h = pools[i].idle_heaps; h; h = h->next)
			set_orphan(h, false);
	for (struct heap *h = atomic_load(&every); h; h = h->every)
		n += atomic_load_explicit(&h->orphan, memory_order_relaxed);
	atomic_store_explicit(&orphans, n, memory_order_relaxed);
	return n != 0;
}

/* A block of the slab that was handed out before, by address. */
static bool is_block(const struct slab *s, uintptr_t at)
{
	return slab_has(s, at) && (at - slab_addr(s)) % s->size == 0 &&
	       (at - slab_addr(s)) / s->size < s->extended;
}

/* Adds a list to what is kept, as far as it is sound. */
static void walk_list(struct walk *w, uintptr_t at)
{
	while (at && is_block(w->slab, at)) {
		unsigned i = (unsigned)((at - slab_addr(w->slab)) / w->slab->size);

		if (w->seen[i / 64] >> (i % 64) & 1)
			return;
		w->seen[i / 64] |= (uint64_t)1 << (i % 64);
		if (w->last)
			link_write((void *)w->last, at);
		else
			w->slab->free = at;
		w->last = at;
		w->count++;
		at = link_read((const void *)at);
	}
}

/* The thread may have been bringing hidden blocks back: what is on the list is not hidden. */
static void settle_hidden(struct slab *s, const struct walk *w)
{
	if (s->capacity <= 64)
		s->hidden &= ~w->seen[0];
}

static void salvage_slab(struct slab *s, uintptr_t bin)
{
	struct walk w = {.slab = s};
	uintptr_t free = s->free;

	walk_list(&w, free);
	walk_list(&w, bin);
	if (w.last)
		link_write((void *)w.last, slab_end(s));
	else
		s->free = slab_end(s);
	settle_hidden(s, &w);
	unsigned hidden = s->hidden ? (unsigned)__builtin_popcountll(s->hidden) : 0;
	unsigned gone = w.count + hidden;

	slab_set_used(s, s->extended > gone ? s->extended - gone : 0, 1);
	s->next = s->prev = NULL;
	s->spent = false;
	if (s->idle)
		slab_set_busy(s);
	slab_settle(s);
	atomic_store_explicit(&s->owner, NULL, memory_order_relaxed);
	pool_list_slab(s, COUNT_active);
}

/* A first unit of a slab that the heap owns; the pointer may be anything. */
static bool is_owned(const struct heap *h, const struct slab *s, unsigned cls)
{
	uintptr_t at = (uintptr_t)s - layout.table;

	if (at % SLAB_DESC_SIZE || at / SLAB_DESC_SIZE >= layout.span >> UNIT_SHIFT ||
	    !pools_reach(slab_addr(s)))
		return false;
	return s->state == SPAN_SLAB && s->cls == cls &&
	       atomic_load_explicit(&s->owner, memory_order_relaxed) ==
		   heap_tag((struct heap *)(uintptr_t)h) &&
	       remote_state(atomic_load_explicit(&s->remote, memory_order_acquire)) == SLAB_OWNED;
}

static void salvage_queue(const struct heap *h, struct slab *s, unsigned cls)
{
	for (struct slab *next; is_owned(h, s, cls); s = next) {
		next = s->next;
		salvage_slab(s, 0);
	}
}

static void salvage_class(struct heap *h, unsigned cls)
{
	struct class_heap *c = &h->cls[cls], was = *c;
	uintptr_t bin = h->bin[cls];

	if (was.cached)
		tally(was.cached_node, cls, COUNT_cached, -(int64_t)was.cached);
	h->bin[cls] = bin_empty();
	*c = (struct class_heap){.own = was.own,
				 .took = was.took,
				 .remote_in = was.remote_in,
				 .asked = was.asked,
				 .looked = was.looked};
	/* The list first: one of it that was becoming the current one may still lead to the rest.
	 */
	salvage_queue(h, was.partial.first, cls);
	salvage_queue(h, was.spent.first, cls);
	if (is_owned(h, was.current, cls))
		salvage_slab(was.current, bin == bin_empty() ? 0 : bin);
	if (is_owned(h, was.room, cls))
		salvage_slab(was.room, 0);
	heap_settle_class(h, cls);
}

bool heaps_salvage(void)
{
	if (atomic_load_explicit(&orphans, memory_order_relaxed) == 0)
		return false;
	for (struct heap *h = atomic_load_explicit(&every, memory_order_acquire); h; h = h->every) {
		bool is = true;

		if (!atomic_compare_exchange_strong_explicit(
			&h->orphan, &is, false, memory_order_acquire, memory_order_relaxed))
			continue;
		for (unsigned cls = 0; cls < CLASS_COUNT; cls++)
			salvage_class(h, cls);
		h->left = NULL;
		h->drain_from = 0;
		atomic_fetch_sub_explicit(&orphans, 1, memory_order_relaxed);
		heap_rest(h);
		return true;
	}
	return false;
}
