/* SPDX-License-Identifier: MIT */
/* The nodes of machines that are not here: gaps, no memory, no CPUs, cpusets, broken files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "tests/tools/fake_tree.h"
#include "tools/machine.h"

static char root[64];
static struct machine machine;

static int create(void **state)
{
	(void)state;
	fake_create(root);
	return 0;
}

static int destroy(void **state)
{
	(void)state;
	machine_free(&machine);
	fake_remove(root);
	return 0;
}

static void expect_reason(size_t index, const char *expected)
{
	char reason[256];

	assert_true(node_is_empty(&machine.nodes[index]));
	node_reason(&machine, index, reason, sizeof reason);
	assert_string_equal(reason, expected);
}

/* Nodes 0 and 7 online, everything on 7: the machine of the seed report. */
static void gap_and_empty_node(void **state)
{
	(void)state;
	fake_node(root, 7, 16384, "0-31", "20 10");
	fake_node(root, 0, 0, "", "10 20");
	fake_file(root, "/sys/devices/system/node/online", "0,7\n");
	assert_true(machine_read_sysfs(&machine, root));
	assert_int_equal(machine.count, 2);
	assert_int_equal(machine.nodes[0].id, 0);
	assert_int_equal(machine.nodes[1].id, 7);
	assert_int_equal(machine.nodes[1].memory, 16ull << 30);
	assert_int_equal(machine.nodes[1].free, 8ull << 30);
	assert_string_equal(machine.nodes[1].cpus, "0-31");
	assert_false(node_is_empty(&machine.nodes[1]));
	assert_int_equal(machine_distance(&machine, 1, 0), 20);
	assert_int_equal(machine_distance(&machine, 1, 1), 10);
	expect_reason(0, "online, but it has neither memory nor CPUs");
}

static void memoryless_node_has_the_nearest_home(void **state)
{
	(void)state;
	fake_node(root, 0, 0, "0", "10 40 30");
	fake_node(root, 1, 1024, "1", "40 10 20");
	fake_node(root, 2, 2048, "", "30 20 10");
	assert_true(machine_read_sysfs(&machine, root));
	expect_reason(0, "CPUs 0 but no memory; their home is node 2");
	assert_int_equal(machine_nearest(&machine, 0), 2);
	assert_int_equal(machine_nearest(&machine, 1), 1);
}

static void cpuless_node_is_usable(void **state)
{
	(void)state;
	fake_node(root, 0, 1024, "0-1", "10 20");
	fake_node(root, 1, 1024, "", "20 10");
	assert_true(machine_read_sysfs(&machine, root));
	assert_false(machine.nodes[1].has_cpu);
	assert_false(node_is_empty(&machine.nodes[1]));
}

static void cpuset_leaves_nodes_out(void **state)
{
	(void)state;
	fake_node(root, 0, 1024, "0", "10 20 20");
	fake_node(root, 1, 1024, "1", "20 10 20");
	fake_node(root, 3, 1024, "2", "20 20 10");
	fake_file(root, "/proc/self/status", "Name:\tx\nMems_allowed_list:\t1-2,3\n");
	assert_true(machine_read_sysfs(&machine, root));
	expect_reason(0, "this process may not use its memory (mems_allowed)");
	assert_false(node_is_empty(&machine.nodes[1]));
	assert_false(node_is_empty(&machine.nodes[2]));
}

static void other_names_are_no_nodes(void **state)
{
	(void)state;
	fake_node(root, 4, 64, "0", "10");
	fake_file(root, "/sys/devices/system/node/nodeX", "x");
	fake_file(root, "/sys/devices/system/node/node", "x");
	fake_file(root, "/sys/devices/system/node/node-1", "x");
	fake_file(root, "/sys/devices/system/node/node99999", "x");
	fake_file(root, "/sys/devices/system/node/node3 ", "x");
	assert_true(machine_read_sysfs(&machine, root));
	assert_int_equal(machine.count, 1);
	assert_int_equal(machine.nodes[0].id, 4);
}

static void no_node_directory_is_one_node(void **state)
{
	(void)state;
	fake_file(root, "/proc/meminfo", "MemTotal:  2048 kB\nMemFree:  1024 kB\n");
	fake_file(root, "/sys/devices/system/cpu/online", "0-3\n");
	assert_true(machine_read_sysfs(&machine, root));
	assert_int_equal(machine.count, 1);
	assert_int_equal(machine.nodes[0].memory, 2u << 20);
	assert_string_equal(machine.nodes[0].cpus, "0-3");
	assert_false(node_is_empty(&machine.nodes[0]));
}

static void broken_files_are_survived(void **state)
{
	(void)state;
	fake_file(root, "/sys/devices/system/node/node0/meminfo", "nonsense");
	fake_file(root, "/sys/devices/system/node/node1/meminfo", "Node 1 MemTotal: 99 kB\n");
	fake_file(root, "/sys/devices/system/node/node1/distance", "ten 20\n");
	fake_file(root, "/proc/self/status", "Mems_allowed_list:\t0-99999\n");
	assert_true(machine_read_sysfs(&machine, root));
	assert_int_equal(machine.count, 2);
	assert_true(node_is_empty(&machine.nodes[0]));
	assert_false(node_is_empty(&machine.nodes[1])); /* a malformed list forbids nothing */
	assert_int_equal(machine_distance(&machine, 1, 1), 0);
}

static void long_cpu_lists_are_cut_with_dots(void **state)
{
	char cpus[400] = "0";

	(void)state;
	for (int i = 2; i < 100; i += 2)
		sprintf(cpus + strlen(cpus), ",%d", i);
	fake_node(root, 0, 64, cpus, "10");
	assert_true(machine_read_sysfs(&machine, root));
	assert_int_equal(strlen(machine.nodes[0].cpus), sizeof machine.nodes[0].cpus - 1);
	assert_non_null(strstr(machine.nodes[0].cpus, "..."));
}

static void count_number(int number, void *data)
{
	*(long *)data = *(long *)data * 10 + number;
}

static long list_value(const char *list)
{
	long value = 0;

	return list_each(list, 10, count_number, &value) ? value : -1;
}

static void lists_of_the_kernel(void **state)
{
	(void)state;
	assert_int_equal(list_value(""), 0);
	assert_int_equal(list_value("3"), 3);
	assert_int_equal(list_value("1-3,5,8-9"), 123589);
	assert_int_equal(list_value("1-"), -1);
	assert_int_equal(list_value("3-1"), -1);
	assert_int_equal(list_value("1 2"), -1);
	assert_int_equal(list_value("-1"), -1);
	assert_int_equal(list_value("10"), -1);
	assert_int_equal(list_value("x"), -1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, create, destroy)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(gap_and_empty_node),	     TEST(memoryless_node_has_the_nearest_home),
	    TEST(cpuless_node_is_usable),    TEST(cpuset_leaves_nodes_out),
	    TEST(other_names_are_no_nodes),  TEST(no_node_directory_is_one_node),
	    TEST(broken_files_are_survived), TEST(long_cpu_lists_are_cut_with_dots),
	    TEST(lists_of_the_kernel),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
