/* SPDX-License-Identifier: MIT */
#include "allocator/span.h"
#include "allocator/observe.h"

#include <numaif.h>

#define TABLE_UNITS   512u /* whose descriptors are mapped at once: 64 KiB of them */
#define COMMIT_UNITS  32u  /* 2 MiB: the least that becomes writable at once */
#define SEARCH_EFFORT 8	   /* spans looked at in a bin where some are too short */

unsigned span_bin_of(size_t n)
{
	if (n < 8)
		return (unsigned)n;
	unsigned order = log2_floor(n); /* >= 3 */

	unsigned bin = 8 + (order - 3) * 4 + (unsigned)(n >> (order - 2) & 3);
	return bin < SPAN_BINS ? bin : SPAN_BINS - 1;
}

unsigned span_bin_for(size_t n)
{
	if (n < 8)
		return (unsigned)n;
	return span_bin_of(n + ((size_t)1 << (log2_floor(n) - 2)) - 1);
}

static void bins_add(struct span_bins *b, struct slab *s)
{
	unsigned bin = span_bin_of(s->units);

	s->prev = NULL;
	s->next = b->head[bin];
	if (s->next)
		s->next->prev = s;
	b->head[bin] = s;
	b->map[bin / 64] |= (uint64_t)1 << (bin % 64);
}

static void bins_remove(struct span_bins *b, struct slab *s)
{
	unsigned bin = span_bin_of(s->units);

	if (s->next)
		s->next->prev = s->prev;
	if (s->prev)
		s->prev->next = s->next;
	else
		b->head[bin] = s->next;
	if (!b->head[bin])
		b->map[bin / 64] &= ~((uint64_t)1 << (bin % 64));
}

/* The first bin at or above `bin` that has a span; SPAN_BINS: none. */
static unsigned bins_next(const struct span_bins *b, unsigned bin)
{
	if (bin >= SPAN_BINS)
		return SPAN_BINS;
	if (bin < 64) {
		uint64_t map = b->map[0] >> bin << bin;

		if (map)
			return (unsigned)__builtin_ctzl(map);
		bin = 64;
	}
	uint64_t map = b->map[1] >> (bin - 64) << (bin - 64);
	return map ? 64 + (unsigned)__builtin_ctzl(map) : SPAN_BINS;
}

/* Units to leave before the span so that the rest starts aligned, as an address. */
static size_t lead_of(const struct slab *s, size_t align)
{
	return -(slab_addr(s) >> UNIT_SHIFT) & (align - 1);
}

static bool is_near(const struct slab *s, unsigned near)
{
	return near == SPAN_ANY || slab_node(s) == near;
}

static struct slab *bins_find(const struct span_bins *b, size_t n, size_t align, unsigned near)
{
	size_t need = n + align - 1;
	unsigned bin = span_bin_of(n);
	int effort = SEARCH_EFFORT;

	/* Its own bin may hold one long enough; from bin_for() on, all are. */
	for (struct slab *s = b->head[bin]; s && effort-- > 0; s = s->next)
		if (s->units >= n + lead_of(s, align) && is_near(s, near))
			return s;
	bin = span_bin_for(need);
	while ((bin = bins_next(b, bin)) < SPAN_BINS && effort-- > -SEARCH_EFFORT) {
		struct slab *s = b->head[bin++];

		if (s->units >= n + lead_of(s, align) && is_near(s, near))
			return s;
	}
	return NULL;
}

static void mark_free(struct slab *s, size_t n, bool dirty)
{
	slab_set_state(s, SPAN_FREE);
	s->dirty = dirty;
	slab_write(s->units, (uint32_t)n);
	s->head_units = 0;
	slab_set_state(&s[n - 1], SPAN_FREE);
	s[n - 1].dirty = dirty;
	s[n - 1].head_units = (uint32_t)(n - 1);
	if (n > 1)
		slab_write(s[n - 1].units, 0);
}

static void mark_taken(struct slab *s, size_t n)
{
	slab_set_state(s, SPAN_BUSY);
	slab_write(s->units, (uint32_t)n); /* telemetry_map() */
	s->head_units = 0;
	if (n > 1) {
		slab_set_state(&s[n - 1], SPAN_INNER);
		s[n - 1].head_units = (uint32_t)(n - 1);
	}
}

