/* SPDX-License-Identifier: MIT */
#include "allocator/heap.h"

/* Slabs used to their end: how long a heap keeps them, and when they give again. */

#define SPENT_UNITS	  16  /* of a class that a heap keeps spent: others may free into them */
#define SPENT_UNITS_ALONE 256 /* the same while there is but one heap */

/* An owned slab, on no list, has nothing to give: FULL. */
static void slab_retire(struct heap *h, struct slab *s)
{
	unsigned node = s->node, cls = s->cls;
	int64_t used = slab_retally(s);

	slab_write(s->last, h->number);
	/* Before the state: a freer may own it the moment it is FULL. */
	atomic_store_explicit(&s->owner, NULL, memory_order_relaxed);
	if (slab_set_full(s, pools_are_scarce())) {
		tally_state(node, cls, -1, 0, 1, used);
		telemetry_map(s);
		return;
	}
	/* Enough was freed into it meanwhile: still ours. */
	atomic_store_explicit(&s->owner, heap_tag(h), memory_order_relaxed);
	tally(node, cls, COUNT_used, used);
	telemetry_map_own(s);
	heap_partial_add(h, s);
}

void heap_retire_spent(struct heap *h, struct class_heap *c)
{
	struct slab *s = c->spent.first;

	heap_unlink(h, s);
	if (!link_is_end(s->free))
		heap_partial_add(h, s);
	else if (slab_used(s))
		slab_retire(h, s);
	else /* its memory was not to be had: nobody would free it */
		heap_give_up(h, s);
}

bool heap_find_spent(struct heap *h, struct class_heap *c)
{
	struct slab *s = c->spent.first;

	while (s && link_is_end(s->free))
		s = s->next;
	if (!s)
		return false;
	heap_unlink(h, s);
	heap_partial_add(h, s);
	return true;
}

void heap_spend_current(struct heap *h, struct class_heap *c)
{
	struct slab *s = c->current;
	c->current = NULL;
	c->churn = 0;
	if (s->idle)
		slab_set_busy(s);
	slab_set_used(s, slab_used(s), (unsigned)min_size(slab_few(s), slab_used(s)));
	heap_spent_add(h, s);
	unsigned most = atomic_load_explicit(&heaps_several, memory_order_relaxed)
			    ? SPENT_UNITS
			    : SPENT_UNITS_ALONE;
	if (c->spent.count * s->units > most)
		heap_retire_spent(h, c);
}
