/* SPDX-License-Identifier: MIT */
/* NUMASLAB_TOPOLOGY and the kernel's lists: good texts, hostile texts, and what becomes of them. */
#include "tests/unit/child.h"
#include "tests/unit/os_fake.h"
#include "allocator/sim.h"
#include "allocator/topology.h"

static struct topology_text t;

static void t1_s_machine(void **state)
{
	(void)state;
	assert_true(topology_parse("0:1G@0;1:1G@1;2:1G@2;3:1G@3", &t));
	assert_int_equal(t.count, 4);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(t.number[i], i);
		assert_int_equal(t.memory[i], 1 << 30);
		assert_int_equal(t.cpu_node[i], i);
		for (int j = 0; j < 4; j++)
			assert_int_equal(t.distance[i][j], i == j ? 10 : 20);
	}
	assert_int_equal(t.cpu_node[4], -1);
}

static void gaps_memoryless_and_cpuless_nodes(void **state)
{
	(void)state;
	assert_true(topology_parse("0:0;7:16G@0-31", &t));
	assert_int_equal(t.count, 2);
	assert_int_equal(t.number[1], 7);
	assert_int_equal(t.memory[0], 0);
	assert_int_equal(t.cpu_node[31], 1);
	assert_true(topology_parse("0:0@0;1:1G@1;2:2G;dist=0:2:30,0:1:15", &t));
	assert_int_equal(t.distance[0][2], 30);
	assert_int_equal(t.distance[2][0], 30);
	assert_int_equal(t.distance[0][1], 15);
	assert_int_equal(t.distance[1][2], 20);
	assert_true(topology_parse("5@0-2,9,4-6;1023:4096K", &t));
	assert_int_equal(t.cpu_node[9], 0);
	assert_int_equal(t.cpu_node[3], -1);
	assert_int_equal(t.memory[1], 4 << 20);
}

static void malformed_texts_are_refused(void **state)
{
	static const char *const bad[] = {
	    "",
	    " ",
	    ";",
	    "0",
	    "0:",
	    "0:0",
	    "0:0@0",
	    "0:1G@",
	    "0:1G@0-",
	    "0:1G@2-1",
	    "0:1G@0;0:1G@1",
	    "0:1G@0;1:1G@0",
	    "0:1G@1024",
	    "1024:1G",
	    "-1:1G",
	    "0:-1",
	    "0:1X",
	    "0:1GG",
	    "0:1G@0 ",
	    "0:1G@0,",
	    "0:1G@0;;1:1G@1",
	    "0:1G@0;x",
	    "0:1G@0;dist=",
	    "0:1G@0;dist=0:0:20",
	    "0:1G@0;dist=0:1:20",
	    "0:1G@0;1:1G;dist=0:1",
	    "0:1G@0;1:1G;dist=0:1:9",
	    "0:1G@0;1:1G;dist=0:1:256",
	    "0:1G@0;1:1G;dist=0:1:20,",
	    "dist=0:1:20;0:1G@0;1:1G",
	    "0:99999999999999999999",
	    "99999999999999999999:1G",
	    "0:4194304T@0",
	    "0:1099511627777",
	    "0:1G@0;1:1g@1",
	    "0x0:1G",
	    "0:1G\n",
	    "0:1G@99999999999999999999",
	    "0:1G@0-99999999999999999999",
	};

	(void)state;
	for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++)
		if (topology_parse(bad[i], &t))
			fail_msg("accepted: \"%s\"", bad[i]);
}

static void any_bytes_are_survived(void **state)
{
	static const char alphabet[] = "0123456789:;@,-=GMKTdist \n\xff";
	uint64_t seed = 42;
	char text[64];

	(void)state;
	for (int i = 0; i < 300000; i++) {
		unsigned n = 0;

		do {
			seed = seed * 6364136223846793005u + 1442695040888963407u;
			text[n++] = alphabet[(seed >> 33) % (sizeof alphabet - 1)];
		} while (n < 63 && (seed >> 20) % 12);
		text[n] = 0;
		if (!topology_parse(text, &t))
			continue;
		assert_in_range(t.count, 1, NODE_MAX);
		for (unsigned cpu = 0; cpu < SIM_CPUS; cpu++)
			assert_true(t.cpu_node[cpu] < (int)t.count);
	}
	/* More nodes than there is room for. */
	char *many = malloc(8192), *at = many;
	for (unsigned i = 0; i <= NODE_MAX; i++)
		at += sprintf(at, "%s%u:1M", i ? ";" : "", i);
	assert_false(topology_parse(many, &t));
	*strrchr(many, ';') = 0;
	assert_true(topology_parse(many, &t));
	free(many);
}

static bool list_is(const char *text, uint64_t lo)
{
	uint64_t mask[OS_NODE_WORDS] = {~0ull};

	return topology_parse_list(text, strlen(text), mask, OS_NODE_BITS) && mask[0] == lo;
}

