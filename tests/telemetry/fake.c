/* SPDX-License-Identifier: MIT */
#include "tests/telemetry/fake.h"
#include "telemetry/pub.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BASE  ((uintptr_t)40 << 40) /* no memory is there: slabs are descriptors only */
#define UNITS ((size_t)1 << (FAKE_WINDOW_SHIFT - UNIT_SHIFT))

struct topology topology;
struct pool *pools;
struct mem mem;
struct layout layout;
tls_fast bool lock_forking;

void fake_init(unsigned nodes, const char *dir)
{
	unsigned n = nodes + 1;

	pools = aligned_alloc(CACHE_LINE, n * sizeof *pools);
	memset((void *)pools, 0, n * sizeof *pools);
	struct slab *table = aligned_alloc(CACHE_LINE, n * UNITS * sizeof *table);
	memset((void *)table, 0, n * UNITS * sizeof *table);
	layout.base = BASE;
	layout.window_shift = FAKE_WINDOW_SHIFT;
	layout.window_count = n;
	layout.span = (uintptr_t)n << FAKE_WINDOW_SHIFT;
	layout.table = (uintptr_t)table;
	topology.count = nodes;
	for (unsigned i = 0; i < n; i++) {
		pools[i].index = i;
		pools[i].window.first = table + i * UNITS;
		pools[i].window.units = UNITS;
	}
	for (unsigned i = 0; i < nodes; i++)
		topology.number[i] = (int16_t)(2 * i);
	snprintf(tunables.dir, sizeof tunables.dir, "%s", dir);
	tunables.publish_after_ms = 0;
	tunables.tick_ms = 1;
}

void fake_add(unsigned index, unsigned cls, enum counter c, int64_t delta)
{
	atomic_fetch_add_explicit(&pools[index].count[cls][c], (uint64_t)delta,
				  memory_order_relaxed);
	telemetry_mirror(index, cls, c, &pools[index].count[cls][c]);
}

static void map_units(const struct slab *s)
{
	for (unsigned i = 0; i < s->units; i++)
		telemetry_map_own(&s[i]);
}

struct slab *fake_slab_born(unsigned index, unsigned cls, unsigned used)
{
	struct window *w = &pools[index].window;
	size_t bytes = class_slab_units(cls) * UNIT_SIZE;
	struct slab *s = w->first + atomic_fetch_add(&w->top, class_slab_units(cls));

	slab_init(s, cls, index);
	slab_set_part(s, UNIT_FIRST);
	fake_add(index, cls, COUNT_active, 1);
	fake_add(index, cls, COUNT_slots, (int64_t)(bytes / class_size(cls)));
	fake_add(index, cls, COUNT_held, (int64_t)bytes);
	fake_add(index, cls, COUNT_node_new, 1);
	map_units(s);
	fake_slab_use(s, used);
	return s;
}

void fake_slab_use(struct slab *s, unsigned used)
{
	int64_t more = (int64_t)used - s->tallied;

	slab_write(s->tallied, (uint16_t)used);
	tally_used(s, more);
}

void fake_slab_dies(struct slab *s, bool kept)
{
	unsigned index = s->node, cls = s->cls;
	size_t bytes = slab_bytes(s);

	slab_set_part(s, kept ? UNIT_KEPT : UNIT_FREE);
	fake_add(index, cls, COUNT_used, -(int64_t)s->tallied);
	fake_add(index, cls, COUNT_held, -(int64_t)bytes);
	fake_add(index, cls, COUNT_slots, -(int64_t)(bytes / class_size(cls)));
	fake_add(index, cls, COUNT_active, -1);
	if (kept) {
		fake_add(index, 0, COUNT_held, (int64_t)bytes);
		fake_add(index, 0, COUNT_empty, s->units);
	} else {
		fake_add(index, 0, COUNT_released, (int64_t)bytes);
	}
	map_units(s);
}

struct slab *fake_large(unsigned units)
{
	struct window *w = &pools[topology.count].window;
	struct slab *s = w->first + atomic_fetch_add(&w->top, units);

	slab_write(s->units, units);
	slab_write(s->part, UNIT_FIRST);
	fake_add(topology.count, 0, COUNT_active, 1);
	fake_add(topology.count, 0, COUNT_used, (int64_t)(units * UNIT_SIZE));
	telemetry_map_own(s);
	return s;
}

uint64_t fake_map_word(const struct slab *s)
{
	struct map_writer *m = atomic_load(&telemetry_words->map);
	size_t unit = (size_t)(s - (struct slab *)layout.table);
	const uint64_t *page = m ? atomic_load(&m->dir[unit / 512]) : NULL;

	return page && page != MAP_LOST ? ring_load(page + unit % 512) : 0;
}

/* In numbers that stand here alone. */
uint64_t fake_map_truth(const struct slab *s)
{
	uint64_t remote = atomic_load(&s->remote), births = (uint64_t)s->births << 48;
	unsigned window = (unsigned)((size_t)(s - (struct slab *)layout.table) / UNITS);

	if (window == topology.count)
		return s->part == 2 ? (uint64_t)s->units << 32 | window << 16 | 6 : 0;
	if (s->part == 0)
		return births;
	if (s->part == 1)
		return births | window << 16 | 4;
	if (s->part > 2)
		return births | (uint64_t)(s->part - 3) << 32 | 5;
	uint64_t used = s->tallied, state = remote >> 48 & 3;
	if (state == 2)
		used -= (remote >> 16 & 0xffff) / s->step * s->step;
	return births | used << 32 | (unsigned)s->node << 16 | (unsigned)s->cls << 8 |
	       (unsigned)s->misplaced << 3 |
	       (state == 0   ? 1
		: state == 1 ? 3
			     : 2);
}

struct fake_observe fake_observe;
struct observe observe; /* a step is always due */

void observe_ask(uint64_t request, uint64_t end_ms)
{
	fake_observe.request = request;
	fake_observe.end_ms = end_ms;
	fake_observe.asked++;
}

void observe_step(uint64_t now_ms)
{
	(void)now_ms;
	fake_observe.ticks++;
}

void observe_look(struct observe_report *to)
{
	*to = fake_observe.report;
}
