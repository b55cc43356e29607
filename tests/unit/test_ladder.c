/* SPDX-License-Identifier: MIT */
/* The refill ladder on machines to order: each step, each refusal, and what is counted. */
#include "tests/unit/machine.h"

#define SIZE	      4096u /* 16 to a slab */
#define SLAB	      16u
#define PAGES_OF_SLAB 16

static void *block[8192];

static void step_own(const void *arg)
{
	(void)arg;
	machine_start(2, 64);
	steps_taken();
	take_many(block, SLAB * 4, SIZE);
	CHECK(count_of(0, COUNT_slots) == SLAB * 4 && count_of(1, COUNT_slots) == 0);
	free_many(block, 0, SLAB * 4, 1);
	steps_taken();
	take_many(block, SLAB * 4, SIZE);
	heap_settle_class(thread_state.heap, class_of(SIZE));
	struct taken t = steps_taken();
	CHECK(t.step[0] > 0, "own");
	CHECK(t.step[1] + t.step[3] + t.step[4] == 0);
	CHECK(count_of(0, COUNT_slots) <= SLAB * 5);
	audit(&(struct audit_live){block, SLAB * 4}, true);
}

static void step_node_partial(const void *arg)
{
	(void)arg;
	machine_start(2, 64);
	take_many(block, SLAB * 8, SIZE);
	run_on(1); /* the heap is given up: partial slabs go to node 0's list */
	free_many(block, 0, SLAB * 8, 2);
	take_many(block + 4096, 1, SIZE);
	free_many(block + 4096, 0, 1, 1);
	CHECK(count_of(0, COUNT_partial) >= 7, "%ld", count_of(0, COUNT_partial));
	run_on(0);
	steps_taken();
	long slots = count_of(0, COUNT_slots);
	for (unsigned i = 0; i < SLAB * 8; i += 2)
		take_many(block + i, 1, SIZE);
	heap_settle_class(thread_state.heap, class_of(SIZE));
	struct taken t = steps_taken();
	CHECK(t.step[1] >= 7, "node_partial: %ld", t.step[1]);
	CHECK(t.step[2] + t.step[3] + t.step[4] == 0, "nothing new, nothing abroad");
	CHECK(count_of(0, COUNT_slots) == slots);
	audit(&(struct audit_live){block, SLAB * 8}, true);
}

static void step_node_new(const void *arg)
{
	(void)arg;
	machine_start(4, 64);
	for (int node = 3; node >= 0; node--) {
		run_on(node);
		steps_taken();
		take_many(block + node * 160, 160, SIZE);
		struct taken t = steps_taken();
		CHECK(t.step[2] == 10 && t.step[1] + t.step[3] + t.step[4] == 0);
		for (int i = 0; i < 160; i++)
			CHECK(alloc_node_of(block[node * 160 + i]) == node &&
			      fake_used_in(block[node * 160 + i], SIZE, node) == 1);
	}
	CHECK(fake.call[FAKE_move_pages].calls == 0, "nothing was misplaced");
	audit(&(struct audit_live){block, 640}, true);
}

static void step_node_new_reclaims(const void *arg)
{
	(void)arg;
	fake_machine(2, 64);
	fake.node[0].cache = fake.node[0].pages; /* all of it page cache */
	machine_boot(NULL);
	steps_taken();
	take_many(block, SLAB * 20, SIZE);
	struct taken t = steps_taken();
	CHECK(t.step[2] == 20 && t.step[3] + t.step[4] == 0, "foreign landing is not exhaustion");
	CHECK(fake.call[FAKE_move_pages].calls > 0 && fake_used(1) == 0);
	CHECK(count_of(0, COUNT_misplaced) + count_of(1, COUNT_misplaced) == 0);
	for (unsigned i = 0; i < SLAB * 20; i++)
		CHECK(alloc_node_of(block[i]) == 0);
	audit(&(struct audit_live){block, SLAB * 20}, true);
}

/* n half-free slabs on a node's list, put there by a thread that left. */
static unsigned leave_partial(int node, void **to, unsigned slabs)
{
	run_on(node);
	take_many(to, slabs * SLAB, SIZE);
	free_many(to, 0, slabs * SLAB, 2);
	run_on(0);
	take_many(to, 1, SIZE); /* notices the move */
	return slabs * SLAB / 2;
}

