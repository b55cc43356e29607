/* SPDX-License-Identifier: MIT */
#include "allocator/heap.h"
#include "allocator/alloc.h"

#include <limits.h>
#include <pthread.h>

/* Words that the kernel never writes: every call on a machine with several nodes goes the slow way.
 */
#define WHERE_UNKNOWN (-2)
#define WHERE_NEVER   (-3) /* for good: NUMASLAB_CHECK */

#define DRAIN_AT_ONCE 64 /* slabs given up in the call that notices a move */
#define DRAIN_STEP    16 /* and in each slow call after it */
#define EXIT_ROUNDS   4	 /* of thread-specific destructors; ours acts in the last */

const uint64_t heap_empty_word = 0;
struct heap heap_none = {
    .bin = {[0 ... CLASS_COUNT - 1] = (uintptr_t)&heap_empty_word},
    .where = WHERE_UNKNOWN,
};
bool alloc_checked, alloc_forked;
tls_fast struct thread_state thread_state = {.heap = &heap_none};

static struct {
	_Atomic bool first_taken, thread_born;
	pthread_key_t key;
	bool has_key;
} heaps;

static struct heap first_heap cache_aligned;

/* --- Lists and bins. --- */

static void queue_add(struct slab_queue *q, struct slab *s)
{
	s->next = NULL;
	s->prev = q->last;
	if (s->prev)
		s->prev->next = s;
	else
		q->first = s;
	q->last = s;
	q->count++;
}

void heap_partial_add(struct heap *h, struct slab *s)
{
	queue_add(&h->cls[s->cls].partial, s);
}

void heap_spent_add(struct heap *h, struct slab *s)
{
	s->spent = true;
	queue_add(&h->cls[s->cls].spent, s);
}

void heap_unlink(struct heap *h, struct slab *s)
{
	struct class_heap *c = &h->cls[s->cls];
	struct slab_queue *q = s->spent ? &c->spent : &c->partial;

	if (s->next)
		s->next->prev = s->prev;
	else
		q->last = s->prev;
	if (s->prev)
		s->prev->next = s->next;
	else
		q->first = s->next;
	s->next = s->prev = NULL;
	s->spent = false;
	q->count--;
}

uintptr_t bin_after(const struct slab *s, uintptr_t block)
{
	uintptr_t next = link_read((const void *)block);

	if (likely(slab_has(s, next)))
		return next;
	/* A thread that fork removed may have been half way through a free: the rest is lost. */
	if (unlikely(next != slab_end(s)) && !alloc_forked)
		die("corrupt free list: something wrote to a free block", (void *)block);
	return bin_empty();
}

void *heap_pop_any(struct heap *h, unsigned cls)
{
	uintptr_t block = h->bin[cls];

	if (block == bin_empty())
		return NULL;
	struct slab *s = slab_head(block);
	h->bin[cls] = bin_after(s, block);
	if (h->bin[cls] == bin_empty())
		bin_top_up(h, s);
	return (void *)block;
}

void heap_flush_bin(struct heap *h, unsigned cls)
{
	uintptr_t first = h->bin[cls], last = first;
	struct slab *s = h->cls[cls].current;
	unsigned n = 0;

	if (first == bin_empty())
		return;
	for (uintptr_t at = first; at != bin_empty(); at = bin_after(s, at)) {
		last = at;
		n++;
	}
	link_write((void *)last, s->free);
	s->free = first;
	slab_set_used(s, slab_used(s) - n, 1);
	h->bin[cls] = bin_empty();
}

void heap_settle_class(struct heap *h, unsigned cls)
{
	struct class_heap *c = &h->cls[cls];

	if (c->own | c->took | c->looked)
		tally_row(h->index, cls, {COUNT_own, (int64_t)c->own},
			  {COUNT_node_partial, (int64_t)c->took}, {COUNT_asked, (int64_t)c->asked},
			  {COUNT_looked, (int64_t)c->looked});
	if (c->remote_in)
		tally(h->index, cls, COUNT_remote_in, (int64_t)c->remote_in);
	c->own = c->took = c->remote_in = 0;
	c->asked = c->looked = 0;
	if (h->remote_out)
		tally(h->index, cls, COUNT_remote_out, (int64_t)h->remote_out);
	h->remote_out = 0;
}

/* --- Giving up. --- */

void heap_give_up(struct heap *h, struct slab *s)
{
	(void)h;
	if (s->idle)
		slab_set_busy(s);
	slab_settle(s);
	atomic_store_explicit(&s->owner, NULL, memory_order_relaxed);
	pool_list_slab(s, COUNT_active);
}

unsigned heap_drain_class(struct heap *h, unsigned cls, unsigned effort)
{
	struct class_heap *c = &h->cls[cls];
	struct slab *s;
	unsigned done = 0;

	heap_flush_bin(h, cls);
	if (c->cached) /* also where the bin's slab is gone already: it had nothing left to give */
		tally(c->cached_node, cls, COUNT_cached, -(int64_t)c->cached);
	c->cached = 0;
	if ((s = c->current) != NULL) {
		c->current = NULL;
		heap_give_up(h, s);
		done++;
	}
	if ((s = c->room) != NULL) {
		c->room = NULL;
		heap_give_up(h, s);
		done++;
	}
	while (done < effort && c->spent.first) {
		heap_retire_spent(h, c);
		done++;
	}
	while (done < effort && (s = c->partial.first) != NULL) {
		heap_unlink(h, s);
		heap_give_up(h, s);
		done++;
	}
	heap_settle_class(h, cls);
	c->filled = 0;
	return done;
}

