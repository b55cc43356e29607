/* SPDX-License-Identifier: MIT */
#include "allocator/node.h"
#include "allocator/observe.h"

#define FULL_BACKOFF_MS	 10u
#define FULL_BACKOFF_MAX 1000u

tls_fast bool lock_forking;
_Atomic uint64_t pools_scarce;

/* --- Exhaustion. --- */

bool pool_is_full(struct pool *p)
{
	uint64_t until = atomic_load_explicit(&p->full_until_ms, memory_order_relaxed);

	return until != 0 && os_now_ms() < until;
}

void pool_set_full(struct pool *p)
{
	uint32_t wait = p->backoff_ms ? p->backoff_ms : FULL_BACKOFF_MS;

	p->backoff_ms = (uint32_t)min_size((size_t)wait * 2, FULL_BACKOFF_MAX);
	atomic_store_explicit(&p->full_until_ms, os_now_ms() + wait, memory_order_relaxed);
	atomic_fetch_or_explicit(&pools_scarce, (uint64_t)1 << p->index % 64, memory_order_relaxed);
}

/*
 * Memory of the node came free, or was to be had: asking is worth it again.  The bit is looked at
 * too: one that was set while this cleared is cleared by the next.
 */
static void pool_clear_full(struct pool *p)
{
	uint64_t bit = (uint64_t)1 << p->index % 64;

	if (atomic_load_explicit(&p->full_until_ms, memory_order_relaxed) ||
	    atomic_load_explicit(&pools_scarce, memory_order_relaxed) & bit) {
		p->backoff_ms = 0;
		atomic_store_explicit(&p->full_until_ms, 0, memory_order_relaxed);
		atomic_fetch_and_explicit(&pools_scarce, ~bit, memory_order_relaxed);
	}
}

/* --- Slabs: birth and death. --- */

static struct pool *pool_of_window(const struct slab *s)
{
	return &pools[layout_window_of(&layout, slab_addr(s))];
}

static void mark_inner(struct slab *s)
{
	for (unsigned i = 1; i < s->units; i++) {
		slab_set_state(&s[i], SPAN_INNER);
		s[i].head_units = i;
	}
}

/* After all units changed. */
static void map_units(const struct slab *s)
{
	for (unsigned i = 0; i < s->units; i++)
		telemetry_map_own(&s[i]);
}

static void put_span(struct pool *p, struct slab *s)
{
	lock_take(&p->lock);
	span_put(&p->window, s);
	lock_release(&p->lock);
}

/* A span leaves the free ones: what it holds is no longer counted there. */
static void account_taken(struct pool *p, struct slab *s, size_t resident)
{
	if (!s->dirty)
		return;
	count_add(&mem.dirty, -resident);
	tally_row(p->index, 0, {COUNT_held, -(int64_t)resident}, {COUNT_empty, -(int64_t)s->units});
}

static void account_free(struct pool *p, struct slab *s, size_t resident)
{
	if (p != pool_large())
		slab_set_part(s, s->dirty ? UNIT_KEPT : UNIT_FREE);
	if (s->dirty) {
		count_add(&mem.dirty, resident);
		tally_row(p->index, 0, {COUNT_held, (int64_t)resident}, {COUNT_empty, s->units});
	} else {
		if (!alone())
			atomic_thread_fence(
			    memory_order_seq_cst); /* as a tally, for telemetry_map() */
	}
	if (p != pool_large())
		map_units(s);
}

/* Whether what a free span holds still lies on the node. */
static bool is_at_home(const struct slab *s, unsigned index)
{
	for (unsigned i = 0; i < s->units; i++) {
		char *at = (char *)slab_addr(s + i);

		if (!s[i].resident)
			continue;
		int first = mem_look_again(at + (size_t)__builtin_ctz(s[i].resident) * GRANULE);
		int last = mem_look_again(at + (size_t)log2_floor(s[i].resident) * GRANULE);

		if ((first >= 0 && first != (int)index) || (last >= 0 && last != (int)index))
			return false;
	}
	return true;
}

struct slab *pool_new_slab(unsigned index, unsigned cls, size_t bytes, bool strict)
{
	struct pool *p = &pools[index];
	bool was_clean;

