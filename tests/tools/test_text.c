/* SPDX-License-Identifier: MIT */
/* Nearest words, text that is safe on a terminal, wrapped lines, the tunables in words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "tools/cmd.h"
#include "tools/tunables_doc.h"

static const char *const words[] = {"run", "top", "stat", "hints", "compare", "doctor"};

static void assert_nearest(const char *to, const char *expected)
{
	const char *got = nearest_word(to, words, sizeof words / sizeof *words);

	if (expected)
		assert_string_equal(got ? got : "(none)", expected);
	else
		assert_null(got);
}

static void nearest_is_what_was_meant(void **state)
{
	(void)state;
	assert_nearest("docter", "doctor");
	assert_nearest("dcotor", "doctor");
	assert_nearest("doc", "doctor");
	assert_nearest("Doctor", "doctor");
	assert_nearest("rum", "run");
	assert_nearest("rn", "run");
	assert_nearest("compaer", "compare");
	assert_nearest("hint", "hints");
	assert_nearest("xyzzy", NULL);
	assert_nearest("", NULL);
	assert_nearest("q", NULL);
	assert_nearest("ls", NULL);
	assert_nearest("frobnicate", NULL);
	assert_nearest("comparison-of-two", NULL);
	assert_nearest("a-word-that-is-longer-than-any-command-could-ever-reasonably-be", NULL);
}

static void assert_printable(const char *in, const char *expected)
{
	char buf[64];

	assert_string_equal(printable(buf, sizeof buf, in), expected);
}

static void controls_do_not_reach_the_terminal(void **state)
{
	(void)state;
	assert_printable("plain text", "plain text");
	assert_printable("a\033[31mred", "a?[31mred");
	assert_printable("two\nlines\ttab\r\a\x7f", "two?lines?tab???");
	assert_printable("c1 \xc2\x9b!", "c1 ?\?!"); /* U+009B is CSI */
	assert_printable("raw \x9b!", "raw ?!");
	assert_printable("\xc3\xa9t\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80",
			 "\xc3\xa9t\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80");
	assert_printable("cut \xe2\x82", "cut ??");
	assert_printable("overlong \xc0\xaf", "overlong ??");
	assert_printable("surrogate \xed\xa0\x80", "surrogate ???");
	assert_printable("turned \xe2\x80\xae", "turned ???");
}

static void cut_text_stays_whole_characters(void **state)
{
	char buf[4];

	(void)state;
	assert_string_equal(printable(buf, sizeof buf, "abcdef"), "abc");
	assert_string_equal(printable(buf, sizeof buf, "ab\xe2\x82\xac"), "ab");
}

static void wrapped_lines_keep_within_the_width(void **state)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	(void)state;
	print_wrapped(out, "one two three four averyveryverylongword five", 4, 4, 14);
	fclose(out);
	assert_string_equal(text, "one two\n    three four\n    averyveryverylongword\n    five\n");
	free(text);
}

static void judge(const char *assignment, enum tunable_verdict verdict, const char *says)
{
	char why[512] = "";

	assert_int_equal(tunable_judge(assignment, why, sizeof why), verdict);
	if (!strstr(why, says))
		fail_msg("'%s' is judged '%s', which does not say '%s'", assignment, why, says);
}

static void values_are_judged_with_a_reason(void **state)
{
	char longest[400] = "DIR=/";

	(void)state;
	judge("CHECK=1", TUNABLE_GOOD, "");
	judge("NUMASLAB_CHECK=1", TUNABLE_GOOD, "");
	judge("CHECK=", TUNABLE_GOOD, "");
	judge("GROUP=0", TUNABLE_GOOD, "");
	judge("GROUP=root", TUNABLE_GOOD, "");
	judge("GROUP=nosuchgroup", TUNABLE_BAD_VALUE, "no such group");
	judge("TOPOLOGY=0:0;7:16G@0-31", TUNABLE_GOOD, "");
	judge("TOPOLOGY=0:1G@0;1:1G@1;dist=0:1:20", TUNABLE_GOOD, "");
	judge("TOPOLOGY=0:1X@0", TUNABLE_BAD_VALUE, "it is node:memory@CPUs");
	judge("PLACEMENT=hmoe", TUNABLE_BAD_VALUE, "home|observe|kernel");
	judge("CHECK=2", TUNABLE_BAD_VALUE, "NUMASLAB_CHECK cannot be '2'");
	judge("WINDOW=1M", TUNABLE_BAD_VALUE, "0 or 64M..1T");
	judge("TICK_MS=0", TUNABLE_BAD_VALUE, "1..60000");
	judge("DIR=tmp", TUNABLE_BAD_VALUE, "an absolute path");
	memset(longest + 5, 'x', 300);
	judge(longest, TUNABLE_BAD_VALUE, "too long");
	judge("PLACEMNT=home", TUNABLE_UNKNOWN, "did you mean NUMASLAB_PLACEMENT?");
	judge("NUMASLAB_OBSERV=1", TUNABLE_UNKNOWN, "did you mean NUMASLAB_OBSERVE?");
	judge("ZZZ=1", TUNABLE_UNKNOWN, "--help-tunables");
	judge("CHECK", TUNABLE_MALFORMED, "not NAME=VALUE");
	judge("=1", TUNABLE_MALFORMED, "not NAME=VALUE");
	judge("CHECK=\033[2J", TUNABLE_BAD_VALUE, "'?[2J'");
}

/* Each default, as it is documented, is a value that the parser takes and that changes nothing. */
static void documented_defaults_are_the_defaults(void **state)
{
	(void)state;
	for (int i = 0; i < TUNABLE_COUNT; i++) {
		struct tunables t = tunables;
		char text[32];

		tunable_default_text((enum tunable_id)i, text, sizeof text);
		if (!strcmp(text, "unset"))
			continue;
		assert_true(tunable_set(&tunable_table[i], text, &t));
		assert_memory_equal(&t, &tunables, sizeof t);
	}
}

static void every_tunable_is_documented(void **state)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	(void)state;
	tunables_print(out);
	tunables_print_man(out);
	fclose(out);
	for (int i = 0; i < TUNABLE_COUNT; i++) {
		char line[64];

		snprintf(line, sizeof line, "\nNUMASLAB_%.18s ", tunable_table[i].name);
		assert_non_null(strstr(text, line));
		snprintf(line, sizeof line, ".BR NUMASLAB_%.18s ", tunable_table[i].name);
		assert_non_null(strstr(text, line));
		assert_true(strlen(tunable_help((enum tunable_id)i)) > 20);
	}
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(nearest_is_what_was_meant),
	    cmocka_unit_test(controls_do_not_reach_the_terminal),
	    cmocka_unit_test(cut_text_stays_whole_characters),
	    cmocka_unit_test(wrapped_lines_keep_within_the_width),
	    cmocka_unit_test(values_are_judged_with_a_reason),
	    cmocka_unit_test(documented_defaults_are_the_defaults),
	    cmocka_unit_test(every_tunable_is_documented),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
