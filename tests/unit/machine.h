/* SPDX-License-Identifier: MIT */
#ifndef TEST_MACHINE_H
#define TEST_MACHINE_H

/* A booted allocator on a machine to order, and shorthands for looking at it. */

#include "tests/unit/audit.h"
#include "tests/unit/child.h"
#include "tests/unit/heap_user.h"
#include "tests/unit/os_fake.h"
#include "allocator/allocator.h"
#include "allocator/sim.h"

#include <errno.h>

/* The machine is there (fake_machine); the thread runs on its first node. */
static inline void machine_boot_two(const char *variable, const char *other)
{
	static char *envp[5];

	envp[0] = (char *)"NUMASLAB_WINDOW=256M";
	envp[1] = (char *)"NUMASLAB_TELEMETRY=0";
	envp[2] = (char *)variable;
	envp[3] = (char *)other;
	fake.envp = envp;
	fake_here = fake.node[0].number;
	CHECK(alloc_boot(), "boot");
	alloc_open_fast_paths();
	/* Where the kernel would say where we run. */
	if (topology.guarded)
		layout.where_offset =
		    (const char *)&fake_here - (const char *)__builtin_thread_pointer();
}

static inline void machine_boot(const char *variable)
{
	machine_boot_two(variable, NULL);
}

static inline void machine_start(unsigned nodes, unsigned mib)
{
	fake_machine(nodes, mib);
	machine_boot(NULL);
}

/* The node's free memory becomes the program's, or somebody's page cache. */
static inline void node_fill(unsigned node, long keep_pages)
{
	fake.node[node].pages = fake.node[node].used + fake.node[node].cache + keep_pages;
}

static inline void node_grow(unsigned node, long pages)
{
	fake.node[node].pages += pages;
}

/* The next attempts are not put off by what failed before. */
static inline void time_passes(void)
{
	fake.now_ms += 60000;
}

static inline long count_of(unsigned node, enum counter c)
{
	return (long)audit_counter(node, c);
}

/* A refill ladder's steps: taken since the last call, all nodes together. */
struct taken {
	long step[NUMASLAB_STEPS];
};

static inline struct taken steps_taken(void)
{
	static struct taken before;
	struct taken now = {{0}}, since;

	for (unsigned i = 0; i < topology.count; i++)
		for (unsigned k = 0; k < NUMASLAB_STEPS; k++)
			now.step[k] += count_of(i, (enum counter)(COUNT_own + k));
	for (unsigned k = 0; k < NUMASLAB_STEPS; k++)
		since.step[k] = now.step[k] - before.step[k];
	before = now;
	return since;
}

/* n blocks of size, all of them there, all written to. */
static inline void take_many(void **block, unsigned n, size_t size)
{
	for (unsigned i = 0; i < n; i++) {
		block[i] = ns_malloc(size);
		CHECK(block[i], "block %u of %u", i, n);
		memset(block[i], 0x5a, size);
	}
}

static inline void free_many(void **block, unsigned from, unsigned n, unsigned step)
{
	for (unsigned i = from; i < n; i += step) {
		ns_free(block[i]);
		block[i] = NULL;
	}
}

static inline void run_on(int node_number)
{
	fake_here = node_number;
}

#endif