	struct slab *s = pool_take_span(p, class_slab_units(cls), 1, SPAN_ANY, &was_clean);
	if (!s)
		return NULL;
	size_t before = mem_resident(s);
	account_taken(p, s, before);
	/* A slab over two nodes would be filed under one: what the last resort finds goes, and what
	 * was moved away meanwhile. */
	if (before && topology.count > 1 && (!strict || !is_at_home(s, index))) {
		size_t gone = mem_discard(s);

		before -= gone;
		if (gone && !span_restore(&p->window, s)) {
			s->dirty = 0;
			account_free(p, s, 0);
			put_span(p, s);
			return NULL;
		}
	}
	slab_set_node(s, index);
	int landed = mem_bring(s, bytes, index, strict);
	if (landed < 0) {
		s->dirty = mem_resident(s) != 0;
		account_free(p, s, mem_resident(s));
		put_span(p, s);
		return NULL;
	}
	pool_clear_full(&pools[landed]);
	size_t after = mem_resident(s);
	if (was_clean) /* the rest of it will be wanted next */
		mem_regret(slab_bytes(s) - before);
	slab_init(s, cls, (unsigned)landed);
	slab_write(s->misplaced, landed != (int)index);
	mark_inner(s);
	slab_set_part(s, UNIT_FIRST);
	tally_row(s->node, cls, {COUNT_active, 1}, {COUNT_slots, s->capacity},
		  {COUNT_held, (int64_t)after}, {COUNT_misplaced, s->misplaced});
	if (s->misplaced)
		observe_evict((void *)slab_addr(s), slab_bytes(s));
	map_units(s);
	return s;
}

void slab_refile(struct slab *s, unsigned index)
{
	static const enum counter moved[] = {COUNT_active, COUNT_slots, COUNT_used, COUNT_held};
	int64_t by[] = {1, s->capacity, s->tallied, (int64_t)mem_resident(s)};
	bool misplaced = index != layout_window_of(&layout, slab_addr(s)), was = s->misplaced;
	unsigned from = s->node;

	slab_set_late(s, 0);
	slab_write(s->misplaced, misplaced);
	slab_set_node(s, index);
	for (unsigned i = 0; i < sizeof(by) / sizeof(by[0]); i++) {
		tally(from, s->cls, moved[i], -by[i]);
		tally(index, s->cls, moved[i], by[i]);
	}
	if (was)
		tally(from, s->cls, COUNT_misplaced, -1);
	if (misplaced) {
		tally(index, s->cls, COUNT_misplaced, 1);
		observe_evict((void *)slab_addr(s), slab_bytes(s));
	}
	telemetry_map_own(s);
}

void pool_free_slab(struct slab *s, enum counter was)
{
	struct pool *p = pool_of_window(s);
	size_t resident = mem_resident(s);
	unsigned pushed = remote_count(atomic_load_explicit(&s->remote, memory_order_relaxed));
	bool frees_memory = resident != 0;

	if (pushed) /* and never taken */
		tally(s->node, s->cls, COUNT_remote_in, pushed);
	tally_row(s->node, s->cls, {was, -1}, {COUNT_slots, -(int64_t)s->capacity},
		  {COUNT_held, -(int64_t)resident}, {COUNT_used, -(int64_t)s->tallied});
	if (s->misplaced) {
		/* Not kept: the next slab here should be on its node. */
		size_t gone = mem_discard(s);

		tally(s->node, s->cls, COUNT_misplaced, -1);
		tally(s->node, 0, COUNT_released, (int64_t)gone);
		resident = mem_resident(s);
	}
	atomic_store_explicit(&s->owner, NULL, memory_order_relaxed);
	s->dirty = resident != 0;
	account_free(p, s, resident);
	if (frees_memory)
		pool_clear_full(&pools[s->node]);
	put_span(p, s);
	pools_settle(p->index);
}

/* --- The partial lists. --- */

static void partial_add(struct pool *p, struct slab *s)
{
	s->next = NULL;
	s->prev = p->partial_last[s->cls];
	if (s->prev)
		s->prev->next = s;
	else
		p->partial[s->cls] = s;
	p->partial_last[s->cls] = s;
	atomic_fetch_add_explicit(&p->partial_count[s->cls], 1, memory_order_relaxed);
}

static void partial_remove(struct pool *p, struct slab *s)
{
	if (s->next)
		s->next->prev = s->prev;
	else
		p->partial_last[s->cls] = s->prev;
	if (s->prev)
		s->prev->next = s->next;
	else
		p->partial[s->cls] = s->next;
	s->next = s->prev = NULL;
	atomic_fetch_sub_explicit(&p->partial_count[s->cls], 1, memory_order_relaxed);
}

