/* SPDX-License-Identifier: MIT */
#include "tests/telemetry/fake.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct topology topology;
struct pool *pools;
struct mem mem;

void fake_init(unsigned nodes, const char *dir)
{
	pools = aligned_alloc(CACHE_LINE, (nodes + 1) * sizeof *pools);
	memset((void *)pools, 0, (nodes + 1) * sizeof *pools);
	topology.count = nodes;
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

void fake_slab_born(unsigned index, unsigned cls, unsigned used)
{
	size_t bytes = class_slab_units(cls) * UNIT_SIZE;

	fake_add(index, cls, COUNT_active, 1);
	fake_add(index, cls, COUNT_slots, (int64_t)(bytes / class_size(cls)));
	fake_add(index, cls, COUNT_held, (int64_t)bytes);
	fake_add(index, cls, COUNT_node_new, 1);
	fake_add(index, cls, COUNT_used, used);
}

void fake_slab_dies(unsigned index, unsigned cls, unsigned used)
{
	size_t bytes = class_slab_units(cls) * UNIT_SIZE;

	fake_add(index, cls, COUNT_used, -(int64_t)used);
	fake_add(index, cls, COUNT_held, -(int64_t)bytes);
	fake_add(index, cls, COUNT_slots, -(int64_t)(bytes / class_size(cls)));
	fake_add(index, cls, COUNT_active, -1);
	fake_add(index, 0, COUNT_released, (int64_t)bytes);
}
