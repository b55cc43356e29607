/* SPDX-License-Identifier: MIT */
#include "allocator/allocator.h"
#include "allocator/observe.h"

#include <errno.h>
#include <string.h>

#define TURNS	   16	/* slow calls between two looks at the clock */
#define LOOKED_MAX 4096 /* slow calls until the node's counters learn of them */
#define GROW_PART  4	/* a block that grows by less than a quarter gets a quarter more */

static void *checked(void *p)
{
	if (unlikely(alloc_checked) && p)
		check_alloc(slab_head((uintptr_t)p), p);
	return p;
}

/* A thread without a heap: before there is one, or after its last destructor. */
cold static void *class_alloc_homeless(unsigned cls)
{
	if (!alloc_boot())
		return NULL;
	return node_alloc(topology_here(), cls, false);
}

/*
 * Also a program whose blocks go round and round, so that nothing has to be refilled, publishes its
 * history and is observed when asked.
 */
cold static void turn(void)
{
	uint64_t now_ms = os_now_ms();

	telemetry_tick(now_ms);
	observe_tick(now_ms);
}

static void *class_alloc(unsigned cls, size_t size)
{
	struct heap *h = heap_here();
	void *p;

	if (unlikely(++thread_state.turns % TURNS == 0)) {
		turn();
		/* Blocks that go round are never refilled, and would never be told of. */
		if (h && h->cls[cls].looked >= LOOKED_MAX)
			heap_settle_class(h, cls);
	}

	if (unlikely(!h))
		return checked(class_alloc_homeless(cls));
	h->cls[cls].asked += size;
	h->cls[cls].looked++;
	p = heap_pop_any(h, cls);
	if (!p)
		p = heap_refill(h, cls, false);
	return checked(p);
}

noinline_ void *alloc_slow(size_t size)
{
	bool zero;

	if (likely(size <= CLASS_SIZE_MAX))
		return class_alloc(class_of(size | (size == 0)), size);
	if (size > PTRDIFF_MAX || !alloc_boot())
		return NULL;
	return large_alloc(size, 1, &zero);
}

void *alloc_aligned(size_t align, size_t size)
{
	bool zero;

	if (size > PTRDIFF_MAX || align > PTRDIFF_MAX)
		return NULL;
	unsigned cls = class_aligned(size | (size == 0), align);

	if (cls)
		return class_alloc(cls, size);
	if (!alloc_boot())
		return NULL;
	return large_alloc(max_size(size, 1), align, &zero);
}

void *alloc_zeroed(size_t size)
{
	bool zero = false;
	void *p;

	if (size > CLASS_SIZE_MAX) {
		if (size > PTRDIFF_MAX || !alloc_boot())
			return NULL;
		p = large_alloc(size, 1, &zero);
	} else {
		p = alloc_slow(size);
	}
	if (p && !zero)
		memset(p, 0, size);
	return p;
}

/* The block's first unit; dies if p is not a live block of ours. */
static struct slab *slab_of_block(void *p)
{
	if (unlikely(alloc_checked) && !pools_reach((uintptr_t)p))
		die("realloc or usable size of a pointer that no malloc returned", p);
	struct slab *s = slab_head((uintptr_t)p);

	if (unlikely(s->state != SPAN_SLAB &&
		     !(s->state == SPAN_LARGE && slab_addr(s) == (uintptr_t)p)))
		die("realloc or usable size of a pointer that is no block", p);
	if (unlikely(alloc_checked))
		check_out(s, p);
	return s;
}

size_t alloc_usable(void *p)
{
	if (!p)
		return 0;
	if (!layout_owns(&layout, (uintptr_t)p))
		return usable_foreign(p);
	struct slab *s = slab_of_block(p);

	return s->state == SPAN_LARGE ? large_usable(s) : s->size;
}

/* size > 0 */
size_t alloc_resize(void **block, size_t *size)
{
	void *p = *block;

	*block = NULL;
	if (*size > PTRDIFF_MAX)
		return 0;
	if (!layout_owns(&layout, (uintptr_t)p)) {
		*block = realloc_foreign(p, *size);
		return 0;
	}
	struct slab *s = slab_of_block(p);
	size_t have = s->size;

	*block = p;
	if (s->state == SPAN_SLAB) {
		/* In place while at least half of the block stays in use. */
		if (*size <= have && (*size > have / 2 || have <= 64))
			return 0;
		/* What grew once grows again: every other time in place, or more rarely. */
		if (*size > have && *size < have + have / GROW_PART &&
		    have + have / GROW_PART <= CLASS_SIZE_MAX)
			*size = have + have / GROW_PART;
		return have;
	}
	if (*size > CLASS_SIZE_MAX) {
		void *to = large_resize(s, *size);

		if (to) {
			*block = to;
			return 0;
		}
	}
	return large_usable(s);
}

void *alloc_on_node(size_t size, int node, bool strict)
{
	if (size > PTRDIFF_MAX || !alloc_boot())
		return NULL;
	unsigned index = node < 0 ? topology_here() : topology.home[node];

	if (size > CLASS_SIZE_MAX)
		return large_on_node(size, index, strict);
	return checked(node_alloc(index, class_of(size | (size == 0)), strict));
}

void alloc_note_mapping(const void *at)
{
	if (layout_owns(&layout, (uintptr_t)at))
		atomic_store_explicit(&mem.altered, true, memory_order_relaxed);
}

void alloc_note_policy(const void *at)
{
	alloc_note_mapping(at);
	observe_bar(at);
}

void alloc_note_filter(void)
{
	observe_end();
	topology.silent = true;
	topology.filtered = true;
}

/* Of the calling thread's heap, of idle heaps and of all free spans: everything that can go. */
size_t alloc_trim(void)
{
	struct heap *h = thread_heap(), *idle;

	if (!alloc_boot())
		return 0;
	thread_count();
	if (h != &heap_none)
		heap_trim(h);
	while (heaps_salvage())
		;
	pools_gather();
	for (unsigned i = 0; i < topology.count; i++) {
		struct heap *kept = NULL;

		lock_take(&pools[i].lock);
		idle = pools[i].idle_heaps;
		pools[i].idle_heaps = NULL;
		lock_release(&pools[i].lock);
		for (; idle; idle = kept) {
			kept = idle->next;
			heap_trim(idle);
			heap_rest(idle);
		}
		pool_trim_partial(&pools[i]);
	}
	large_trim();
	return pools_purge(0, 0);
}