static void step_any_partial(const void *arg)
{
	(void)arg;
	fake_machine(4, 64);
	fake.distance[0][1] = fake.distance[1][0] = 40;
	fake.distance[0][3] = fake.distance[3][0] = 15;
	machine_boot(NULL);
	leave_partial(1, block, 10);
	unsigned room = leave_partial(3, block + 1000, 10);
	long slots = count_of(1, COUNT_slots) + count_of(2, COUNT_slots) + count_of(3, COUNT_slots);
	node_fill(0, 0);
	steps_taken();
	/* What is left of node 0's own slab, then the nearest node's partial ones but a few. */
	take_many(block + 2000, SLAB + room / 2, SIZE);
	struct taken t = steps_taken();
	CHECK(t.step[3] > 0 && t.step[4] == 0, "4 before 5: %ld, %ld", t.step[3], t.step[4]);
	CHECK(count_of(3, COUNT_partial) < 7 && count_of(1, COUNT_partial) >= 9, "nearest first");
	/* All that is partial anywhere, before anything new. */
	take_many(block + 4000, room, SIZE);
	CHECK(steps_taken().step[4] == 0);
	CHECK(slots ==
	      count_of(1, COUNT_slots) + count_of(2, COUNT_slots) + count_of(3, COUNT_slots));
	audit(&(struct audit_live){block, 8192}, true);
}

static void step_any_new(const void *arg)
{
	(void)arg;
	fake_machine(3, 64);
	fake.distance[0][1] = fake.distance[1][0] = 40;
	machine_boot(NULL);
	node_fill(0, 0);
	steps_taken();
	take_many(block, SLAB * 10, SIZE);
	struct taken t = steps_taken();
	CHECK(t.step[4] == 10 && t.step[0] + t.step[1] + t.step[2] + t.step[3] == t.step[0]);
	CHECK(count_of(2, COUNT_slots) == SLAB * 10 && count_of(1, COUNT_slots) == 0, "nearest");
	for (unsigned i = 0; i < SLAB * 10; i++)
		CHECK(alloc_node_of(block[i]) == 2 && fake_used_in(block[i], SIZE, 2) == 1);
	audit(&(struct audit_live){block, SLAB * 10}, true);
}

static void thisnode(const void *arg)
{
	unsigned n = 0;

	(void)arg;
	machine_start(3, 64);
	leave_partial(1, block, 10);
	node_fill(1, 150);
	steps_taken();
	long others = count_of(0, COUNT_slots) + count_of(2, COUNT_slots);
	while (n < 4096 && (block[1000 + n] = alloc_on_node(SIZE, 1, true)) != NULL) {
		CHECK(alloc_node_of(block[1000 + n]) == 1);
		n++;
	}
	/* All that the partial ones had, and the 150 pages that were left but for less than a slab
	 * (hidden blocks come back together). */
	CHECK(fake.node[1].pages - fake_used(1) < PAGES_OF_SLAB, "%ld of 150 pages left",
	      fake.node[1].pages - fake_used(1));
	CHECK(count_of(1, COUNT_used) == (long)n + 80, "%ld used, %u", count_of(1, COUNT_used), n);
	struct taken t = steps_taken();
	CHECK(t.step[3] + t.step[4] == 0 && t.step[1] > 0 && t.step[2] > 0);
	CHECK(others == count_of(0, COUNT_slots) + count_of(2, COUNT_slots));
	/* A preference goes on where a demand ends. */
	void *p = alloc_on_node(SIZE, 1, false);
	CHECK(p && alloc_node_of(p) != 1);
	ns_free(p);
	/* And a demand is met again as soon as a block comes back. */
	ns_free(block[1000]);
	block[1000] = alloc_on_node(SIZE, 1, true);
	CHECK(block[1000], "after a free");
	CHECK(alloc_node_of(block[1000]) == 1, "a demand for 1 gave memory of %d",
	      alloc_node_of(block[1000]));
	audit(&(struct audit_live){block, 8192}, true);
}

static void thisnode_reaches_the_tunnel_s_end(const void *arg)
{
	(void)arg;
	machine_start(2, 64);
	node_fill(1, 0);
	fake.node[1].pages += 64;
	fake.node[1].cache = 64; /* page cache: fails only after reclaim */
	unsigned n = 0;
	while (n < 4096 && (block[n] = alloc_on_node(SIZE, 1, true)) != NULL)
		n++;
	CHECK(n == 64, "%u of the 64 pages", n);
	ns_malloc_trim(0);
	CHECK(count_of(1, COUNT_cached) == 0, "%ld in no bin", count_of(1, COUNT_cached));
}