static void kernel_lists(void **state)
{
	uint64_t mask[OS_NODE_WORDS];

	(void)state;
	assert_true(list_is("0\n", 1));
	assert_true(list_is("0-3\n", 15));
	assert_true(list_is("0,2-3,63\n", 1 | 12 | 1ull << 63));
	assert_true(list_is("\n", 0));
	assert_true(list_is("", 0));
	assert_true(topology_parse_list("1000-2000", 9, mask, OS_NODE_BITS));
	assert_int_equal(mask[OS_NODE_WORDS - 1] >> 63, 1);
	assert_false(list_is("x", 0));
	assert_false(list_is("3-1", 0));
	assert_false(list_is("0,,1", 0));
	assert_false(list_is("0 1", 0));
}

static void sim_is_indexed(const void *arg)
{
	(void)arg;
	topology_init("0:0@0;3:1G@1;8:2G;9:512M@2-3;dist=0:8:12,0:3:30,0:9:40,3:8:40,3:9:15");
	CHECK(topology.simulated && topology.guarded && topology.count == 3);
	CHECK(topology.number[0] == 3 && topology.number[1] == 8 && topology.number[2] == 9);
	CHECK(topology.home[0] == 1, "memoryless: the nearest that has some");
	CHECK(topology.home[3] == 0 && topology.home[8] == 1 && topology.home[9] == 2);
	CHECK(topology.order[0][0] == 0 && topology.order[0][1] == 2 && topology.order[0][2] == 1);
	CHECK(sim_free_bytes(0) == 1u << 30 && sim_free_bytes(2) == 512u << 20);
	CHECK(topology_sim_node(0) == 0 && topology_sim_node(3) == 9);
	CHECK(topology_sim_node(4) == -1 && topology_sim_node(-1) == -1 &&
	      topology_sim_node(1 << 30) == -1);
	CHECK(topology_sim_cpu(5) == 1, "a real CPU modulo the described ones");
}

static void sim_lands_and_moves(const void *arg)
{
	(void)arg;
	topology_init("0:64K@0;1:64K@1;2:64K@2;dist=0:2:15");
	CHECK(sim_land(0, 65536) == 0 && sim_free_bytes(0) == 0);
	CHECK(sim_land(0, 4096) == 2, "the nearest with room");
	CHECK(sim_land(0, 65536) == 1 && sim_land(0, 65536) == -1);
	CHECK(!sim_move(2, 0, 4096), "no room there");
	sim_leave(0, 4096);
	CHECK(sim_move(2, 0, 4096) && sim_free_bytes(2) == 65536 && sim_free_bytes(0) == 0);
}

static void machine_with_gaps(const void *arg)
{
	(void)arg;
	fake_machine(4, 64);
	fake.node[1].number = 7;
	fake.node[2].number = 64;
	fake.node[3].number = 1000;
	fake.node[1].pages = 0;
	fake.distance[1][3] = fake.distance[3][1] = 12;
	topology_init("");
	CHECK(topology.guarded && !topology.simulated && topology.count == 3);
	CHECK(topology.number[1] == 64 && topology.number[2] == 1000);
	CHECK(topology.home[7] == 2, "memoryless node 7: node 1000 is nearest");
	fake_here = 7;
	CHECK(topology_here() == 2);
	fake_here = 64;
	CHECK(topology_here() == 1);
}

static void machine_with_one_node(const void *arg)
{
	fake_machine(2, 64);
	fake.node[0].pages = arg ? 64 : 0;
	if (arg)
		fake.seccomp = true;
	topology_init("0:1G@0;broken");
	CHECK(topology.count == 1 && !topology.guarded && !topology.simulated);
	CHECK(topology.silent == (arg != NULL));
	CHECK(arg || topology.number[0] == 1, "the node that has memory");
	CHECK(!arg || (fake.call[FAKE_mems_allowed].calls == 0 &&
		       fake.call[FAKE_task_policy].calls == 0),
	      "a filter may kill whoever asks");
}

static void simulated_machines(void **state)
{
	(void)state;
	assert_child(sim_is_indexed, NULL);
	assert_child(sim_lands_and_moves, NULL);
}

static void real_machines(void **state)
{
	(void)state;
	assert_child(machine_with_gaps, NULL);
	assert_child(machine_with_one_node, NULL);
	assert_child(machine_with_one_node, "under seccomp");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(t1_s_machine),
    cmocka_unit_test(gaps_memoryless_and_cpuless_nodes),
    cmocka_unit_test(malformed_texts_are_refused),
    cmocka_unit_test(any_bytes_are_survived),
    cmocka_unit_test(kernel_lists),
    cmocka_unit_test(simulated_machines),
    cmocka_unit_test(real_machines),
};

TAP_MAIN(tests)
