/* SPDX-License-Identifier: MIT */
/* The NUMASLAB_* parser: each type, its bounds, and that a bad value leaves the default. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "allocator/tunables.h"

static void parse_one(const char *entry)
{
	char *envp[] = {"HOME=/", (char *)entry, "NUMASLAB=1", NULL};

	tunables_parse(envp, false);
}

static void assert_all_defaults(void)
{
	struct tunables now = tunables;

	tunables_parse(NULL, false);
	assert_memory_equal(&now, &tunables, sizeof now);
}

static void defaults_are_documented(void **state)
{
	(void)state;
	assert_int_equal(tunables.placement, PLACEMENT_HOME); /* before any parse */
	assert_true(tunables.telemetry);
	tunables_parse(NULL, false);
	assert_int_equal(tunables.placement, PLACEMENT_HOME);
	assert_int_equal(tunables.large, LARGE_TOUCH);
	assert_string_equal(tunables.topology, "");
	assert_int_equal(tunables.observe, 0);
	assert_int_equal(tunables.window, 0);
	assert_false(tunables.check);
	assert_true(tunables.telemetry);
	assert_int_equal(tunables.tick_ms, 100);
	assert_int_equal(tunables.publish_after_ms, 1000);
	assert_string_equal(tunables.dir, "");
	assert_string_equal(tunables.group, "");
	assert_int_equal(tunables.thp, THP_AUTO);
	assert_int_equal(tunables.deepbind, DEEPBIND_WRAP);
	assert_int_equal(tunables.retain, 64 << 20);
}

static void words_are_in_the_order_of_the_enums(void **state)
{
	(void)state;
	parse_one("NUMASLAB_PLACEMENT=home");
	assert_int_equal(tunables.placement, PLACEMENT_HOME);
	parse_one("NUMASLAB_PLACEMENT=observe");
	assert_int_equal(tunables.placement, PLACEMENT_OBSERVE);
	parse_one("NUMASLAB_PLACEMENT=KERNEL");
	assert_int_equal(tunables.placement, PLACEMENT_KERNEL);
	parse_one("NUMASLAB_LARGE=home");
	assert_int_equal(tunables.large, LARGE_HOME);
	parse_one("NUMASLAB_DEEPBIND=keep");
	assert_int_equal(tunables.deepbind, DEEPBIND_KEEP);
	parse_one("NUMASLAB_THP=never");
	assert_int_equal(tunables.thp, THP_NEVER);
	parse_one("NUMASLAB_THP=always");
	assert_int_equal(tunables.thp, THP_ALWAYS);
}

static void enum_range_is_the_number_of_words(void **state)
{
	(void)state;
	for (const struct tunable *t = tunable_table; t < tunable_table + TUNABLE_COUNT; t++) {
		uint64_t bars = 0;

		if (t->type != TUNABLE_ENUM)
			continue;
		for (const char *w = t->words; *w; w++)
			bars += *w == '|';
		assert_int_equal(t->max, bars);
	}
}

static void booleans(void **state)
{
	static const char *const yes[] = {"1", "yes", "on", "true", "TRUE"};
	static const char *const no[] = {"0", "no", "off", "false", "Off"};
	char entry[64];

	(void)state;
	for (size_t i = 0; i < 5; i++) {
		strcpy(stpcpy(entry, "NUMASLAB_CHECK="), yes[i]);
		parse_one(entry);
		assert_true(tunables.check);
		strcpy(stpcpy(entry, "NUMASLAB_TELEMETRY="), no[i]);
		parse_one(entry);
		assert_false(tunables.telemetry);
	}
}

static void numbers_and_suffixes(void **state)
{
	static const struct {
		const char *text;
		uint64_t value;
	} cases[] = {
	    {"0", 0},	     {"4096", 4096},	 {"64k", 64 << 10},  {"64K", 64 << 10},
	    {"3M", 3 << 20}, {"2g", 2ull << 30}, {"1T", 1ull << 40}, {"1099511627776", 1ull << 40}};
	char entry[64];

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		strcpy(stpcpy(entry, "NUMASLAB_RETAIN="), cases[i].text);
		parse_one(entry);
		assert_int_equal(tunables.retain, cases[i].value);
	}
	parse_one("NUMASLAB_TICK_MS=1");
	assert_int_equal(tunables.tick_ms, 1);
	parse_one("NUMASLAB_TICK_MS=60000");
	assert_int_equal(tunables.tick_ms, 60000);
	parse_one("NUMASLAB_OBSERVE=65536");
	assert_int_equal(tunables.observe, 65536);
}

static void windows_round_down_to_a_power_of_two(void **state)
{
	(void)state;
	parse_one("NUMASLAB_WINDOW=64M");
	assert_int_equal(tunables.window, 64ull << 20);
	parse_one("NUMASLAB_WINDOW=100M");
	assert_int_equal(tunables.window, 64ull << 20);
	parse_one("NUMASLAB_WINDOW=1T");
	assert_int_equal(tunables.window, 1ull << 40);
	parse_one("NUMASLAB_WINDOW=1023G");
	assert_int_equal(tunables.window, 512ull << 30);
	parse_one("NUMASLAB_WINDOW=0");
	assert_int_equal(tunables.window, 0);
}