static struct span_bins *bins_for(struct window *w, bool dirty)
{
	return dirty ? &w->dirty : &w->clean;
}

/* Takes `lead` units off the front and what is beyond lead + n off the back, back to the bins. */
static struct slab *split(struct window *w, struct slab *s, size_t lead, size_t n)
{
	struct span_bins *b = bins_for(w, s->dirty);
	size_t have = s->units;
	bool dirty = s->dirty;

	bins_remove(b, s);
	if (lead) {
		mark_free(s, lead, dirty);
		bins_add(b, s);
		s += lead;
	}
	if (have > lead + n) {
		mark_free(s + n, have - lead - n, dirty);
		bins_add(b, s + n);
	}
	mark_taken(s, n);
	s->dirty = dirty;
	return s;
}

static uintptr_t window_addr(const struct window *w)
{
	return slab_addr(w->first);
}

/* The descriptors of units up to `to`. */
static bool map_table(struct window *w, size_t to)
{
	to = min_size(round_up(to, TABLE_UNITS), w->units);
	if (to <= w->tabled)
		return true;
	void *at = w->first + w->tabled;
	size_t bytes = (to - w->tabled) * SLAB_DESC_SIZE;

	if (!os_map_at(at, bytes))
		return false;
	if (w->policy == MPOL_PREFERRED && !topology.silent)
		os_set_policy(at, bytes, w->policy, w->node);
	w->tabled = to;
	return true;
}

/* What a fresh mapping of the window wants besides. */
static void window_dress(const struct window *w, void *at, size_t bytes)
{
	if (w->policy >= 0 && !topology.silent)
		os_set_policy(at, bytes, w->policy, w->node);
	if (w->no_huge)
		os_no_huge(at, bytes);
}

static bool map_units(struct window *w, size_t to)
{
	to = min_size(round_up(to, COMMIT_UNITS), w->units);
	size_t bytes = (to - w->committed) << UNIT_SHIFT;
	void *at = (void *)(window_addr(w) + (w->committed << UNIT_SHIFT));

	if (!map_table(w, to) || !os_map_at(at, bytes))
		return false;
	window_dress(w, at, bytes);
	w->committed = to;
	return true;
}

/* Makes units up to `until` usable: an eighth more than there is, or just enough. */
static bool window_grow(struct window *w, size_t until)
{
	return until <= w->committed ||
	       map_units(w, max_size(until, w->committed + w->committed / 8)) ||
	       map_units(w, until);
}

/* Somebody else's mapping stands at the frontier: go on behind it.  false: nothing stands there. */
static bool window_skip(struct window *w)
{
	size_t step = min_size(COMMIT_UNITS, w->units - w->committed);
	uintptr_t at = window_addr(w) + (w->committed << UNIT_SHIFT);

	if (step == 0 || os_range_is_free(at, step << UNIT_SHIFT) ||
	    !map_table(w, w->committed + step))
		return false;
	/* What we have before it is free; the rest is nobody's for good. */
	if (w->top < w->committed) {
		struct slab *rest = w->first + w->top;

		mark_taken(rest, w->committed - w->top);
		rest->dirty = 0;
		w->top = w->committed;
		span_put(w, rest);
	}
	mark_taken(w->first + w->committed, step);
	w->committed += step;
	w->top = w->committed;
	return true;
}

static struct slab *take_frontier(struct window *w, size_t n, size_t align)
{
	struct slab *s = w->first + w->top;
	size_t lead = lead_of(s, align);

	if (n > w->units || w->top + lead > w->units - n)
		return NULL;
	if (!window_grow(w, w->top + lead + n))
		return window_skip(w) ? take_frontier(w, n, align) : NULL;
	if (lead) {
		mark_taken(s, lead);
		s->dirty = 0;
		w->top += lead;
		span_put(w, s);
		s = w->first + w->top;
	}
	w->top += n;
	mark_taken(s, n);
	s->dirty = 0;
	return s;
}

struct slab *span_take(struct window *w, size_t n, size_t align, unsigned near,
		       enum span_found *found)
{
	struct slab *s = bins_find(&w->dirty, n, align, near);

