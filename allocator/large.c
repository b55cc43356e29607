/* SPDX-License-Identifier: MIT */
#include "allocator/alloc.h"

#include <numaif.h>

/*
 * Blocks above CLASS_SIZE_MAX: spans of the large window, never populated by us; each page's home
 * is where it is first touched.  While free and dirty a span counts as wholly resident.
 */

#define POLICY_MIN ((size_t)1 << 20)
#define KEPT_MAX   ((size_t)512 << 10)
#define MOVE_MIN   ((size_t)512 << 10) /* below, copying is cheaper than moving pages */

static size_t page_round(size_t n)
{
	return round_up(n, os_page_size);
}

static size_t units_for(size_t size)
{
	return round_up(size, UNIT_SIZE) >> UNIT_SHIFT;
}

static void tally_large(int64_t count, int64_t bytes)
{
	tally_row(topology.count, 0, {COUNT_active, count}, {COUNT_used, bytes});
}

/* Units of a dirty span stop being free: their memory is the program's affair now. */
static void leave_dirty(struct slab *unit, size_t units)
{
	size_t resident = 0;

	for (size_t i = 0; i < units; i++) {
		resident += (size_t)__builtin_popcount(unit[i].resident) * GRANULE;
		unit[i].resident = 0;
	}
	count_add(&mem.dirty, -resident);
	mem_shrink(resident);
	tally_row(topology.count, 0, {COUNT_held, -(int64_t)resident},
		  {COUNT_empty, -(int64_t)units});
}

/* All of a span counts as resident, on the node that the block was asked from. */
static void enter_dirty(struct slab *s)
{
	size_t bytes = slab_bytes(s);

	for (unsigned i = 0; i < s->units; i++) {
		s[i].resident = UINT16_MAX;
		slab_set_node(s + i, s->node);
	}
	s->dirty = 1;
	mem_grow(bytes);
	count_add(&mem.dirty, bytes);
	tally_row(topology.count, 0, {COUNT_held, (int64_t)bytes}, {COUNT_empty, s->units});
}

static void put_span(struct slab *s)
{
	struct pool *p = pool_large();

	lock_take(&p->lock);
	span_put(&p->window, s);
	lock_release(&p->lock);
}

/*
 * Memory that was another node's lately is not touched first by us: it goes back.  (span_take
 * avoids such spans; one merged of two nodes' may come.)
 */
static bool discard_foreign(struct slab *s, unsigned here)
{
	unsigned i = 0;

	while (i < s->units && slab_node(s + i) == here)
		i++;
	if (i == s->units || !mem_give_back((void *)slab_addr(s), slab_bytes(s)))
		return true;
	s->dirty = 0;
	return span_restore(&pool_large()->window, s);
}

static struct slab *take_span(size_t units, size_t align_units)
{
	struct pool *p = pool_large();
	unsigned here = topology.count > 1 ? topology_here() : 0;
	bool was_clean;

	struct slab *s = pool_take_span(p, units, align_units, here, &was_clean);
	if (!s)
		return NULL;
	if (s->dirty) {
		leave_dirty(s, s->units);
		if (topology.count > 1 && !discard_foreign(s, here)) {
			put_span(s);
			return NULL;
		}
	}
	if (was_clean)
		mem_regret(slab_bytes(s));
	slab_set_node(s, here);
	return s;
}

/*
 * The program may have given the task a policy since start (numactl's way, by itself): a block of
 * some size then carries none of ours, which would override it.
 */
static bool task_has_policy(size_t size)
{
	if (size < POLICY_MIN || topology.count == 1 || topology.simulated || topology.silent)
		return false;
	int mode = os_task_policy();

	return mode > MPOL_DEFAULT && mode != MPOL_LOCAL;
}

/* A policy of the block's own; what an earlier block left, perhaps elsewhere, goes first. */
static void give_policy(struct slab *s, int mode, int node)
{
	void *at = (void *)slab_addr(s);

	if (s->dirty && os_discard(at, slab_bytes(s)))
		s->dirty = 0;
	os_set_policy(at, slab_bytes(s), mode, node);
	s->moved = 1; /* laid afresh when freed */
}

/* The span's memory goes back now, or waits as dirty for the next block. */
static void release_span(struct slab *s)
{
	void *at = (void *)slab_addr(s);
	size_t bytes = slab_bytes(s);
	bool gone = false;

	slab_set_state(s, SPAN_BUSY);
	slab_write(s->part, UNIT_FREE);
	if (s->moved || atomic_load_explicit(&mem.altered, memory_order_relaxed))
		gone = span_remap(&pool_large()->window, s);
	else if (bytes > mem_allowance())
		gone = mem_give_back(at, bytes);
	if (gone) {
		s->dirty = 0;
		tally(topology.count, 0, COUNT_released, (int64_t)s->bytes);
	} else {
		enter_dirty(s);
	}
	telemetry_map_own(s);
	put_span(s);
	pools_settle(topology.count);
}

