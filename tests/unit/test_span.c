/* SPDX-License-Identifier: MIT */
/* Spans of a window: random use against a plain array of units. */
#include "tests/unit/child.h"
#include "tests/unit/os_fake.h"
#include "allocator/alloc.h"

#include <errno.h>
#include <sys/mman.h>

#define UNITS 1024u /* 64 MiB */
#define HELD  200u

enum { BEYOND, CLEAN, DIRTY, TAKEN };

static uint8_t unit[UNITS];
static struct slab *held[HELD];
static struct window *w;
static uint64_t seed = 1;

static unsigned pick(unsigned below)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)((seed >> 33) % below);
}

static void boot_one_window(void)
{
	static char *const envp[] = {"NUMASLAB_WINDOW=64M", "NUMASLAB_TELEMETRY=0", NULL};

	fake_machine(1, 512);
	fake.envp = envp;
	CHECK(alloc_boot());
	w = &pools[0].window;
	CHECK(w->units == UNITS && w->top == 0);
}

static size_t at(const struct slab *s)
{
	return (size_t)(s - w->first);
}

static void mark(size_t from, size_t n, uint8_t was, uint8_t is)
{
	for (size_t i = from; i < from + n; i++) {
		CHECK(i < UNITS && (unit[i] == was || was == UINT8_MAX), "unit %zu is %u, not %u",
		      i, unit[i], was);
		unit[i] = is;
	}
}

/* Maximal runs of the array are exactly the free spans, each in its bin. */
static void compare(void)
{
	size_t free_spans = 0, in_bins = 0;

	for (size_t i = 0; i < w->top;) {
		const struct slab *s = w->first + i;
		size_t n = 1;

		if (unit[i] == TAKEN) {
			i += s->units;
			continue;
		}
		while (i + n < w->top && unit[i + n] == unit[i])
			n++;
		CHECK(unit[i] != BEYOND, "unit %zu is lost", i);
		CHECK(s->state == SPAN_FREE && s->units == n, "unit %zu: %u units, run of %zu", i,
		      s->units, n);
		CHECK(s->dirty == (unit[i] == DIRTY) && s[n - 1].head_units == n - 1);
		free_spans++;
		i += n;
	}
	for (size_t i = w->top; i < UNITS; i++)
		CHECK(unit[i] == BEYOND);
	for (unsigned d = 0; d < 2; d++)
		for (unsigned bin = 0; bin < SPAN_BINS; bin++)
			for (struct slab *s = (d ? &w->dirty : &w->clean)->head[bin]; s;
			     s = s->next)
				in_bins += span_bin_of(s->units) == bin;
	CHECK(in_bins == free_spans, "%zu in bins, %zu free", in_bins, free_spans);
}

static bool fits(size_t n, size_t align, bool dirty_only)
{
	for (size_t i = 0; i + n <= UNITS; i++) {
		size_t j = 0;

		if ((i + (layout.base >> UNIT_SHIFT)) % align)
			continue;
		while (j < n && unit[i + j] != TAKEN && unit[i + j] == unit[i] &&
		       (!dirty_only || unit[i + j] == DIRTY))
			j++;
		if (j == n)
			return true;
	}
	return false;
}

/* Long enough in any alignment, so that the bins must find it. */
static bool must_fit(size_t n, size_t align)
{
	size_t need = span_bin_for(n + align - 1) < 8 ? n + align - 1 : (n + align) * 5 / 4 + 1;

	return fits(need, 1, false);
}

static enum span_found found_as(uint8_t was)
{
	return was == DIRTY ? SPAN_FOUND_DIRTY : was == CLEAN ? SPAN_FOUND_CLEAN : SPAN_FOUND_NEW;
}

static void take(unsigned slot)
{
	size_t n = pick(8) ? 1 + pick(12) : 1 + pick(150),
	       align = (size_t)1 << (pick(4) ? 0 : pick(6));
	bool possible = fits(n, align, false), sure = must_fit(n, align);
	enum span_found found;
	struct slab *s = span_take(w, n, align, SPAN_ANY, &found);

	if (!s) {
		CHECK(!sure, "%zu units aligned to %zu refused", n, align);
		return;
	}
	CHECK(possible, "where from?");
	CHECK(s->state == SPAN_BUSY && s->units == n);
	CHECK((slab_addr(s) >> UNIT_SHIFT) % align == 0, "not aligned");
	uint8_t was = unit[at(s)];
	CHECK(s->dirty == (was == DIRTY) && found == found_as(was));
	/* What alignment left below the frontier is clean and free now. */
	if (was == BEYOND)
		for (size_t i = at(s); i > 0 && unit[i - 1] == BEYOND; i--)
			unit[i - 1] = CLEAN;
	mark(at(s), n, was, TAKEN);
	held[slot] = s;
}

