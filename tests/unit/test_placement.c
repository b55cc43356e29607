/* SPDX-License-Identifier: MIT */
/* Where slabs are filed: misplacement, slabs over two nodes, other modes, refused questions. */
#include "tests/unit/machine.h"

#define SIZE 4096u

static void *block[4096];

/* Every node is full of what cannot move; 0 has half a slab's step left. */
static void landed_elsewhere(const void *arg)
{
	(void)arg;
	fake_machine(2, 64);
	machine_boot(NULL);
	take_many(block, 1, SIZE); /* meta data is there */
	node_fill(0, 0);
	node_fill(1, 0);
	CHECK(!alloc_on_node(SIZE * 2, 0, true), "strict");
	/* node 1 refuses to say so (move_pages fails for another reason): 5, without a demand. */
	node_grow(1, 400);
	fake.node[1].cache = 400;
	time_passes();
	take_many(block + 10, 64, SIZE);
	for (unsigned i = 10; i < 74; i++)
		CHECK(fake_used_in(block[i], SIZE, alloc_node_of(block[i])) == 1,
		      "filed where it is not");
	audit(&(struct audit_live){block, 4096}, true);
}

static void a_misplaced_slab_is_counted_and_not_kept(const void *arg)
{
	(void)arg;
	fake_machine(2, 64);
	machine_boot(NULL);
	take_many(block, 1, SIZE);
	node_fill(0, 0);
	node_fill(1, 0);
	CHECK(!ns_malloc(SIZE * 2));
	/* The strict attempts on node 1 are refused: its place is learnt only by landing there. */
	node_grow(1, 64);
	time_passes();
	fake_fail(FAKE_page_node, 1, 2, ENOENT, false);
	fake_fail(FAKE_move_pages, 1, 1, ENOMEM, false);
	take_many(block + 10, 16, SIZE);
	long misplaced = count_of(0, COUNT_misplaced) + count_of(1, COUNT_misplaced);
	for (unsigned i = 10; i < 26; i++)
		CHECK(alloc_node_of(block[i]) == 1);
	fake_heal();
	audit(&(struct audit_live){block, 4096}, true);
	free_many(block, 0, 4096, 1);
	ns_malloc_trim(0);
	CHECK(count_of(0, COUNT_misplaced) + count_of(1, COUNT_misplaced) == 0, "of %ld",
	      misplaced);
	audit_all_returned();
	CHECK(fake_used(0) == 0 && fake_used(1) == 0);
}

/* A wide class brings 64 KiB at once: its first pages fit home, the others do not. */
static void over_two_nodes_is_misplaced(const void *arg)
{
	struct slab *s;

	(void)arg;
	fake_machine(2, 64);
	machine_boot(NULL);
	take_many(block, 1, SIZE);
	node_fill(0, 8);
	node_fill(1, 8);
	void *p = ns_malloc(65536);
	CHECK(p, "16 pages are there, on two nodes");
	s = slab_head((uintptr_t)p);
	CHECK(fake_used_in(p, 65536, 0) == 8 && fake_used_in(p, 65536, 1) == 8);
	CHECK(s->misplaced, "over two nodes");
	CHECK(count_of(s->node, COUNT_misplaced) == 1);
	ns_free(p);
	free_many(block, 0, 1, 1);
	ns_malloc_trim(0);
	audit_all_returned();
	CHECK(fake_used(0) == 0 && fake_used(1) == 0);
}

static void placement_kernel_takes_what_comes(const void *arg)
{
	fake_machine(2, 64);
	if (arg)
		fake.task_policy = 3; /* MPOL_INTERLEAVE: numactl's word wins */
	machine_boot(arg ? NULL : "NUMASLAB_PLACEMENT=kernel");
	node_fill(0, 0);
	take_many(block, 64, SIZE);
	CHECK(fake.call[FAKE_set_policy].calls == 0, "no policy on windows");
	CHECK(fake.call[FAKE_move_pages].calls == 0, "nothing is moved");
	for (unsigned i = 0; i < 64; i++)
		CHECK(alloc_node_of(block[i]) == 1);
	audit(&(struct audit_live){block, 64}, true);
}

static void under_seccomp_nothing_is_asked(const void *arg)
{
	(void)arg;
	fake_machine(4, 64);
	fake.seccomp = true;
	machine_boot(NULL);
	take_many(block, 1000, SIZE);
	free_many(block, 0, 1000, 1);
	ns_malloc_trim(0);
	CHECK(fake.call[FAKE_set_policy].calls + fake.call[FAKE_move_pages].calls +
		  fake.call[FAKE_page_node].calls + fake.call[FAKE_mems_allowed].calls +
		  fake.call[FAKE_task_policy].calls + fake.call[FAKE_getcpu].calls ==
	      0);
	audit(NULL, false);
}

static long calls_about_placement(void)
{
	return fake.call[FAKE_set_policy].calls + fake.call[FAKE_move_pages].calls +
	       fake.call[FAKE_page_node].calls + fake.call[FAKE_mems_allowed].calls +
	       fake.call[FAKE_task_policy].calls;
}