/*
 * The block freed last, up to KEPT_MAX, is kept aside: pairs of malloc and free take no lock and
 * change no list.  It counts as in use and as cached, as blocks in a heap's bin do.
 */
static struct slab *_Atomic kept;

static void keep_tick(void)
{
	static _Atomic unsigned turns;
	unsigned n = atomic_load_explicit(&turns, memory_order_relaxed) + 1;

	atomic_store_explicit(&turns, n, memory_order_relaxed);
	if (n % 64 == 0)
		telemetry_tick(os_now_ms());
}

static bool may_keep(const struct slab *s)
{
	return slab_bytes(s) <= KEPT_MAX && !s->moved && tunables.large != LARGE_HOME &&
	       !atomic_load_explicit(&mem.altered, memory_order_relaxed);
}

static struct slab *swap_kept(struct slab *s)
{
	if (likely(alone())) {
		struct slab *old = atomic_load_explicit(&kept, memory_order_relaxed);

		atomic_store_explicit(&kept, s, memory_order_relaxed);
		return old;
	}
	return atomic_exchange_explicit(&kept, s, memory_order_acq_rel);
}

/* Returns what was kept before, for the caller to release. */
static struct slab *keep(struct slab *s)
{
	atomic_store_explicit(&mem.kept, slab_bytes(s), memory_order_relaxed);
	slab_set_state(s, SPAN_BUSY);
	tally(topology.count, 0, COUNT_cached, (int64_t)s->bytes);
	struct slab *old = swap_kept(s);
	if (old)
		tally(topology.count, 0, COUNT_cached, -(int64_t)old->bytes);
	return old;
}

/* The kept block, if it has just so many units and was asked from this node; NULL. */
static struct slab *take_kept(size_t units)
{
	struct slab *s = atomic_load_explicit(&kept, memory_order_acquire);

	/* Descriptors are never unmapped: what is read of one that was taken meanwhile is only old.
	 */
	if (!s || __atomic_load_n(&s->units, __ATOMIC_RELAXED) != units ||
	    (topology.count > 1 && slab_node(s) != topology_here()))
		return NULL;
	if (likely(alone()))
		atomic_store_explicit(&kept, NULL, memory_order_relaxed);
	else if (!atomic_compare_exchange_strong_explicit(&kept, &s, NULL, memory_order_acq_rel,
							  memory_order_relaxed))
		return NULL;
	atomic_store_explicit(&mem.kept, 0, memory_order_relaxed);
	tally(topology.count, 0, COUNT_cached, -(int64_t)s->bytes);
	return s;
}

static void *reuse_kept(struct slab *s, size_t size)
{
	size_t bytes = page_round(size);

	if (bytes != s->bytes)
		tally_large(0, (int64_t)bytes - (int64_t)s->bytes);
	s->bytes = bytes;
	slab_set_state(s, SPAN_LARGE);
	keep_tick();
	return (void *)slab_addr(s);
}

void *large_alloc(size_t size, size_t align, bool *zero)
{
	size_t units = units_for(size), align_units = max_size(align >> UNIT_SHIFT, 1);

	thread_count();
	struct slab *s = align_units == 1 ? take_kept(units) : NULL;

	*zero = false;
	if (s && likely(s->units == units)) {
		return reuse_kept(s, size);
	} else if (s) {
		tally_large(-1, -(int64_t)s->bytes);
		release_span(s);
	}
	s = take_span(units, align_units);
	if (!s) {
		*zero = true;
		return direct_alloc(size, align);
	}
	s->moved = 0;
	if (task_has_policy(size))
		give_policy(s, MPOL_DEFAULT, -1);
	else if (tunables.large == LARGE_HOME && pool_large()->window.policy >= 0 &&
		 !topology.silent)
		give_policy(s, MPOL_PREFERRED, topology.number[topology_here()]);
	*zero = !s->dirty;
	s->bytes = page_round(size);
	s->cls = 0;
	atomic_store_explicit(&s->owner, NULL, memory_order_relaxed);
	slab_set_state(s, SPAN_LARGE);
	slab_write(s->part, UNIT_FIRST);
	tally_large(1, (int64_t)s->bytes);
	telemetry_map_own(s);
	telemetry_tick(os_now_ms());
	return (void *)slab_addr(s);
}

void large_free(struct slab *s)
{
	thread_count();
	if (may_keep(s) && (s = keep(s)) == NULL)
		return;
	tally_large(-1, -(int64_t)s->bytes);
	release_span(s);
}

const struct slab *large_kept(void)
{
	return atomic_load_explicit(&kept, memory_order_relaxed);
}