static void exhaustion_and_recovery(const void *arg)
{
	unsigned n = 0;

	(void)arg;
	machine_start(3, 4);
	steps_taken();
	while (n < 8192 && (block[n] = ns_malloc(SIZE)) != NULL)
		memset(block[n++], 1, SIZE);
	CHECK(errno == ENOMEM);
	CHECK(n > 2900 && n <= 3072, "%u of 3072 pages", n);
	audit(&(struct audit_live){block, n}, true);
	/* Not asked again and again... */
	CHECK(!ns_malloc(SIZE));
	/* ...but what is freed is there at once, */
	free_many(block, 0, 64, 1);
	take_many(block, 60, SIZE);
	/* for another class too, and after others' memory came back. */
	CHECK(!ns_malloc(2048) || true);
	for (unsigned i = 0; i < 3; i++)
		node_grow(i, 256);
	time_passes();
	steps_taken();
	take_many(block + n, 700, SIZE);
	CHECK(steps_taken().step[2] > 0, "on its own node first");
	audit(&(struct audit_live){block, n + 700}, true);
	free_many(block, 0, 8192, 1);
	run_on(1);
	ns_malloc_trim(0);
	run_on(0);
	ns_malloc_trim(0);
	audit(&(struct audit_live){block, 0}, true);
	audit_all_returned();
	for (unsigned i = 0; i < 3; i++)
		CHECK(fake_used(i) == 0);
}

static void a_full_node_is_not_asked_each_time(const void *arg)
{
	(void)arg;
	machine_start(2, 64);
	take_many(block, 1, SIZE);
	node_fill(0, 0);
	take_many(block + 100, SLAB * 4, SIZE);
	long asked = fake.call[FAKE_populate].calls;
	take_many(block + 1000, SLAB * 50, SIZE);
	long per_slab = (fake.call[FAKE_populate].calls - asked) / 50;
	/* A slab's own steps (1, 2, 4, ... pages), and no more. */
	CHECK(per_slab <= 6, "%ld populates for a slab", per_slab);
	long moves = fake.call[FAKE_move_pages].calls;
	take_many(block + 2000, SLAB * 50, SIZE);
	CHECK(fake.call[FAKE_move_pages].calls - moves <= 2, "and nothing was moved in vain");
}

static void moved_thread_gets_nothing_of_the_old_node(const void *arg)
{
	static const size_t sizes[] = {16, 100, 1000, 3000, 8192, 20000, 65536};

	(void)arg;
	machine_start(4, 64);
	for (unsigned round = 0; round < 40; round++) {
		int node = (int)(round * 7 % 4);

		/* Own objects of the old node are freed after the move. */
		run_on(node);
		free_many(block, 0, 700, 1);
		for (unsigned i = 0; i < 700; i++) {
			block[i] = ns_malloc(sizes[i % 7]);
			CHECK(block[i] && alloc_node_of(block[i]) == node, "round %u, size %zu",
			      round, sizes[i % 7]);
		}
		audit(&(struct audit_live){block, 700}, true);
	}
}

/* A block that grows gets more than was asked for, but not where only that is to be had. */
static void growth_is_content_with_what_was_asked(const void *arg)
{
	enum { FROM = 2048, TO = 2200, MORE = FROM + FROM / 4 };

	(void)arg;
	fake_machine(1, 64);
	machine_boot(NULL);
	CHECK(class_of(TO) < class_of(MORE));
	char *p = ns_malloc(FROM);
	memset(p, 0x5a, FROM);
	p = ns_realloc(p, TO);
	CHECK(p && ns_malloc_usable_size(p) >= MORE, "room for more");
	CHECK(ns_realloc(p, MORE) == p, "and no move");
	/* One block of the size is there, and nothing of the next. */
	take_many(block, 2, TO);
	char *q = ns_malloc(FROM);
	memset(q, 0x33, FROM);
	node_fill(0, 0);
	unsigned n = 2;
	while (n < 4096 && (block[n] = ns_malloc(MORE)) != NULL)
		n++;
	while (n < 4096 && (block[n] = ns_malloc(TO)) != NULL)
		n++;
	ns_free(block[0]);
	errno = 0;
	q = ns_realloc(q, TO);
	CHECK(q && ns_malloc_usable_size(q) < MORE && errno == 0, "%p, %zu, errno %d", (void *)q,
	      q ? ns_malloc_usable_size(q) : 0, errno);
	for (unsigned i = 0; i < FROM; i++)
		CHECK(q[i] == 0x33);
}

/*
 * Another thread frees one block of each of `slabs` FULL slabs of node 0: too few to be listed, as
 * long as there is memory.
 */
