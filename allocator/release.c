/* SPDX-License-Identifier: MIT */
#include "allocator/heap.h"
#include "allocator/alloc.h"

/*
 * Slow frees.  Whose a block is decides: the heap's own slab (here only in checked mode and for
 * the wide classes), a FULL slab (a freer on its node may adopt it, else it goes to its node's list
 * after a few), anybody else's (one compare-and-swap on the slab).
 */

#define PATIENCE_MAX 10
#define IDLE_CHURN   2	  /* slabs of a class that came and went, before an empty one is kept */
#define ADOPT_MAX    4	  /* slabs of a class that a heap adopts without allocating from it */
#define OUT_TOLD     1024 /* frees into slabs of others, until the node's counters learn of them */
#define STRANGE_STEP 4	  /* a free into another heap's slab outweighs so many into own ones */
#define STRANGE_MAX  32

bool slab_set_idle(struct slab *s)
{
	size_t bytes = mem_resident(s);

	if (s->idle)
		return true;
	if (atomic_load_explicit(&mem.idle, memory_order_relaxed) + bytes > IDLE_MAX)
		return false;
	count_add(&mem.idle, bytes);
	s->idle = (uint8_t)min_size(bytes / GRANULE, UINT8_MAX);
	return s->idle != 0;
}

void slab_set_busy(struct slab *s)
{
	count_add(&mem.idle, -(s->idle * GRANULE));
	s->idle = 0;
}

/* Nothing of an owned slab is out: off the heap, back to the window. */
static void slab_leave(struct heap *h, struct slab *s)
{
	struct class_heap *c = &h->cls[s->cls];
	unsigned hidden = s->hidden ? (unsigned)__builtin_popcountll(s->hidden) : 0;

	/* A block freed twice counts twice, and another one would be lost with the slab. */
	if (unlikely(!slab_list_is_sound(s, s->extended - slab_used(s) - hidden)) && !alloc_forked)
		die("double free, or something wrote to a free block, in a slab with nothing out",
		    (void *)slab_addr(s));
	if (c->current == s) {
		h->bin[s->cls] = bin_empty();
		heap_set_cached(h, s, 0);
		c->current = NULL;
		if (c->churn < PATIENCE_MAX)
			c->churn++;
		if (s->extended < s->capacity)
			c->filled = 0;
	} else if (c->room == s) {
		c->room = NULL;
	} else {
		heap_unlink(h, s);
	}
	if (s->idle)
		slab_set_busy(s);
	slab_settle(s);
	pool_free_slab(s, COUNT_active);
}

/* Local frees until the next look at a slab that is not empty. */
static unsigned look_after(const struct slab *s, unsigned out, bool current)
{
	if (current) /* each look walks the bin: twice as rarely each time */
		return (unsigned)max_size(out, (size_t)1 << s->patience);
	return slab_look_step(s, out);
}

/*
 * The counters may lag by a quarter of the slab: until then they are told nothing, as what is taken
 * from it before makes them right again.  False: it is more already.
 */
static bool may_wait(struct slab *s)
{
	uint32_t used = slab_used(s), lag = s->tallied - used, most = s->capacity / 4u;

	if (lag > most)
		return false;
	slab_set_used(s, used, (uint32_t)min_size((uint32_t)s->left, most + 1 - lag));
	slab_set_late(s, lag);
	return true;
}

/*
 * .left ran out: is the slab empty?  Blocks in the bin count as used, so for the current slab the
 * bin is walked.
 */
noinline_ void free_look(struct heap *h, struct slab *s)
{
	struct class_heap *c = &h->cls[s->cls];
	bool current = c->current == s, spent = s->spent;
	unsigned used = slab_used(s), cached = 0, remote;

	if (unlikely(s->left < 0 || used > s->extended))
		die("double free in a slab with nothing out", (void *)slab_addr(s));
	remote = remote_count(atomic_load_explicit(&s->remote, memory_order_acquire));
	if (spent) {
		heap_unlink(h, s);
		heap_partial_add(h, s);
	}
	if (current && h->bin[s->cls] != bin_empty())
		cached = slab_list_length(s, h->bin[s->cls]);
	unsigned out = used > cached + remote ? used - cached - remote : 0;

	if (out == 0 && (!current || c->churn < IDLE_CHURN || !slab_set_idle(s))) {
		slab_leave(h, s);
		return;
	}
	if (out && s->idle)
		slab_set_busy(s);
	slab_set_used(s, used, out ? look_after(s, out, current) : slab_idle_left(cached));
	if (!out)
		s->patience = c->churn;
	else if (current && s->patience < PATIENCE_MAX)
		s->patience++;
	if (spent) /* counted with those that follow */
		return;
	bool sparse = out && s->size >= HIDE_SIZE_MIN && slab_is_sparse(s);

	if (!out || current || sparse || !may_wait(s))
		slab_settle(s);
	if (sparse)
		slab_hide(s);
}