void large_trim(void)
{
	struct slab *s = swap_kept(NULL);

	if (!s)
		return;
	atomic_store_explicit(&mem.kept, 0, memory_order_relaxed);
	tally(topology.count, 0, COUNT_cached, -(int64_t)s->bytes);
	tally_large(-1, -(int64_t)s->bytes);
	release_span(s);
}

size_t large_usable(const struct slab *s)
{
	return s->bytes;
}

static void set_bytes(struct slab *s, size_t size)
{
	size_t bytes = page_round(size);

	tally_large(0, (int64_t)bytes - (int64_t)s->bytes);
	s->bytes = bytes;
}

/* What is cut off goes back; the block stays where it is. */
static void shrink(struct slab *s, size_t size)
{
	size_t units = units_for(size);

	set_bytes(s, size);
	if (units == s->units)
		return;
	struct slab *rest = span_cut(s, units);

	slab_set_state(s, SPAN_LARGE);
	rest->bytes = slab_bytes(rest);
	rest->moved = s->moved;
	slab_set_node(rest, slab_node(s));
	release_span(rest);
	telemetry_map_own(s);
}

static bool grow_in_place(struct slab *s, size_t size)
{
	struct pool *p = pool_large();
	size_t units = units_for(size), have = s->units;
	enum span_found found;
	bool done = true;

	if (units > have) {
		lock_take(&p->lock);
		done = span_extend(&p->window, s, units, &found);
		lock_release(&p->lock);
		slab_set_state(s, SPAN_LARGE);
		if (done && found == SPAN_FOUND_DIRTY)
			leave_dirty(s + have, units - have);
		else if (done && found == SPAN_FOUND_CLEAN)
			mem_regret((units - have) << UNIT_SHIFT);
	}
	if (done) {
		set_bytes(s, size);
		telemetry_map_own(s);
	}
	return done;
}

/* The pages change place, not their contents. */
static struct slab *grow_by_move(struct slab *s, size_t size)
{
	struct slab *to = take_span(units_for(size), 1);

	if (!to)
		return NULL;
	/* All of the span: beyond .bytes may lie what a longer block wrote, and it is clean then.
	 */
	if (!os_move_range((void *)slab_addr(s), (void *)slab_addr(to), slab_bytes(s))) {
		/* Linux 6.1 and 6.12 have unmapped the place before they refuse (a block over
		 * several mappings, say). */
		if (!span_remap(&pool_large()->window, to))
			atomic_store_explicit(&mem.unmap, true, memory_order_relaxed);
		to->dirty = 0;
		put_span(to);
		return NULL;
	}
	to->bytes = s->bytes;
	to->cls = 0;
	to->moved = 1;
	slab_set_node(to, slab_node(s));
	atomic_store_explicit(&to->owner, NULL, memory_order_relaxed);
	slab_set_state(to, SPAN_LARGE);
	slab_write(to->part, UNIT_FIRST);
	slab_write(s->part, UNIT_FREE);
	set_bytes(to, size);
	telemetry_map_own(to);
	telemetry_map_own(s);
	/* The old range kept its mapping and lost its pages; laid afresh it joins its neighbours.
	 */
	slab_set_state(s, SPAN_BUSY);
	if (s->moved && !span_remap(&pool_large()->window, s))
		enter_dirty(s);
	else
		s->dirty = 0;
	put_span(s);
	return to;
}

void *large_resize(struct slab *s, size_t size)
{
	thread_count();
	if (size <= slab_bytes(s)) {
		if (size < slab_bytes(s) / 2 || units_for(size) == s->units)
			shrink(s, size);
		return (void *)slab_addr(s);
	}
	if (grow_in_place(s, size))
		return (void *)slab_addr(s);
	if (s->bytes < MOVE_MIN)
		return NULL;
	s = grow_by_move(s, size);
	return s ? (void *)slab_addr(s) : NULL;
}

/*
 * A block whose pages are wanted on one node (numaslab_malloc_node): they come in at once there.
 * strict: NULL unless all of them are.
 */
void *large_on_node(size_t size, unsigned index, bool strict)
{
	bool zero;
	char *p = large_alloc(size, 1, &zero);

	if (!p || topology.count == 1 || topology.simulated || topology.silent ||
	    !layout_owns(&layout, (uintptr_t)p))
		return p;
	struct slab *s = slab_of((uintptr_t)p);
	size_t bytes = page_round(size);
	int r = os_set_policy(p, bytes, MPOL_PREFERRED, topology.number[index]);

	s->moved = 1; /* carries a policy: laid afresh when freed */
	if (r == 0 && (r = os_populate(p, bytes)) == 0)
		r = os_move_pages(p, bytes, topology.number[index]);
	if (r == 0 || !strict)
		return p;
	large_free(s);
	return NULL;
}
