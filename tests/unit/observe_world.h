/* SPDX-License-Identifier: MIT */
#ifndef TEST_OBSERVE_WORLD_H
#define TEST_OBSERVE_WORLD_H

/* Looking at observation on a machine to order; the scenes that its tests begin with. */

#include "tests/unit/machine.h"
#include "allocator/observed.h"

#include <numaif.h>
#include <pthread.h>

#define MANY	 (5 | 1 << 13)
#define BIND	 (MPOL_BIND | 1 << 13)
#define BLOCK	 8192u
#define BLOCKS	 40000u
#define IN_CHUNK (OBSERVE_CHUNK / BLOCK)

static void *block[BLOCKS];

/* --- Looking. --- */

/* The chunk's policy: the same everywhere that it is mapped; -1: nothing is. */
static inline int chunk_mode(unsigned i, size_t chunk)
{
	int mode = -1;

	for (size_t at = 0; at < OBSERVE_CHUNK; at += UNIT_SIZE) {
		char *p = (char *)observed_addr(i, chunk) + at;
		int node, here = fake_policy(p, &node);

		if (!fake_mapped(p))
			continue;
		CHECK(mode < 0 || mode == here, "window %u chunk %zu: two policies", i, chunk);
		CHECK(!observe.possible || node == topology.number[i], "of node %d", node);
		mode = here;
	}
	return mode;
}

/* How many chunks of the window are observed; that bits, runs and sums say the same is checked. */
static inline size_t count_observed(unsigned i)
{
	size_t n = 0;

	for (size_t chunk = 0; chunk < observed_chunks(i); chunk++) {
		int mode = chunk_mode(i, chunk);
		bool is = mode == MANY || mode == BIND;

		CHECK(is == observed_has(i, chunk), "window %u chunk %zu: mode %d, bit %d", i,
		      chunk, mode, observed_has(i, chunk));
		n += is;
	}
	CHECK(n == observed[i].count, "%zu, not %zu", observed[i].count, n);
	return n;
}

static inline size_t count_all(void)
{
	struct observe_report report;
	size_t n = 0, runs = 0;

	for (unsigned i = 0; i < topology.count; i++) {
		n += count_observed(i);
		for (size_t chunk = 0; chunk < observed_chunks(i); chunk++)
			runs += observed_has(i, chunk) && !(chunk && observed_has(i, chunk - 1));
	}
	observe_look(&report);
	CHECK(report.bytes == n * OBSERVE_CHUNK, "%lu bytes", report.bytes);
	CHECK(observe_state.runs == runs, "%zu runs, not %zu", observe_state.runs, runs);
	return n;
}

static inline enum observe_how how_now(uint64_t *request)
{
	struct observe_report report;

	observe_look(&report);
	if (request)
		*request = report.request;
	return report.how;
}

/* A step is due. */
static inline void step_once(void)
{
	fake.now_ms += 100;
	observe_tick(fake.now_ms);
}

/* A pass over all there is. */
static inline size_t settle(void)
{
	for (int i = 0; i < 40; i++)
		step_once();
	return count_all();
}

static inline long mbinds(void)
{
	return fake.call[FAKE_set_policy].calls;
}

/* --- Scenes. --- */

static inline void start(const char *observe, unsigned nodes, unsigned mib)
{
	fake_machine(nodes, mib);
	machine_boot_two(observe ? "NUMASLAB_PLACEMENT=observe" : NULL, observe);
}

/* So many chunks' worth of blocks on the node, from block[at] on. */
static inline void fill_chunks(unsigned node, size_t at, size_t chunks)
{
	run_on(topology.number[node]);
	for (size_t k = at; k < at + chunks * IN_CHUNK; k++)
		CHECK((block[k] = ns_malloc(BLOCK)) != NULL);
}

static inline void free_blocks(size_t from, size_t to)
{
	for (; from < to; from++) {
		ns_free(block[from]);
		block[from] = NULL;
	}
}

static inline uint64_t request_of(uint32_t sample, uint32_t seed)
{
	return (uint64_t)sample << 32 | seed;
}

static inline void ask(uint32_t sample, uint32_t seed, uint64_t ms)
{
	observe_ask(request_of(sample, seed), fake.now_ms + ms);
}

/* The kernel takes BIND alone. */
static inline void start_bound(const char *observe, unsigned nodes, unsigned mib)
{
	fake_machine(nodes, mib);
	fake.refuse_many = true;
	machine_boot_two(observe ? "NUMASLAB_PLACEMENT=observe" : NULL, observe);
}

#define scenario(name, ...)                                                                        \
	static void test_##name(void **tap)                                                        \
	{                                                                                          \
		const void *const args[] = {__VA_ARGS__};                                          \
                                                                                                   \
		(void)tap;                                                                         \
		for (size_t i = 0; i < sizeof args / sizeof *args; i++)                            \
			assert_child(name, args[i]);                                               \
	}

#endif