/* It may kill: not one more call, however far the windows and their descriptors grow. */
static void after_a_filter_nothing_is_asked(const void *arg)
{
	static void *big[40];

	(void)arg;
	machine_start(2, 128);
	take_many(block, 64, SIZE);
	alloc_note_filter();
	long before = calls_about_placement();
	take_many(big, 40, (size_t)2 << 20);
	static void *small[5000];
	take_many(small, 5000, 8000);
	CHECK(calls_about_placement() == before, "%ld calls", calls_about_placement() - before);
	free_many(big, 0, 40, 1);
	free_many(small, 0, 5000, 1);
	free_many(block, 0, 64, 1);
	ns_malloc_trim(0);
	CHECK(calls_about_placement() == before, "%ld calls", calls_about_placement() - before);
	audit_all_returned();
}

static void a_filter_that_comes_later(const void *arg)
{
	int error = *(const int *)arg;

	machine_start(2, 64);
	take_many(block, 64, SIZE);
	fake_fail(FAKE_page_node, 1, 1 << 30, error, false);
	fake_fail(FAKE_move_pages, 1, 1 << 30, error, false);
	fake_fail(FAKE_set_policy, 1, 1 << 30, error, false);
	take_many(block + 64, 1000, SIZE);
	long asked = fake.call[FAKE_page_node].calls + fake.call[FAKE_move_pages].calls;
	CHECK(asked <= 4, "went on asking: %ld", asked);
	audit(&(struct audit_live){block, 1064}, false);
	free_many(block, 0, 1064, 1);
	ns_malloc_trim(0);
	audit_all_returned();
}

static void without_populate_it_is_touched(const void *arg)
{
	int error = *(const int *)arg;

	fake_machine(3, 64);
	fake_fail(FAKE_populate, 1, 1 << 30, error, false);
	machine_boot(NULL);
	for (int node = 0; node < 3; node++) {
		run_on(node);
		take_many(block + node * 100, 100, SIZE);
		for (int i = 0; i < 100; i++)
			CHECK(alloc_node_of(block[node * 100 + i]) == node);
	}
	audit(&(struct audit_live){block, 300}, false);
}

static void memoryless_and_gaps(const void *arg)
{
	(void)arg;
	fake_machine(4, 64);
	fake.node[0].pages = 0; /* a node with CPUs alone */
	fake.node[1].number = 3;
	fake.node[2].number = 90;
	fake.node[3].number = 1000;
	fake.distance[0][2] = fake.distance[2][0] = 12;
	machine_boot(NULL);
	run_on(0);
	take_many(block, 100, 100);
	for (int i = 0; i < 100; i++)
		CHECK(alloc_node_of(block[i]) == 90, "the nearest with memory");
	run_on(1000);
	take_many(block + 100, 100, 100);
	CHECK(alloc_node_of(block[150]) == 1000);
	CHECK(alloc_node_is_valid(90) && !alloc_node_is_valid(0) && !alloc_node_is_valid(1) &&
	      !alloc_node_is_valid(1024) && alloc_node_is_valid(-1) && !alloc_node_is_valid(-2));
	struct numaslab_node_stats stats[8];
	CHECK(alloc_stats(stats, 8) == 4 && stats[0].node == 3 && stats[2].node == 1000 &&
	      stats[3].node == -1);
	CHECK(stats[1].objects >= 100);
	audit(&(struct audit_live){block, 200}, true);
}

static const int eperm = EPERM, enosys = ENOSYS, einval = EINVAL;

#define scenario(name, arg)                                                                        \
	static void test_##name(void **state)                                                      \
	{                                                                                          \
		(void)state;                                                                       \
		assert_child(name, arg);                                                           \
	}

scenario(landed_elsewhere, NULL) scenario(a_misplaced_slab_is_counted_and_not_kept, NULL)
    scenario(over_two_nodes_is_misplaced, NULL) scenario(placement_kernel_takes_what_comes, NULL)
	scenario(under_seccomp_nothing_is_asked, NULL) scenario(memoryless_and_gaps, NULL)
	    scenario(after_a_filter_nothing_is_asked, NULL)

		static void test_a_task_policy_is_followed(void **state)
{
	(void)state;
	assert_child(placement_kernel_takes_what_comes, "policy");
}

static void test_a_filter_that_comes_later(void **state)
{
	(void)state;
	assert_child(a_filter_that_comes_later, &eperm);
	assert_child(a_filter_that_comes_later, &enosys);
}

static void test_without_populate_it_is_touched(void **state)
{
	(void)state;
	assert_child(without_populate_it_is_touched, &eperm);
	assert_child(without_populate_it_is_touched, &enosys);
	assert_child(without_populate_it_is_touched, &einval);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_landed_elsewhere),
    cmocka_unit_test(test_a_misplaced_slab_is_counted_and_not_kept),
    cmocka_unit_test(test_over_two_nodes_is_misplaced),
    cmocka_unit_test(test_placement_kernel_takes_what_comes),
    cmocka_unit_test(test_a_task_policy_is_followed),
    cmocka_unit_test(test_under_seccomp_nothing_is_asked),
    cmocka_unit_test(test_after_a_filter_nothing_is_asked),
    cmocka_unit_test(test_a_filter_that_comes_later),
    cmocka_unit_test(test_without_populate_it_is_touched),
    cmocka_unit_test(test_memoryless_and_gaps),
};

TAP_MAIN(tests)