static void put(unsigned slot)
{
	struct slab *s = held[slot];

	s->dirty = (uint8_t)(pick(3) != 0);
	mark(at(s), s->units, TAKEN, s->dirty ? DIRTY : CLEAN);
	span_put(w, s);
	held[slot] = NULL;
}

static void extend(unsigned slot)
{
	struct slab *s = held[slot];
	size_t have = s->units, n = have + 1 + pick(10), i = at(s) + have;
	size_t room = 0;
	uint8_t was = i < UNITS ? unit[i] : TAKEN;
	enum span_found found;

	while (was != TAKEN && i + room < UNITS && room < n - have && unit[i + room] == was)
		room++;
	bool can = room == n - have, did = span_extend(w, s, n, &found);

	CHECK(did == can, "extend %zu to %zu", have, n);
	CHECK(!did || found == found_as(was));
	CHECK(s->units == (did ? n : have));
	if (did)
		mark(i, n - have, UINT8_MAX, TAKEN);
}

static void cut(unsigned slot, unsigned empty)
{
	struct slab *s = held[slot];

	if (s->units < 2 || held[empty])
		return;
	size_t n = 1 + pick(s->units - 1), more = s->units - n;
	struct slab *rest = span_cut(s, n);

	CHECK(rest == s + n && s->units == n && rest->units == more && rest->state == SPAN_BUSY);
	held[empty] = rest;
}

static void pop_dirty(unsigned empty)
{
	size_t longest = 0, run = 0;

	if (held[empty])
		return;
	for (size_t i = 0; i < UNITS; i++) {
		run = unit[i] == DIRTY ? run + 1 : 0;
		longest = max_size(longest, run);
	}
	struct slab *s = span_pop_dirty(w);
	CHECK(!s == !longest);
	if (!s)
		return;
	CHECK(span_bin_of(s->units) == span_bin_of(longest), "not of the largest bin");
	mark(at(s), s->units, DIRTY, TAKEN);
	held[empty] = s;
}

static void random_use(const void *arg)
{
	seed = *(const uint64_t *)arg;
	boot_one_window();
	for (unsigned i = 0; i < 60000; i++) {
		unsigned slot = pick(i % 3000 < 1500 ? HELD : HELD / 10), what = pick(16);

		if (!held[slot])
			what < 14 ? take(slot) : pop_dirty(slot);
		else if (what < 9)
			put(slot);
		else if (what < 12)
			extend(slot);
		else
			cut(slot, pick(HELD));
		if (i % 50 == 0)
			compare();
	}
	for (unsigned i = 0; i < HELD; i++)
		if (held[i]) {
			held[i]->dirty = 0;
			mark(at(held[i]), held[i]->units, TAKEN, CLEAN);
			span_put(w, held[i]);
		}
	for (struct slab *s; (s = span_pop_dirty(w));) {
		mark(at(s), s->units, DIRTY, CLEAN);
		s->dirty = 0;
		span_put(w, s);
	}
	compare();
	CHECK(w->first->units == w->top, "all of it is one span again");
}

static void the_window_s_end(const void *arg)
{
	enum span_found found;

	(void)arg;
	boot_one_window();
	CHECK(!span_take(w, UNITS + 1, 1, SPAN_ANY, &found));
	CHECK(!span_take(w, (size_t)1 << 46, 1, SPAN_ANY, &found));
	CHECK(!span_take(w, 1, (size_t)1 << 40, SPAN_ANY, &found));
	struct slab *s = span_take(w, UNITS, 1, SPAN_ANY, &found);
	CHECK(s && at(s) == 0 && !span_take(w, 1, 1, SPAN_ANY, &found) &&
	      !span_extend(w, s, UNITS + 1, &found));
	s->dirty = 0;
	span_put(w, s);
	CHECK(span_take(w, UNITS, 1, SPAN_ANY, &found) == s && found == SPAN_FOUND_CLEAN);
}