	*found = SPAN_FOUND_DIRTY;
	if (!s) {
		*found = SPAN_FOUND_CLEAN;
		s = bins_find(&w->clean, n, align, SPAN_ANY);
	}
	if (s)
		return split(w, s, lead_of(s, align), n);
	*found = SPAN_FOUND_NEW;
	return take_frontier(w, n, align);
}

/* Whether the unit is the first or last of a free span of the kind. */
static bool is_free_edge(const struct window *w, const struct slab *s, bool dirty)
{
	return s >= w->first && s < w->first + w->top &&
	       __atomic_load_n(&s->state, __ATOMIC_RELAXED) == SPAN_FREE && s->dirty == dirty;
}

void span_put(struct window *w, struct slab *s)
{
	bool dirty = s->dirty;
	struct span_bins *b = bins_for(w, dirty);
	size_t n = s->units;

	slab_set_state(s, SPAN_FREE); /* inside a longer span nobody marks it again */
	if (is_free_edge(w, s - 1, dirty)) {
		struct slab *before = s - 1 - s[-1].head_units;

		bins_remove(b, before);
		n += before->units;
		s = before;
	}
	if (is_free_edge(w, s + n, dirty)) {
		struct slab *after = s + n;

		bins_remove(b, after);
		n += after->units;
	}
	mark_free(s, n, dirty);
	bins_add(b, s);
}

struct slab *span_pop_dirty(struct window *w)
{
	for (unsigned half = 2; half-- > 0;) {
		uint64_t map = w->dirty.map[half];

		if (map) {
			struct slab *s = w->dirty.head[half * 64 + log2_floor(map)];

			bins_remove(&w->dirty, s);
			mark_taken(s, s->units);
			s->dirty = 1;
			return s;
		}
	}
	return NULL;
}

static bool all_near(const struct slab *s, size_t n, unsigned node)
{
	while (n > 0 && slab_node(s + n - 1) == node)
		n--;
	return n == 0;
}

bool span_extend(struct window *w, struct slab *s, size_t n, enum span_found *found)
{
	struct slab *after = s + s->units;
	size_t more = n - s->units;

	if (after == w->first + w->top) {
		if (w->top + more > w->units || !window_grow(w, w->top + more))
			return false;
		w->top += more;
		*found = SPAN_FOUND_NEW;
	} else if (is_free_edge(w, after, false) && after->units >= more && !mem_unmaps()) {
		split(w, after, 0, more);
		*found = SPAN_FOUND_CLEAN;
	} else if (is_free_edge(w, after, true) && after->units >= more &&
		   all_near(after, more, slab_node(s))) {
		split(w, after, 0, more);
		*found = SPAN_FOUND_DIRTY;
	} else {
		return false;
	}
	mark_taken(s, n);
	return true;
}

struct slab *span_cut(struct slab *s, size_t n)
{
	struct slab *rest = s + n;
	size_t more = s->units - n;

	mark_taken(s, n);
	mark_taken(rest, more);
	return rest;
}

void span_unmap_clean(struct window *w)
{
	size_t to = min_size(round_up(w->top, COMMIT_UNITS), w->committed);

	if (to < w->committed && os_unmap((void *)(window_addr(w) + (to << UNIT_SHIFT)),
					  (w->committed - to) << UNIT_SHIFT))
		w->committed = to;
	for (unsigned bin = 0; bin < SPAN_BINS; bin++)
		for (struct slab *s = w->clean.head[bin]; s; s = s->next) {
			observe_enter((void *)slab_addr(s), slab_bytes(s));
			os_unmap((void *)slab_addr(s), slab_bytes(s));
			observe_leave((void *)slab_addr(s));
		}
}

static bool map_afresh(const struct window *w, struct slab *s)
{
	void *at = (void *)slab_addr(s);

	observe_enter(at, slab_bytes(s));
	bool done = os_remap_fresh(at, slab_bytes(s));
	if (done)
		window_dress(w, at, slab_bytes(s));
	observe_leave(at);
	return done;
}

bool span_remap(const struct window *w, struct slab *s)
{
	if (mem_unmaps())
		return os_unmap((void *)slab_addr(s), slab_bytes(s));
	return map_afresh(w, s);
}

bool span_restore(const struct window *w, struct slab *s)
{
	return !mem_unmaps() || map_afresh(w, s);
}
