/* SPDX-License-Identifier: MIT */
#ifndef TESTS_TELEMETRY_FAKE_H
#define TESTS_TELEMETRY_FAKE_H

/* The writer without the allocator: pools and descriptors that the test sets; no memory of slabs.
 */
#include "allocator/node.h"
#include "allocator/observe.h"
#include "telemetry/publish.h"
#include "telemetry/ring.h"

#define FAKE_WINDOW_SHIFT 30u

/* `nodes` nodes, numbered 0, 2, 4...; files go to dir; published at the first tick, ticks at each
 * ms. */
void fake_init(unsigned nodes, const char *dir);

/* As the allocator's tally(). */
void fake_add(unsigned index, unsigned cls, enum counter c, int64_t delta);

/* The next units of index's window become a slab of cls with `used` objects out of it. */
struct slab *fake_slab_born(unsigned index, unsigned cls, unsigned used);
void fake_slab_use(struct slab *s, unsigned used);

/* Its units are free then, their memory kept or given back. */
void fake_slab_dies(struct slab *s, bool kept);

struct slab *fake_large(unsigned units);

/* What was asked of the allocator last, and what it says of it. */
extern struct fake_observe {
	uint64_t request, end_ms;
	unsigned long asked, ticks;
	struct observe_report report;
} fake_observe;

/* What the map says of a unit, by the writer's own way to it, and what it should say. */
uint64_t fake_map_word(const struct slab *s);
uint64_t fake_map_truth(const struct slab *s);

#endif