/* What alignment leaves at the frontier joins the free span before it. */
static void the_lead_joins(const void *arg)
{
	enum span_found found;

	(void)arg;
	boot_one_window();
	for (size_t align = 2; align <= 64; align *= 2) {
		struct slab *s = span_take(w, 3, 1, SPAN_ANY, &found);

		mark(at(s), 3, unit[at(s)], CLEAN);
		s->dirty = 0;
		span_put(w, s);
		s = span_take(w, 5, align, SPAN_ANY, &found);
		for (size_t i = at(s); i > 0 && unit[i - 1] == BEYOND; i--)
			unit[i - 1] = CLEAN;
		mark(at(s), 5, unit[at(s)], TAKEN);
		compare();
	}
}

static void a_refused_mapping_is_tried_with_less(const void *arg)
{
	enum span_found found;

	(void)arg;
	boot_one_window();
	fake_fail(FAKE_map_at, 1, 1000, ENOMEM, false);
	CHECK(!span_take(w, 1, 1, SPAN_ANY, &found) && w->top == 0);
	fake_heal();
	CHECK(span_take(w, 512, 1, SPAN_ANY, &found));
	/* The next growth asks for an eighth more; that much is refused, one unit is not. */
	fake_fail(FAKE_map_at, 2, 1, ENOMEM, false);
	CHECK(span_take(w, 1, 1, SPAN_ANY, &found) && w->committed >= 513);
}

/* Somebody mapped memory where the window would grow: it is stepped over and never becomes ours. */
static void a_foreign_mapping(const void *arg)
{
	enum span_found found;

	(void)arg;
	boot_one_window();
	struct slab *a = span_take(w, 20, 1, SPAN_ANY, &found);
	char *there = (char *)slab_addr(w->first + w->committed);
	size_t lo = w->committed, hi = lo + 1, held_units = 0;
	CHECK(a && mmap(there, UNIT_SIZE, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == there);
	for (unsigned i = 0; i < 100; i++) {
		struct slab *s = span_take(w, 5, 1, SPAN_ANY, &found);

		CHECK(s && (at(s) + 5 <= lo || at(s) >= hi), "over the foreign mapping");
		held[i] = s;
	}
	for (unsigned i = 0; i < 100; i++) {
		held[i]->dirty = 0;
		span_put(w, held[i]);
	}
	a->dirty = 0;
	span_put(w, a);
	for (struct slab *s; held_units < UNITS && (s = span_take(w, 1, 1, SPAN_ANY, &found));
	     held_units++) {
		CHECK(at(s) != lo, "the foreign mapping was handed out");
		*(char *)slab_addr(s) = 1; /* it is mapped */
	}
	CHECK(held_units >= UNITS - 2 * 32, "%zu units lost", UNITS - held_units);
}

static void random_use_agrees_with_an_array(void **state)
{
	static const uint64_t seeds[] = {1, 2, 3, 4, 5, 6};

	(void)state;
	for (unsigned i = 0; i < 6; i++)
		assert_child(random_use, &seeds[i]);
}

static void bins_are_ordered(void **state)
{
	(void)state;
	for (size_t n = 1; n < 100000; n++) {
		assert_true(span_bin_of(n) < SPAN_BINS);
		assert_true(span_bin_of(n + 1) >= span_bin_of(n));
		/* Every span of the bin span_bin_for(n) is long enough. */
		assert_true(span_bin_for(n) >= span_bin_of(n));
		if (n > 1)
			assert_true(span_bin_of(n - 1) < span_bin_for(n));
	}
	assert_int_equal(span_bin_of((size_t)1 << 40), SPAN_BINS - 1);
}

static void the_end_of_the_window(void **state)
{
	(void)state;
	assert_child(the_window_s_end, NULL);
	assert_child(the_lead_joins, NULL);
}

static void a_refused_mapping(void **state)
{
	(void)state;
	assert_child(a_refused_mapping_is_tried_with_less, NULL);
}

static void a_foreign_mapping_is_stepped_over(void **state)
{
	(void)state;
	assert_child(a_foreign_mapping, NULL);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(bins_are_ordered),
    cmocka_unit_test(random_use_agrees_with_an_array),
    cmocka_unit_test(the_end_of_the_window),
    cmocka_unit_test(a_refused_mapping),
    cmocka_unit_test(a_foreign_mapping_is_stepped_over),
};

TAP_MAIN(tests)
