/* SPDX-License-Identifier: MIT */
#include "allocator/heap.h"

/*
 * A heap between two threads.  Where short threads come one after the other, the next one goes on
 * with the slabs of the last: no lock and no change of state for each.  Others cannot use what such
 * a heap keeps, and nobody looks whether its slabs are empty: so it is little, and nothing where
 * memory is scarce.
 */

#define WARM_MAX ((size_t)512 << 10) /* of all heaps together */

static _Atomic size_t warm; /* sum of the heaps' .warm */

static size_t queue_held(const struct slab_queue *q, size_t enough)
{
	size_t bytes = 0;

	for (const struct slab *s = q->first; s && bytes <= enough; s = s->next)
		bytes += mem_resident(s);
	return bytes;
}

/* Memory of the heap's slabs, or more than enough. */
static size_t heap_held(const struct heap *h, size_t enough)
{
	size_t bytes = 0;

	for (unsigned cls = 1; cls < CLASS_COUNT && bytes <= enough; cls++) {
		const struct class_heap *c = &h->cls[cls];

		bytes += c->current ? mem_resident(c->current) : 0;
		bytes += c->room ? mem_resident(c->room) : 0;
		bytes += queue_held(&c->partial, enough) + queue_held(&c->spent, enough);
	}
	return bytes;
}

bool heap_stay_warm(struct heap *h)
{
	if (h->left || pools_are_scarce())
		return false;
	size_t bytes = heap_held(h, WARM_MAX);
	size_t was = atomic_fetch_add_explicit(&warm, bytes, memory_order_relaxed);

	if (was + bytes > WARM_MAX) {
		atomic_fetch_sub_explicit(&warm, bytes, memory_order_relaxed);
		return false;
	}
	h->warm = bytes;
	for (unsigned cls = 1; cls < CLASS_COUNT; cls++) {
		const struct class_heap *c = &h->cls[cls];

		if (c->own | c->took | c->remote_in | c->looked | h->remote_out)
			heap_settle_class(h, cls);
	}
	return true;
}

void heap_cool(struct heap *h)
{
	if (h->warm)
		atomic_fetch_sub_explicit(&warm, h->warm, memory_order_relaxed);
	h->warm = 0;
}