void pool_list_slab(struct slab *s, enum counter was)
{
	struct pool *p = &pools[s->node];
	unsigned cls = s->cls; /* once listed it may become another's, and anything */

	lock_take(&p->lock);
	uint64_t word = slab_set_listed(s);
	int64_t told = slab_told(s, word);
	if (!remote_is_empty(word)) {
		partial_add(p, s);
		lock_release(&p->lock);
		if (was == COUNT_full)
			tally_state(p->index, cls, 0, 1, -1, -told);
		else
			tally_state(p->index, cls, -1, 1, 0, -told);
		telemetry_map(s);
		return;
	}
	slab_set_owned(s); /* by nobody: no block of it is out that could be pushed */
	lock_release(&p->lock);
	if (told)
		tally(p->index, cls, COUNT_used, -told);
	pool_free_slab(s, was);
}

void pool_reap_slab(struct slab *s)
{
	struct pool *p = &pools[slab_node(s)];

	lock_take(&p->lock);
	uint64_t word = atomic_load_explicit(&s->remote, memory_order_acquire);
	/* It may have lived on and come to lie elsewhere: then its last freer there reaps it. */
	if (s->state != SPAN_SLAB || slab_node(s) != p->index || !remote_is_empty(word)) {
		lock_release(&p->lock);
		return;
	}
	partial_remove(p, s);
	slab_set_owned(s);
	lock_release(&p->lock);
	pool_free_slab(s, COUNT_partial);
}

struct slab *pool_take_partial(struct pool *p, unsigned cls)
{
	if (atomic_load_explicit(&p->partial_count[cls], memory_order_relaxed) == 0)
		return NULL;
	lock_take(&p->lock);
	struct slab *s = p->partial[cls];
	if (s) {
		partial_remove(p, s);
		slab_set_owned(s);
	}
	lock_release(&p->lock);
	if (s) {
		tally_state(s->node, cls, 1, -1, 0, 0);
		telemetry_map_own(s);
	}
	return s;
}

/* --- Giving back. --- */

/* One dirty span of the pool, at most `bytes` of it; false: there is none, or it was refused. */
static bool purge_one(struct pool *p, size_t bytes, size_t *total)
{
	size_t units = max_size(round_up(bytes, UNIT_SIZE) >> UNIT_SHIFT, 1);

	lock_take(&p->lock);
	struct slab *s = span_pop_dirty(&p->window);
	if (s && s->units > units) {
		struct slab *rest = span_cut(s, units);

		rest->dirty = 1;
		span_put(&p->window, rest);
		s->dirty = 1;
	}
	lock_release(&p->lock);
	if (!s)
		return false;
	size_t resident = mem_resident(s);
	account_taken(p, s, resident);
	size_t gone = mem_discard(s);
	s->dirty = gone == 0 && resident != 0;
	account_free(p, s, resident);
	bool refused = s->dirty;
	tally(p->index, 0, COUNT_released, (int64_t)gone);
	if (gone)
		pool_clear_full(p);
	put_span(p, s);
	*total += gone;
	return !refused;
}

size_t pools_purge(unsigned first, size_t keep)
{
	size_t total = 0, n = topology.count + 1;

	for (size_t i = 0; i < n; i++) {
		struct pool *p = &pools[(first + i) % n];
		size_t dirty;

		/* With nothing to keep, dirty spans that hold nothing become clean too. */
		do
			dirty = atomic_load_explicit(&mem.dirty, memory_order_relaxed);
		while ((dirty > keep || keep == 0) &&
		       purge_one(p, keep ? dirty - keep : SIZE_MAX / 2, &total));
	}
	return total;
}

/*
 * The system refused address space or commitment: all that is free is unmapped, from now on what
 * is given back is unmapped too, and the caller tries once more.
 */
cold void pools_reclaim(void)
{
	size_t n = topology.count + 1;

	atomic_store_explicit(&mem.unmap, true, memory_order_relaxed);
	pools_purge(0, 0);
	for (size_t i = 0; i < n; i++) {
		lock_take(&pools[i].lock);
		span_unmap_clean(&pools[i].window);
		lock_release(&pools[i].lock);
	}
}

struct slab *pool_take_span(struct pool *p, size_t units, size_t align, unsigned near,
			    bool *was_clean)
{
	enum span_found found;

	struct slab *s;

	for (int tries = 0; tries < 2; tries++) {
		lock_take(&p->lock);
		s = span_take(&p->window, units, align, near, &found);
		lock_release(&p->lock);
		*was_clean = found == SPAN_FOUND_CLEAN;
		if (s && (!*was_clean || span_restore(&p->window, s)))
			return s;
		if (s)
			put_span(p, s);
		pools_reclaim();
	}
	return NULL;
}
