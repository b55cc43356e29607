/* SPDX-License-Identifier: MIT */
/* The running machine as libnuma sees it. */
#include "tools/machine.h"

#ifndef HAVE_LIBNUMA

bool machine_read_libnuma(struct machine *m)
{
	*m = (struct machine){0};
	return false;
}

#else

#include <numa.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* libnuma prints by itself where a file is missing; the answer says enough. */
void numa_error(char *where)
{
	(void)where;
}

void numa_warn(int num, char *format, ...)
{
	(void)num;
	(void)format;
}

/* The set bits as 0-3,8. */
static void mask_text(const struct bitmask *mask, char *buf, size_t size)
{
	size_t used = 0;

	*buf = 0;
	for (unsigned i = 0; i < mask->size; i++) {
		unsigned first = i;
		int n;

		if (!numa_bitmask_isbitset(mask, i))
			continue;
		while (i + 1 < mask->size && numa_bitmask_isbitset(mask, i + 1))
			i++;
		n = snprintf(buf + used, size - used, first == i ? "%s%u" : "%s%u-%u",
			     used ? "," : "", first, i);
		if (n < 0 || used + (size_t)n >= size) {
			strcpy(buf + size - 4, "...");
			return;
		}
		used += (size_t)n;
	}
}

static void read_node(struct node *n, struct bitmask *cpus, const struct bitmask *allowed)
{
	long long free = 0, size = numa_node_size64(n->id, &free);

	n->memory = size > 0 ? (uint64_t)size : 0;
	n->free = free > 0 ? (uint64_t)free : 0;
	n->has_memory = n->memory > 0;
	n->allowed = numa_bitmask_isbitset(allowed, (unsigned)n->id);
	numa_bitmask_clearall(cpus);
	if (!numa_node_to_cpus(n->id, cpus)) {
		n->has_cpu = numa_bitmask_weight(cpus) > 0;
		mask_text(cpus, n->cpus, sizeof n->cpus);
	}
}

bool machine_read_libnuma(struct machine *m)
{
	struct bitmask *allowed, *cpus;

	*m = (struct machine){.source = "libnuma"};
	if (numa_available() < 0)
		return false;
	m->nodes = calloc(MACHINE_NODES, sizeof *m->nodes);
	cpus = numa_allocate_cpumask();
	allowed = numa_get_mems_allowed();
	for (int id = 0; m->nodes && id <= numa_max_node() && id < MACHINE_NODES; id++) {
		if (!numa_bitmask_isbitset(numa_nodes_ptr, (unsigned)id))
			continue;
		m->nodes[m->count].id = id;
		read_node(&m->nodes[m->count++], cpus, allowed);
	}
	numa_bitmask_free(cpus);
	numa_bitmask_free(allowed);
	if (m->count)
		m->distances = calloc(m->count * m->count, sizeof *m->distances);
	if (!m->distances) {
		machine_free(m);
		return false;
	}
	for (size_t i = 0; i < m->count; i++)
		for (size_t j = 0; j < m->count; j++)
			m->distances[i * m->count + j] =
			    numa_distance(m->nodes[i].id, m->nodes[j].id);
	return true;
}

#endif
