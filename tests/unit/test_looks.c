/* SPDX-License-Identifier: MIT */
/* Looks at slabs of large blocks: what the counters learn of them late, they know at once; and
 * where there is something in slabs that are used up; and what a heap keeps between two threads. */
#include "tests/unit/machine.h"

#define SIZE  4096u /* 16 to a slab, a look at every second free, a page each */
#define SLAB  16u
#define SLABS 64u

static void *block[SLABS * SLAB];
static unsigned cls;

static void fill(unsigned nodes)
{
	machine_start(nodes, 64);
	cls = class_of(SIZE);
	take_many(block, SLABS * SLAB, SIZE);
	CHECK(count_of(0, COUNT_slots) == SLABS * SLAB, "whole slabs");
}

/* Of each slab the next one is freed. */
static void round_of_frees(unsigned n)
{
	free_many(block, n, SLABS * SLAB, SLAB);
}

static long late(unsigned node)
{
	return (long)atomic_load(&pools[node].late[cls]);
}

static unsigned slabs_hidden(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < SLABS; i++)
		n += slab_head((uintptr_t)block[i * SLAB + SLAB - 1])->hidden != 0;
	return n;
}

static void counters_wait(const void *arg)
{
	(void)arg;
	fill(1);
	for (unsigned n = 0; n < 3; n++)
		round_of_frees(n);
	/* The first free of a FULL slab is a transition, and counted; the slab that blocks came
	 * from last is not looked at. */
	CHECK(late(0) == 2 * (long)(SLABS - 1), "%ld late", late(0));
	CHECK(count_of(0, COUNT_used) == SLABS * SLAB - (SLABS - 1), "%ld counted",
	      count_of(0, COUNT_used));
	audit(&(struct audit_live){block, SLABS * SLAB}, true);
	/* Taken again nothing has changed for them. */
	for (unsigned n = 0; n < 3; n++)
		for (unsigned i = n; i < SLABS * SLAB; i += SLAB)
			take_many(block + i, 1, SIZE);
	CHECK(late(0) == 0 && count_of(0, COUNT_used) == SLABS * SLAB, "%ld late", late(0));
	audit(&(struct audit_live){block, SLABS * SLAB}, true);
}

/* A quarter of a slab, and what is freed then is counted. */
static void but_not_long(const void *arg)
{
	(void)arg;
	fill(1);
	for (unsigned n = 0; n < SLAB - 1; n++) {
		round_of_frees(n);
		for (unsigned i = SLAB; i < SLABS * SLAB; i += SLAB) {
			const struct slab *s = slab_head((uintptr_t)block[i + SLAB - 1]);

			CHECK(s->spent || s->tallied - slab_used(s) <= SLAB / 4 ||
				  s == thread_state.heap->cls[cls].current,
			      "%u used, %u counted", slab_used(s), s->tallied);
		}
		audit(&(struct audit_live){block, SLABS * SLAB}, true);
	}
}

/* A fifth of the class is free as the fifth of each 16 goes, whatever is counted by then. */
static void give_back_does_not_wait(const void *arg)
{
	(void)arg;
	fill(1);
	for (unsigned n = 0; n < 3; n++)
		round_of_frees(n);
	CHECK(slabs_hidden() == 0 && count_of(0, COUNT_released) == 0, "too early");
	round_of_frees(3);
	CHECK(slabs_hidden() == 0, "too early");
	round_of_frees(4);
	CHECK(slabs_hidden() >= SLABS - 10, "%u of %u slabs gave back", slabs_hidden(), SLABS);
	CHECK(count_of(0, COUNT_released) >= (long)(5 * SIZE * (SLABS - 10)), "%ld bytes",
	      count_of(0, COUNT_released));
	audit(&(struct audit_live){block, SLABS * SLAB}, true);
}