bool heap_drain(struct heap *h, unsigned effort)
{
	while (h->drain_from < CLASS_COUNT && effort > 0) {
		unsigned done = heap_drain_class(h, h->drain_from, effort);

		effort -= (unsigned)min_size(done, effort);
		if (!h->cls[h->drain_from].partial.first && !h->cls[h->drain_from].spent.first)
			h->drain_from++;
	}
	if (h->drain_from < CLASS_COUNT)
		return false;
	h->drain_from = 0;
	return true;
}

void heap_rest(struct heap *h)
{
	struct pool *p = &pools[h->index];

	lock_take(&p->lock);
	h->next = p->idle_heaps;
	p->idle_heaps = h;
	lock_release(&p->lock);
}

/* The heaps that the thread left behind as it moved, a few slabs at a time. */
static void drain_left(struct heap *h, unsigned effort)
{
	struct heap *old = h->left;

	if (!old || !heap_drain(old, effort))
		return;
	h->left = old->left;
	old->left = NULL;
	heap_rest(old);
}

void heap_trim(struct heap *h)
{
	heap_cool(h);
	while (h->left)
		drain_left(h, UINT_MAX);
	h->drain_from = 0;
	heap_drain(h, UINT_MAX);
}

/* --- Birth, move, exit. --- */

static void heap_init(struct heap *h, unsigned index)
{
	for (unsigned i = 0; i < CLASS_COUNT; i++)
		h->bin[i] = bin_empty();
	h->index = (uint16_t)index;
	h->where = alloc_checked ? WHERE_NEVER : WHERE_UNKNOWN;
}

struct heap *heap_acquire(unsigned index)
{
	struct pool *p = &pools[index];

	lock_take(&p->lock);
	struct heap *h = p->idle_heaps;
	if (h)
		p->idle_heaps = h->next;
	lock_release(&p->lock);
	if (h)
		return h;
	if (!atomic_exchange(&heaps.first_taken, true))
		h = &first_heap;
	else
		h = meta_alloc(sizeof(struct heap));
	if (h) {
		heap_init(h, index);
		heap_register(h);
	}
	return h;
}

static unsigned index_here(void)
{
	if (thread_state.sim_cpu) {
		int node = topology_sim_node(thread_state.sim_cpu - 1);

		return node < 0 ? 0 : topology.home[node];
	}
	return topology_here();
}

static void thread_gone(void *value)
{
	struct heap *h = thread_heap();

	(void)value;
	/* Other libraries' destructors may still free: the last round is ours. */
	if (++thread_state.exits < EXIT_ROUNDS) {
		pthread_setspecific(heaps.key, &heaps);
		return;
	}
	thread_state.heap = &heap_none;
	if (h == &heap_none)
		return;
	if (!heap_stay_warm(h))
		heap_trim(h);
	heap_rest(h);
}

/* May allocate (key >= 32, or another library's wrapper), which is why the heap is in place. */
cold static void thread_key(void)
{
	thread_state.keyed = true;
	pthread_setspecific(heaps.key, &heaps);
}

cold void thread_count_slow(void)
{
	thread_state.counted = true;
	if (atomic_exchange_explicit(&heaps.thread_born, true, memory_order_relaxed))
		alone_never();
}

cold static struct heap *heap_born(void)
{
	if (!alloc_boot())
		return NULL;
	thread_count();
	int32_t where = topology.guarded ? heap_where_word() : 0;
	struct heap *h = heap_acquire(index_here());

	if (!h)
		return NULL;
	heap_cool(h);
	if (!alloc_checked)
		h->where = where;
	thread_state.heap = h;
	return h;
}

/* The rseq word differs: another CPU, perhaps another node. */
cold static struct heap *heap_moved(struct heap *h)
{
	int32_t where = heap_where_word();
	unsigned index = index_here();

	if (alloc_checked)
		where = WHERE_NEVER;
	if (index == h->index) {
		h->where = where;
		return h;
	}
	struct heap *to = heap_acquire(index);
	if (!to)
		return h;
	heap_cool(to);
	to->where = where;
	to->left = h;
	h->drain_from = 0;
	h->where = WHERE_UNKNOWN;
	thread_state.heap = to;
	drain_left(to, DRAIN_AT_ONCE);
	return to;
}

struct heap *heap_here(void)
{
	struct heap *h = thread_heap();

	if (unlikely(h == &heap_none))
		h = thread_state.exits < EXIT_ROUNDS ? heap_born() : NULL;
	if (!h)
		return NULL;
	if (unlikely(!thread_state.keyed) && heaps.has_key)
		thread_key();
	if (topology.guarded && (h->where != heap_where_word() || topology.where_unknown))
		h = heap_moved(h);
	if (unlikely(h->left != NULL))
		drain_left(h, DRAIN_STEP);
	return h;
}

cold int heap_set_sim_cpu(int cpu)
{
	if (!alloc_boot() || !topology.simulated || (cpu >= 0 && topology_sim_node(cpu) < 0))
		return -1;
	thread_state.sim_cpu = cpu < 0 ? 0 : cpu + 1;
	struct heap *h = heap_here();

	if (h && topology.guarded)
		heap_moved(h);
	return 0;
}

void *node_alloc(unsigned index, unsigned cls, bool strict)
{
	thread_count();
	struct heap *h = heap_acquire(index);

	if (!h)
		return NULL;
	if (strict && h->cls[cls].away)
		heap_come_home(h, cls);
	void *block = heap_pop_any(h, cls);
	if (!block)
		block = heap_refill(h, cls, strict);
	heap_rest(h);
	return block;
}

void heaps_init(void)
{
	heaps.has_key = pthread_key_create(&heaps.key, thread_gone) == 0;
}
