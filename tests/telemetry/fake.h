/* SPDX-License-Identifier: MIT */
#ifndef TESTS_TELEMETRY_FAKE_H
#define TESTS_TELEMETRY_FAKE_H

/* The writer without the allocator: pools whose counters the test sets. */
#include "allocator/node.h"
#include "telemetry/publish.h"
#include "telemetry/ring.h"

/* `nodes` nodes, numbered 0, 2, 4...; files go to dir; published at the first tick, ticks at each
 * ms. */
void fake_init(unsigned nodes, const char *dir);

/* As the allocator's tally(). */
void fake_add(unsigned index, unsigned cls, enum counter c, int64_t delta);

/* A slab of cls is born on index with `used` objects out of it; and the reverse. */
void fake_slab_born(unsigned index, unsigned cls, unsigned used);
void fake_slab_dies(unsigned index, unsigned cls, unsigned used);

#endif