/* What is late goes with its slab: onto a list, to another node, back to the window. */
static void late_goes_with_its_slab(const void *arg)
{
	(void)arg;
	fill(2);
	for (unsigned n = 0; n < 3; n++)
		round_of_frees(n);
	struct slab *moved = slab_head((uintptr_t)block[5 * SLAB + 15]);
	CHECK(moved->late == 2);
	slab_refile(moved, 1); /* as its owner does that finds its memory elsewhere */
	CHECK(late(0) == 2 * (long)(SLABS - 2) && late(1) == 0, "%ld and %ld late", late(0),
	      late(1));
	audit(&(struct audit_live){block, SLABS * SLAB}, false);
	run_on(1);
	take_many(block, 1, SIZE); /* the heap is given up, a part of it at once */
	ns_malloc_trim(0);	   /* and the rest */
	CHECK(late(0) == 0 && late(1) == 0, "%ld and %ld late", late(0), late(1));
	audit(&(struct audit_live){block, SLABS * SLAB}, false);
	free_many(block, 0, SLABS * SLAB, 1);
	ns_malloc_trim(0);
	CHECK(late(0) == 0 && late(1) == 0);
	audit_all_returned();
}

/* One of many that are used up was freed into: no other changes its state for that. */
static void what_has_some_is_found(const void *arg)
{
	unsigned at = 40 * SLAB;

	(void)arg;
	fill(1);
	round_of_frees(0);
	for (unsigned i = 0; i < SLABS * SLAB; i += SLAB)
		take_many(block + i, 1, SIZE);
	long full = count_of(0, COUNT_full);
	CHECK(full < SLABS / 2, "%ld FULL", full);
	free_many(block, at, at + 1, 1);
	take_many(block + at, 1, SIZE);
	CHECK(count_of(0, COUNT_full) == full, "%ld FULL, %ld before", count_of(0, COUNT_full),
	      full);
	CHECK(count_of(0, COUNT_slots) == SLABS * SLAB, "and no slab is born");
	audit(&(struct audit_live){block, SLABS * SLAB}, true);
}

/* The thread ends, as thread_gone() has it, and another one comes. */
static bool next_thread(void)
{
	struct heap *h = thread_state.heap;
	bool warm = heap_stay_warm(h);

	if (!warm)
		heap_trim(h);
	heap_rest(h);
	thread_state.heap = &heap_none;
	return warm;
}

static void warm_is_little_and_of_use(const void *arg)
{
	(void)arg;
	machine_start(2, 64);
	run_on(0);
	cls = class_of(SIZE);
	take_many(block, SLAB * 4, SIZE);
	struct heap *first = thread_state.heap;
	CHECK(next_thread());
	long active = count_of(0, COUNT_active);
	audit(&(struct audit_live){block, SLAB * 4}, true);
	/* The next one goes on with the heap: nothing changes hands. */
	take_many(block + SLAB * 12, 1, SIZE);
	free_many(block, 0, SLAB * 4, 2);
	CHECK(thread_state.heap == first && first->warm == 0);
	CHECK(active > 0 && count_of(0, COUNT_partial) == 0, "%ld active", active);
	/* Too much for one heap; */
	take_many(block + SLAB * 4, SLAB * 8, SIZE);
	free_many(block, SLAB * 4, SLAB * 12, 2);
	CHECK(!next_thread());
	CHECK(count_of(0, COUNT_active) == 0, "%ld active", count_of(0, COUNT_active));
	audit(&(struct audit_live){block, SLAB * 13}, true);
	/* and for two together, on whatever node; trim takes it back. */
	free_many(block, 0, SLAB * 13, 1);
	for (int node = 0; node < 2; node++) {
		run_on(node);
		take_many(block + (unsigned)node * SLAB * 5, SLAB * 5, SIZE);
		free_many(block, (unsigned)node * SLAB * 5, ((unsigned)node + 1) * SLAB * 5, 2);
		CHECK(next_thread() == (node == 0), "node %d", node);
	}
	ns_malloc_trim(0);
	CHECK(count_of(0, COUNT_active) + count_of(1, COUNT_active) == 0);
	run_on(1);
	take_many(block + SLAB * 10, 1, SIZE);
	CHECK(next_thread(), "there is room again");
	audit(&(struct audit_live){block, SLAB * 11}, true);
	/* Where memory is scarce nothing is kept. */
	run_on(0);
	take_many(block + SLAB * 11, 1, SIZE);
	pool_set_full(&pools[1]);
	CHECK(!next_thread());
	audit(&(struct audit_live){block, SLAB * 12}, true);
}