static void free_own(struct heap *h, struct slab *s, void *p)
{
	link_write(p, s->free);
	s->free = (uintptr_t)p;
	if (slab_count_down(s))
		free_look(h, s);
}

/* A free into a FULL slab, which is ours now: it has that block to give, and what was pushed. */
static void adopt(struct heap *h, struct slab *s, void *p)
{
	unsigned used = slab_used(s) - 1;
	unsigned remote = remote_count(atomic_load_explicit(&s->remote, memory_order_relaxed));

	link_write(p, slab_end(s));
	s->free = (uintptr_t)p;
	slab_set_used(s, used, look_after(s, used - remote, false));
	atomic_store_explicit(&s->owner, heap_tag(h), memory_order_relaxed);
	heap_partial_add(h, s);
	tally_state(s->node, s->cls, 1, 0, -1, slab_retally(s));
	telemetry_map_own(s);
	if (unlikely(s->left == 0))
		free_look(h, s);
}

/*
 * Threads that keep to their blocks take back the FULL slabs that they filled.  Where threads
 * replace each other's blocks nobody takes any: who waits would keep what the others free into
 * them, of use to nobody.
 */
static bool keeps_to_itself(struct heap *h, const struct slab *s)
{
	struct class_heap *c = &h->cls[s->cls];
	bool own = __atomic_load_n(&s->last, __ATOMIC_RELAXED) == h->number;

	if (!own)
		c->strange = (uint8_t)min_size(c->strange + STRANGE_STEP, STRANGE_MAX);
	else if (c->strange)
		c->strange--;
	return own && c->strange < STRANGE_MAX / 2;
}

/* Who only frees takes a few, to free the rest of them without a lock. */
static bool may_adopt(struct heap *h, const struct slab *s)
{
	const struct class_heap *c = &h->cls[s->cls];
	uint64_t word = atomic_load_explicit(&s->remote, memory_order_relaxed);
	bool keeps = h != &heap_none && keeps_to_itself(h, s);

	return h != &heap_none && remote_state(word) == SLAB_FULL && slab_node(s) == h->index &&
	       (c->current ? keeps : c->partial.count < ADOPT_MAX);
}

static void free_remote(struct heap *h, struct slab *s, void *p)
{
	if (may_adopt(h, s) && slab_claim_full(s)) {
		adopt(h, s, p);
		return;
	}
	if (h == &heap_none)
		thread_count();
	else if (unlikely(++h->remote_out % OUT_TOLD == 0)) /* who only frees refills nothing */
		heap_settle_class(h, s->cls);
	unsigned cls = s->cls, step = s->step, node;
	unsigned what = slab_push_remote(s, p, pools_are_scarce(), &node);

	if (likely(!what))
		return;
	if (what & PUSHED_STEP)
		tally_pushed(node, cls, s, step);
	if (what & PUSHED_ENOUGH)
		pool_list_slab(s, COUNT_full);
	if (what & PUSHED_LAST)
		pool_reap_slab(s);
}

void free_block(struct slab *s, void *p)
{
	struct heap *h = thread_heap();

	if (atomic_load_explicit(&s->owner, memory_order_relaxed) == heap_tag(h))
		free_own(h, s, p);
	else
		free_remote(h, s, p);
}

noinline_ void free_slow(void *p)
{
	uintptr_t addr = (uintptr_t)p;

	if (!layout_owns(&layout, addr)) {
		if (p)
			free_foreign(p);
		return;
	}
	if (unlikely(alloc_checked) && !pools_reach(addr))
		die("free of a pointer that no malloc returned", p);
	struct slab *s = slab_head(addr);

	if (likely(s->state == SPAN_SLAB)) {
		if (alloc_checked)
			check_free(s, p);
		free_block(s, p);
	} else if (s->state == SPAN_LARGE && slab_addr(s) == addr) {
		large_free(s);
	} else {
		die("free of a pointer that no malloc returned (or freed before)", p);
	}
}