static void bad_values_leave_the_default(void **state)
{
	static const char *const bad[] = {
	    "NUMASLAB_PLACEMENT=hom",
	    "NUMASLAB_PLACEMENT=homes",
	    "NUMASLAB_PLACEMENT=kernels",
	    "NUMASLAB_PLACEMENT=home|observe",
	    "NUMASLAB_PLACEMENT=",
	    "NUMASLAB_PLACEMENT=1",
	    "NUMASLAB_PLACEMENT",
	    "NUMASLAB_PLACEMEN=kernel",
	    "NUMASLAB_PLACEMENTS=kernel",
	    "numaslab_placement=kernel",
	    "NUMASLAB_=kernel",
	    "NUMASLAB_CHECK=2",
	    "NUMASLAB_CHECK=11",
	    "NUMASLAB_CHECK=-1",
	    "NUMASLAB_CHECK= 1",
	    "NUMASLAB_OBSERVE=65537",
	    "NUMASLAB_OBSERVE=4K",
	    "NUMASLAB_OBSERVE=-1",
	    "NUMASLAB_OBSERVE=18446744073709551617",
	    "NUMASLAB_OBSERVE=0x10",
	    "NUMASLAB_TICK_MS=0",
	    "NUMASLAB_TICK_MS=60001",
	    "NUMASLAB_WINDOW=63M",
	    "NUMASLAB_WINDOW=1025G",
	    "NUMASLAB_WINDOW=K",
	    "NUMASLAB_WINDOW=128MB",
	    "NUMASLAB_RETAIN=18446744073709551615T",
	    "NUMASLAB_RETAIN=16777217T",
	    "NUMASLAB_RETAIN=1.5G",
	    "NUMASLAB_DIR=relative/path",
	    "NUMASLAB_DIR=",
	};

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		parse_one(bad[i]);
		assert_all_defaults();
	}
}

static void strings_fit_or_are_refused(void **state)
{
	char entry[400] = "NUMASLAB_TOPOLOGY=";
	size_t head = strlen(entry);

	(void)state;
	parse_one("NUMASLAB_TOPOLOGY=0:0;7:16G@0-31");
	assert_string_equal(tunables.topology, "0:0;7:16G@0-31");
	parse_one("NUMASLAB_DIR=/run/heap");
	assert_string_equal(tunables.dir, "/run/heap");
	memset(entry + head, 'x', TUNABLE_STRING_MAX);
	parse_one(entry);
	assert_int_equal(strlen(tunables.topology), TUNABLE_STRING_MAX);
	entry[head + TUNABLE_STRING_MAX] = 'x';
	parse_one(entry);
	assert_all_defaults();
}

static void of_two_equal_names_the_first_counts(void **state)
{
	char *envp[] = {"NUMASLAB_OBSERVE=3", "NUMASLAB_OBSERVE=4", "NUMASLAB_TICK_MS=x",
			"NUMASLAB_TICK_MS=5", NULL};

	(void)state;
	tunables_parse(envp, false);
	assert_int_equal(tunables.observe, 3);
	assert_int_equal(tunables.tick_ms, 100);
}

static void secure_reads_nothing(void **state)
{
	char *envp[] = {"NUMASLAB_CHECK=1", "NUMASLAB_DIR=/tmp", NULL};

	(void)state;
	tunables_parse(envp, false);
	assert_true(tunables.check);
	tunables_parse(envp, true);
	assert_all_defaults();
}

static void every_name_is_found_and_no_other(void **state)
{
	(void)state;
	for (const struct tunable *t = tunable_table; t < tunable_table + TUNABLE_COUNT; t++) {
		size_t len = strlen(t->name);

		assert_ptr_equal(tunable_find(t->name, len), t);
		assert_null(tunable_find(t->name, len - 1));
	}
	assert_null(tunable_find("", 0));
	assert_null(tunable_find("CHECKS", 6));
	assert_ptr_equal(tunable_find("CHECK=1", 5), &tunable_table[TUNABLE_ID_CHECK]);
}

static void a_refused_value_changes_nothing(void **state)
{
	struct tunables t = tunables, before = t;

	(void)state;
	assert_false(tunable_set(&tunable_table[TUNABLE_ID_OBSERVE], "99999", &t));
	assert_false(tunable_set(&tunable_table[TUNABLE_ID_DIR], "x", &t));
	assert_memory_equal(&t, &before, sizeof t);
	assert_true(tunable_set(&tunable_table[TUNABLE_ID_OBSERVE], "9", &t));
	assert_int_equal(t.observe, 9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(defaults_are_documented),
	    cmocka_unit_test(words_are_in_the_order_of_the_enums),
	    cmocka_unit_test(enum_range_is_the_number_of_words),
	    cmocka_unit_test(booleans),
	    cmocka_unit_test(numbers_and_suffixes),
	    cmocka_unit_test(windows_round_down_to_a_power_of_two),
	    cmocka_unit_test(bad_values_leave_the_default),
	    cmocka_unit_test(strings_fit_or_are_refused),
	    cmocka_unit_test(of_two_equal_names_the_first_counts),
	    cmocka_unit_test(secure_reads_nothing),
	    cmocka_unit_test(every_name_is_found_and_no_other),
	    cmocka_unit_test(a_refused_value_changes_nothing),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