/* A thread without a heap may take a heap that is warm for a block: it counts as before. */
static void warm_stays_bounded(const void *arg)
{
	(void)arg;
	machine_start(1, 64);
	for (unsigned round = 0; round < 20; round++) {
		void **at = block + (size_t)round * SLAB;

		take_many(at, SLAB, SIZE);
		CHECK(next_thread() == (round < 8), "round %u", round);
		thread_state.exits = 255; /* its last destructor has run: a block without a heap */
		void *p = ns_malloc(16);
		CHECK(p && thread_state.heap == &heap_none);
		ns_free(p);
		thread_state.exits = 0;
		/* The heap that is warm is another thread's now: the next one has its own. */
		pools[0].idle_heaps = NULL;
	}
}

/* Blocks that go round in a bin, and frees alone, refill nothing. */
static void counters_learn_without_refills(const void *arg)
{
	(void)arg;
	machine_start(2, 64);
	run_on(0);
	cls = class_of(2048);
	take_many(block, 3, 2048);
	for (unsigned i = 0; i < 40000; i++) {
		ns_free(block[i % 3]);
		take_many(block + i % 3, 1, 2048);
	}
	CHECK(atomic_load(&pools[0].count[cls][COUNT_looked]) >= 40000 - 2 * 4096, "%lu looked",
	      (unsigned long)atomic_load(&pools[0].count[cls][COUNT_looked]));
	free_many(block, 0, 3, 1);
	for (unsigned round = 0; round < 10; round++) {
		run_on(0);
		cls = class_of(SIZE);
		take_many(block, SLABS * SLAB, SIZE);
		heap_trim(thread_state.heap);
		run_on(1);
		ns_free(ns_malloc(16)); /* a heap there */
		free_many(block, 0, SLABS * SLAB, 1);
	}
	/* The last round's too: a move tells all the same. */
	CHECK(count_of(1, COUNT_remote_out) > 9 * (long)(SLABS * SLAB), "%ld out",
	      count_of(1, COUNT_remote_out));
	CHECK(count_of(0, COUNT_remote_in) == 10 * (long)(SLABS * SLAB), "%ld in",
	      count_of(0, COUNT_remote_in));
	audit(NULL, true);
}

/* What a node that had run out says ends with the first memory that it has again. */
static void scarcity_ends(const void *arg)
{
	(void)arg;
	machine_start(2, 64);
	run_on(0);
	node_fill(0, 0);
	take_many(block, SLAB, SIZE);
	CHECK(pools_are_scarce());
	node_grow(0, 1024);
	time_passes();
	take_many(block + SLAB, SLAB * 4, SIZE);
	CHECK(alloc_node_of(block[SLAB * 5 - 1]) == 0 && !pools_are_scarce());
	/* A bit without a time, as a race of set and clear leaves it. */
	atomic_store(&pools_scarce, 1);
	take_many(block + SLAB * 5, SLAB * 4, SIZE);
	CHECK(!pools_are_scarce());
	audit(&(struct audit_live){block, SLAB * 9}, true);
}

#define scenario(name)                                                                             \
	static void test_##name(void **state)                                                      \
	{                                                                                          \
		(void)state;                                                                       \
		assert_child(name, NULL);                                                          \
	}

scenario(counters_wait) scenario(but_not_long) scenario(give_back_does_not_wait)
    scenario(late_goes_with_its_slab) scenario(what_has_some_is_found)
	scenario(warm_is_little_and_of_use) scenario(warm_stays_bounded)
	    scenario(counters_learn_without_refills) scenario(scarcity_ends)

		static const struct CMUnitTest tests[] = {
		    cmocka_unit_test(test_counters_wait),
		    cmocka_unit_test(test_but_not_long),
		    cmocka_unit_test(test_give_back_does_not_wait),
		    cmocka_unit_test(test_late_goes_with_its_slab),
		    cmocka_unit_test(test_what_has_some_is_found),
		    cmocka_unit_test(test_warm_is_little_and_of_use),
		    cmocka_unit_test(test_warm_stays_bounded),
		    cmocka_unit_test(test_counters_learn_without_refills),
		    cmocka_unit_test(test_scarcity_ends),
};

TAP_MAIN(tests)