static void leave_waiting(unsigned slabs)
{
	run_on(0);
	take_many(block, SLAB * (slabs + 1), SIZE);
	heap_trim(thread_state.heap);
	run_on(1);
	take_many(block + 8000, 1, SIZE); /* a heap that is not the owner */
	long listed = count_of(0, COUNT_partial);
	for (unsigned i = 0; i < slabs; i++)
		ns_free(block[i * SLAB]), block[i * SLAB] = NULL;
	CHECK(count_of(0, COUNT_partial) == listed, "they wait");
	run_on(0);
}

static void what_waits_is_had_where_memory_is_out(const void *arg)
{
	enum { WAITING = 40 };
	unsigned n = 0;

	(void)arg;
	machine_start(2, 64);
	leave_waiting(WAITING);
	node_fill(0, 0);
	while (n < 4096 && (block[1000 + n] = alloc_on_node(SIZE, 0, true)) != NULL)
		n++;
	CHECK(n >= WAITING, "%u of %u", n, WAITING);
	audit(&(struct audit_live){block, 8192}, true);
	/* Nor are the other node's left to a slab there. */
	long slots = count_of(1, COUNT_slots);
	free_many(block, 1000, 1000 + n, 1);
	take_many(block + 1000, n, SIZE);
	CHECK(count_of(1, COUNT_slots) == slots, "what is free here comes before a slab there");
	audit(&(struct audit_live){block, 8192}, true);
}

/* malloc_trim lists them too, and so gives their pages back. */
static void trim_finds_what_waits(const void *arg)
{
	(void)arg;
	machine_start(2, 64);
	leave_waiting(40);
	long used = fake_used(0);
	ns_malloc_trim(0);
	CHECK(count_of(0, COUNT_partial) >= 40, "%ld listed", count_of(0, COUNT_partial));
	CHECK(used - fake_used(0) >= 40, "%ld pages went", used - fake_used(0));
	audit(&(struct audit_live){block, 8192}, true);
}

static long slabs_of(enum counter c)
{
	return count_of(0, c);
}

/* 2,000 objects, some freed, 2,000 more, all freed, without a call after it: no slab is left. */
static void everything_goes_back(const void *arg)
{
	(void)arg;
	fake_machine(1, 64);
	machine_boot("NUMASLAB_RETAIN=0");
	for (size_t size = 4; size <= 8192; size *= 4) {
		take_many(block, 2000, size);
		free_many(block, 0, 1996, 2);
		free_many(block, 1, 1000, 2);
		take_many(block + 2000, 2000, size);
		free_many(block, 0, 4000, 1);
		CHECK(slabs_of(COUNT_active) + slabs_of(COUNT_partial) + slabs_of(COUNT_full) == 0,
		      "size %zu: %ld active, %ld partial, %ld full", size, slabs_of(COUNT_active),
		      slabs_of(COUNT_partial), slabs_of(COUNT_full));
		CHECK((size_t)mem.held <= RETAIN_FLOOR);
		audit(NULL, true);
	}
}

#define scenario(name)                                                                             \
	static void test_##name(void **state)                                                      \
	{                                                                                          \
		(void)state;                                                                       \
		assert_child(name, NULL);                                                          \
	}

scenario(step_own) scenario(step_node_partial) scenario(step_node_new)
    scenario(step_node_new_reclaims) scenario(step_any_partial) scenario(step_any_new)
	scenario(thisnode) scenario(thisnode_reaches_the_tunnel_s_end)
	    scenario(exhaustion_and_recovery) scenario(a_full_node_is_not_asked_each_time)
		scenario(moved_thread_gets_nothing_of_the_old_node) scenario(everything_goes_back)
		    scenario(growth_is_content_with_what_was_asked)
			scenario(what_waits_is_had_where_memory_is_out)
			    scenario(trim_finds_what_waits)

				static const
    struct CMUnitTest tests[] = {
	cmocka_unit_test(test_step_own),
	cmocka_unit_test(test_step_node_partial),
	cmocka_unit_test(test_step_node_new),
	cmocka_unit_test(test_step_node_new_reclaims),
	cmocka_unit_test(test_step_any_partial),
	cmocka_unit_test(test_step_any_new),
	cmocka_unit_test(test_thisnode),
	cmocka_unit_test(test_thisnode_reaches_the_tunnel_s_end),
	cmocka_unit_test(test_exhaustion_and_recovery),
	cmocka_unit_test(test_a_full_node_is_not_asked_each_time),
	cmocka_unit_test(test_moved_thread_gets_nothing_of_the_old_node),
	cmocka_unit_test(test_everything_goes_back),
	cmocka_unit_test(test_growth_is_content_with_what_was_asked),
	cmocka_unit_test(test_what_waits_is_had_where_memory_is_out),
	cmocka_unit_test(test_trim_finds_what_waits),
};

TAP_MAIN(tests)
