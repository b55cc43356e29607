/* SPDX-License-Identifier: MIT */
/*
 * The running machine as libnuma sees it.  libnuma is opened only here and not linked: its
 * constructor makes system calls that a seccomp filter may kill for, and costs each start of
 * `numaslab run` a walk through /sys.
 */
#include "tools/machine.h"

#ifndef HAVE_LIBNUMA

bool machine_read_libnuma(struct machine *m)
{
	*m = (struct machine){0};
	return false;
}

#else

#include <dlfcn.h>
#include <numa.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FUNCTIONS(X)                                                                               \
	X(numa_available)                                                                          \
	X(numa_max_node)                                                                           \
	X(numa_node_size64)                                                                        \
	X(numa_node_to_cpus)                                                                       \
	X(numa_distance)                                                                           \
	X(numa_get_mems_allowed)                                                                   \
	X(numa_allocate_cpumask)                                                                   \
	X(numa_bitmask_isbitset)                                                                   \
	X(numa_bitmask_clearall)                                                                   \
	X(numa_bitmask_weight)                                                                     \
	X(numa_bitmask_free)

struct libnuma {
#define X(function) __typeof__(&function) function;
	FUNCTIONS(X)
#undef X
	struct bitmask **nodes; /* the variable numa_nodes_ptr: the nodes that exist */
};

static bool libnuma_open(struct libnuma *numa)
{
	void *handle;

	/* Without the directory it would complain on stderr. */
	if (access("/sys/devices/system/node", R_OK | X_OK))
		return false;
	handle = dlopen("libnuma.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!handle)
		return false;
#define X(function)                                                                                \
	*(void **)&numa->function = dlsym(handle, #function);                                      \
	if (!numa->function)                                                                       \
		return false;
	FUNCTIONS(X)
#undef X
	numa->nodes = dlsym(handle, "numa_nodes_ptr");
	return numa->nodes && *numa->nodes && numa->numa_available() >= 0;
}

/* The set bits as 0-3,8. */
static void mask_text(const struct libnuma *numa, const struct bitmask *mask, char *buf,
		      size_t size)
{
	size_t used = 0;

	*buf = 0;
	for (unsigned i = 0; i < mask->size; i++) {
		unsigned first = i;
		int n;

		if (!numa->numa_bitmask_isbitset(mask, i))
			continue;
		while (i + 1 < mask->size && numa->numa_bitmask_isbitset(mask, i + 1))
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

static void read_node(const struct libnuma *numa, struct node *n, struct bitmask *cpus,
		      const struct bitmask *allowed)
{
	long long unused = 0, size = numa->numa_node_size64(n->id, &unused);

	n->memory = size > 0 ? (uint64_t)size : 0;
	n->free = unused > 0 ? (uint64_t)unused : 0;
	n->has_memory = n->memory > 0;
	n->allowed = numa->numa_bitmask_isbitset(allowed, (unsigned)n->id);
	numa->numa_bitmask_clearall(cpus);
	if (!numa->numa_node_to_cpus(n->id, cpus)) {
		n->has_cpu = numa->numa_bitmask_weight(cpus) > 0;
		mask_text(numa, cpus, n->cpus, sizeof n->cpus);
	}
}

static void read_nodes(const struct libnuma *numa, struct machine *m)
{
	struct bitmask *cpus = numa->numa_allocate_cpumask();
	struct bitmask *allowed = numa->numa_get_mems_allowed();

	for (int id = 0; id <= numa->numa_max_node() && id < MACHINE_NODES; id++) {
		if (!numa->numa_bitmask_isbitset(*numa->nodes, (unsigned)id))
			continue;
		m->nodes[m->count].id = id;
		read_node(numa, &m->nodes[m->count++], cpus, allowed);
	}
	numa->numa_bitmask_free(cpus);
	numa->numa_bitmask_free(allowed);
}

bool machine_read_libnuma(struct machine *m)
{
	struct libnuma numa;

	*m = (struct machine){.source = "libnuma"};
	if (!libnuma_open(&numa))
		return false;
	m->nodes = calloc(MACHINE_NODES, sizeof *m->nodes);
	if (m->nodes)
		read_nodes(&numa, m);
	if (m->count)
		m->distances = calloc(m->count * m->count, sizeof *m->distances);
	if (!m->distances) {
		machine_free(m);
		return false;
	}
	for (size_t i = 0; i < m->count; i++)
		for (size_t j = 0; j < m->count; j++)
			m->distances[i * m->count + j] =
			    numa.numa_distance(m->nodes[i].id, m->nodes[j].id);
	return true;
}

#endif
