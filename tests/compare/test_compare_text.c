/* SPDX-License-Identifier: MIT */
/* What numaslab compare reads and writes: /proc texts, limits, figures, and its own documents,
 * which hold whatever a command line or a stderr may hold. */
#include <math.h>
#include <regex.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>
#include "tools/compare_live.h"
#include "tools/compare_tree.h"

static void limits_are_parsed(void **state)
{
	struct cmp_threshold t[CMP_M_COUNT];

	(void)state;
	assert_null(cmp_threshold_parse("time=5%,rss=64M,hint_faults=0,numa_hit=1.5k", t));
	assert_true(t[CMP_M_TIME].judged && t[CMP_M_TIME].scale == CMP_RELATIVE);
	assert_true(fabs(t[CMP_M_TIME].limit - 0.05) < 1e-12);
	assert_true(t[CMP_M_RSS].scale == CMP_ABSOLUTE && t[CMP_M_RSS].limit == 67108864);
	assert_true(t[CMP_M_HINT].judged && t[CMP_M_HINT].limit == 0);
	assert_true(t[CMP_M_HIT].limit == 1536);
	assert_false(t[CMP_M_USER].judged);
	assert_null(cmp_threshold_parse("none", t));
	assert_false(t[CMP_M_TIME].judged);
	for (const char **bad = (const char *[]){"", "time", "time=", "speed=5%", "time=5%%",
						 "time=-1", "time=5%,", "time=inf", "time=nan",
						 "time=1e999", "time=5q", ",time=5%", NULL};
	     *bad; bad++)
		if (!cmp_threshold_parse(*bad, t))
			fail_msg("'%s' was taken", *bad);
}

static void vmstat_rows_by_their_whole_names(void **state)
{
	double v[CMP_M_COUNT];

	(void)state;
	cmp_vmstat_parse("nr_free_pages 99\nhit 5\nnuma_hit 1280951\nnuma_hint_faults 7\n"
			 "numa_hint_faults_local 3\npgfault 42\npgmajfault_x 4\n",
			 v);
	assert_true(v[CMP_M_HIT] == 1280951);
	assert_true(v[CMP_M_HINT] == 7 && v[CMP_M_HINTLOCAL] == 3);
	assert_true(v[CMP_M_PGFAULT] == 42);
	assert_true(isnan(v[CMP_M_PGMAJFAULT]) && isnan(v[CMP_M_MISS]));
}

static void stat_with_a_hostile_name(void **state)
{
	const char *stat =
	    "77 (a) b) S 9 (9) 1) R 1234 77 77 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 "
	    "100 4096 10 18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 5 0 0 0 0 0";

	(void)state;
	assert_int_equal(cmp_stat_parent(stat), 1234);
	assert_int_equal(cmp_stat_cpu(stat), 5);
	assert_int_equal(cmp_stat_parent("77"), -1);
	assert_int_equal(cmp_stat_parent("77 (x) S"), -1);
}

static int even_nodes(int node)
{
	return node % 2 == 0 && node < 8 ? node / 2 : -1;
}

static void numa_maps_counts_the_heap_alone(void **state)
{
	double bytes[CMP_NODES_MAX] = {0};

	(void)state;
	cmp_numa_maps_line("7f00 default anon=30 dirty=30 N0=10 N2=20 kernelpagesize_kB=4\n", bytes,
			   even_nodes);
	cmp_numa_maps_line("7f01 prefer:2 anon=1 dirty=1 N2=1 kernelpagesize_kB=2048\n", bytes,
			   even_nodes);
	cmp_numa_maps_line("7f02 default file=/lib/N0=9 anon=4 N0=4 kernelpagesize_kB=4\n", bytes,
			   even_nodes);
	cmp_numa_maps_line("7f03 default mapped=5 N0=5 kernelpagesize_kB=4\n", bytes, even_nodes);
	cmp_numa_maps_line("7f04 default anon=1 N1=1 N900=1 kernelpagesize_kB=4\n", bytes,
			   even_nodes);
	assert_true(bytes[0] == 10 * 4096);
	assert_true(bytes[1] == 20 * 4096 + 2097152);
}

static void cgroup_path_of_version_2(void **state)
{
	char out[64];

	(void)state;
	assert_true(cmp_cgroup_own("0::/user.slice/a b.scope\n", out, sizeof out));
	assert_string_equal(out, "/user.slice/a b.scope");
	assert_true(cmp_cgroup_own("4:memory:/x\n1:cpu:/\n0::/\n", out, sizeof out));
	assert_string_equal(out, "/");
	assert_false(cmp_cgroup_own("4:memory:/x\n", out, sizeof out));
	assert_false(cmp_cgroup_own("0::/0123456789", out, 8));
}

/* A directory that looks like a cgroup but is none: making a group there works, its peak does not
 * exist, so it must be turned down, and nothing may stay behind. */
static void cgroup_that_cannot_count_is_refused(void **state)
{
	char dir[] = "/tmp/numaslab-cgroup-XXXXXX", path[128];
	struct cmp_cgroup cg;
	const char *why;
	FILE *f;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof path, "%s/cgroup.subtree_control", dir);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs("cpu memory pids\n", f);
	fclose(f);
	assert_false(cmp_cgroup_open(&cg, dir, "0::/\n", &why));
	assert_string_equal(cg.parent, "");
	assert_false(cmp_cgroup_begin(&cg));
	unlink(path);
	assert_int_equal(rmdir(dir), 0);
}

static bool figure(const char *re, const char *text, double *v)
{
	regex_t r;
	bool found;

	assert_int_equal(regcomp(&r, re, REG_EXTENDED | REG_NEWLINE), 0);
	found = cmp_figure_find(&r, text, v);
	regfree(&r);
	return found;
}

static void figures_are_found_in_output(void **state)
{
	double v = 0;

	(void)state;
	assert_true(figure("([0-9.]+) requests per second",
			   "12.5 requests per second\n"
			   "88.25 requests per second\n",
			   &v));
	assert_true(v == 88.25);
	assert_true(figure("I +refs: +[0-9,]+", "==7== I refs:  1,234,567\n", &v));
	assert_true(v == 1234567);
	assert_true(figure("ops=(-?[0-9.e+]+)", "ops=1.5e+3", &v) && v == 1500);
	assert_true(figure("^score: ([0-9]+)$", "x\nscore: 7\n", &v) && v == 7);
	assert_false(figure("score: ([0-9]+)", "no figure", &v));
	assert_false(figure("score: (x)", "score: x", &v));
	assert_false(figure("x*", "aaa", &v)); /* matches nothing everywhere, and ends */
}

static void preload_keeps_what_was_there(void **state)
{
	char buf[256];

	(void)state;
	cmp_preload_text(buf, sizeof buf, "/b/libnumaslab.so", NULL);
	assert_string_equal(buf, "/b/libnumaslab.so");
	cmp_preload_text(buf, sizeof buf, "", "/x/libnumaslab.so.0:libfoo.so libbar.so");
	assert_string_equal(buf, "libfoo.so:libbar.so");
	cmp_preload_text(buf, sizeof buf, "/n.so", ":a.so:libnumaslab.so:");
	assert_string_equal(buf, "/n.so:a.so");
	cmp_preload_text(buf, sizeof buf, "", "libnumaslab.so");
	assert_string_equal(buf, "");
}

static const char *order_text(size_t pair, bool control, size_t peers)
{
	static char text[CMP_SIDES + 1];
	enum cmp_side o[CMP_SIDES];
	size_t n = cmp_pair_order(pair, control, peers, o);

	for (size_t i = 0; i < n; i++)
		text[i] = "bac0123"[o[i]];
	text[n] = '\0';
	return text;
}

static void pairs_turn_round(void **state)
{
	(void)state;
	assert_string_equal(order_text(0, true, 0), "cba");
	assert_string_equal(order_text(1, true, 0), "abc");
	assert_string_equal(order_text(0, false, 0), "ba");
	assert_string_equal(order_text(3, false, 0), "ab");
	assert_string_equal(order_text(0, true, 3), "cba012");
	assert_string_equal(order_text(1, true, 3), "210abc");
	assert_string_equal(order_text(2, true, 3), "cba120");
	assert_string_equal(order_text(5, false, 3), "102ab");
}

static void first_difference_by_line(void **state)
{
	char a[40], b[40];

	(void)state;
	assert_int_equal(cmp_first_difference("x\ny\nz\n", "x\nyes\nz\n", a, b, sizeof a), 2);
	assert_string_equal(a, "y");
	assert_string_equal(b, "yes");
	assert_int_equal(cmp_first_difference("x\n", "x\n", a, b, sizeof a), 0);
	assert_int_equal(cmp_first_difference("x\n", "x\nmore", a, b, sizeof a), 2);
	assert_string_equal(a, "");
}

static void plot_bins_hold_every_sample(void **state)
{
	const double v[] = {1, 1, 2, 5, 9, 11};
	unsigned bins[10], one[3];

	(void)state;
	cmp_plot_bins(v, 6, 1, 11, 10, bins);
	assert_true(bins[0] == 2 && bins[1] == 1 && bins[4] == 1 && bins[8] == 1 && bins[9] == 1);
	cmp_plot_bins(v, 1, 1, 1, 3, one);
	assert_true(one[1] == 1);
}

static void texts_for_people(void **state)
{
	char b[64];

	(void)state;
	assert_string_equal(cmp_change_text(b, sizeof b, -1), "-100%");
	assert_string_equal(cmp_change_text(b, sizeof b, 0.0326), "+3.26%");
	assert_string_equal(cmp_change_text(b, sizeof b, -0.825), "-82.5%");
	assert_string_equal(cmp_change_text(b, sizeof b, INFINITY), "new");
	assert_string_equal(cmp_change_text(b, sizeof b, 0), "0%");
	assert_string_equal(cmp_value_text(b, sizeof b, CMP_BYTES, 1536), "1.50 KiB");
	assert_string_equal(cmp_value_text(b, sizeof b, CMP_COUNT, 1131164), "1131164");
	assert_string_equal(cmp_value_text(b, sizeof b, CMP_SECONDS, NAN), "-");
}

/* --- documents --- */

static struct cmp_document doc;

static void doc_add(enum cmp_side side, double time, double rss)
{
	struct cmp_sample *s = cmp_runs_next(&doc.runs, side);

	s->v[CMP_M_TIME] = time;
	s->v[CMP_M_RSS] = rss;
	doc.runs.n[side]++;
}

static int doc_make(void **state)
{
	static const char *const words[] = {"sh", "-c", "echo \"<&>\" ]]> '`|`'\n\033[31m\xff",
					    "\xef\xbf\xbf"};

	(void)state;
	memset(&doc, 0, sizeof doc);
	doc.argc = 4;
	doc.argv = calloc(5, sizeof *doc.argv);
	for (int i = 0; i < 4; i++)
		doc.argv[i] = strdup(words[i]);
	strcpy(doc.name[CMP_BEFORE], "glibc");
	strcpy(doc.name[CMP_AFTER], "numa<slab>");
	strcpy(doc.library[CMP_AFTER], "/x/lib.so");
	strcpy(doc.rss_source, "pss");
	strcpy(doc.machine.cpu, "A & B <cpu>");
	strcpy(doc.machine.started, "2026-11-30T14:00:00Z");
	doc.machine.nodes = 2;
	doc.machine.node[1].number = 7;
	doc.machine.excluded[doc.machine.excluded_n++] = 3;
	for (int i = 0; i < 10; i++) {
		doc_add(CMP_BEFORE, (1000 + i) / 1000.0, 1e6);
		doc_add(CMP_AFTER, (1200 + i) / 1000.0, 1e6);
		doc_add(CMP_CONTROL, (1000 + i) / 1000.0, 1e6);
	}
	doc.runs.side[CMP_AFTER][3].node_bytes[1] = 4096;
	doc.peers = 2;
	strcpy(doc.peer[0].name, "peer|0");
	strcpy(doc.peer[1].name, "peer1");
	strcpy(doc.peer[1].problem.what, "under peer1 it was killed");
	for (int i = 0; i < 10; i++)
		doc_add(CMP_PEER, (1500 + i) / 1000.0, 2e6);
	doc_add(CMP_PEER + 1, 1, 1);
	doc.plan.nlooks = cmp_looks(10, 40, doc.plan.looks);
	cmp_threshold_parse("time=5%,rss=3%", doc.plan.threshold);
	cmp_judge(&doc.plan, &doc.runs, NULL, 10, 0, &doc.report);
	cmp_judge_peers(&doc);
	return 0;
}

static int doc_free(void **state)
{
	(void)state;
	cmp_document_free(&doc);
	return 0;
}

static char *written(void (*writer)(FILE *, const struct cmp_document *))
{
	char *text = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);

	assert_non_null(f);
	writer(f, &doc);
	fclose(f);
	return text;
}

static void json_comes_back_the_same(void **state)
{
	char *text = written(cmp_write_json), *again;
	struct cmp_document back, kept = doc;

	(void)state;
	assert_null(cmp_read_json(&back, text, NULL));
	assert_int_equal(back.argc, 4);
	assert_string_equal(back.argv[2], "echo \"<&>\" ]]> '`|`'\n\033[31m?");
	assert_string_equal(back.name[CMP_AFTER], "numa<slab>");
	assert_int_equal(back.machine.node[1].number, 7);
	assert_int_equal(back.machine.excluded[0], 3);
	assert_int_equal(back.peers, 2);
	assert_string_equal(back.peer[0].name, "peer|0");
	assert_string_equal(back.peer[1].problem.what, "under peer1 it was killed");
	assert_int_equal(back.runs.n[CMP_PEER + 1], 1);
	for (int side = 0; side <= CMP_PEER; side++) {
		assert_int_equal(back.runs.n[side], 10);
		for (int i = 0; i < 10; i++) {
			double x = back.runs.side[side][i].v[CMP_M_TIME];

			assert_true(x == doc.runs.side[side][i].v[CMP_M_TIME]);
			assert_true(isnan(back.runs.side[side][i].v[CMP_M_HIT]));
		}
	}
	assert_true(back.runs.side[CMP_AFTER][3].node_bytes[1] == 4096);
	/* Judged again and written again, it is the same document. */
	memcpy(&back.plan, &kept.plan, sizeof back.plan);
	cmp_judge(&back.plan, &back.runs, NULL, 10, 0, &back.report);
	cmp_judge_peers(&back);
	free(kept.argv[2]);
	kept.argv[2] = strdup(back.argv[2]);
	doc = back;
	again = written(cmp_write_json);
	assert_string_equal(text, again);
	free(text);
	free(again);
	cmp_document_free(&back);
	doc = kept;
}

static void broken_json_is_refused(void **state)
{
	char *text = written(cmp_write_json);
	size_t len = strlen(text);
	struct cmp_document d;

	(void)state;
	for (const char **bad =
		 (const char *[]){"", "[]", "{}", "{\"schema\":2}", "{\"schema\":1}",
				  "{\"schema\":1,\"command\":[]}", "{\"schema\":1,\"command\":[1]}",
				  "{\"schema\":1,\"command\":[\"x\"]}",
				  "{\"schema\":1,\"command\":[\"x\"],\"samples\":[7]}", NULL};
	     *bad; bad++) {
		if (!cmp_read_json(&d, *bad, NULL))
			fail_msg("'%s' was taken", *bad);
		cmp_document_free(&d);
	}
	/* Cut anywhere but in the white space at its end. */
	for (size_t cut = 0; cut < len - 3; cut += 97) {
		char kept = text[cut];

		text[cut] = '\0';
		assert_non_null(cmp_read_json(&d, text, NULL));
		cmp_document_free(&d);
		text[cut] = kept;
	}
	free(text);
}

static void verdict_reaches_every_form(void **state)
{
	struct cmp_style style = {.width = 80};
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	(void)state;
	assert_int_equal(cmp_exit_status(&doc), 1);
	cmp_write_table(f, &doc, &style);
	fclose(f);
	assert_non_null(strstr(text, "FAIL after 10 pairs"));
	assert_null(strchr(text, '\033'));
	assert_null(strchr(text, '\xff'));
	free(text);
	text = written(cmp_write_junit);
	assert_non_null(strstr(text, "<failure type=\"regression\""));
	assert_null(strchr(text, '\033'));
	free(text);
	text = written(cmp_write_markdown);
	assert_non_null(strstr(text, ": FAIL"));
	free(text);
	strcpy(doc.problem.what, "under x it was killed");
	assert_int_equal(cmp_exit_status(&doc), 7);
	f = open_memstream(&text, &size);
	cmp_write_table(f, &doc, &style);
	fclose(f);
	assert_int_equal(strncmp(text, "ERROR: under x it was killed", 28), 0); /* said first */
	free(text);
	doc.problem.what[0] = '\0';
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(limits_are_parsed),
	    cmocka_unit_test(vmstat_rows_by_their_whole_names),
	    cmocka_unit_test(stat_with_a_hostile_name),
	    cmocka_unit_test(numa_maps_counts_the_heap_alone),
	    cmocka_unit_test(cgroup_path_of_version_2),
	    cmocka_unit_test(cgroup_that_cannot_count_is_refused),
	    cmocka_unit_test(figures_are_found_in_output),
	    cmocka_unit_test(preload_keeps_what_was_there),
	    cmocka_unit_test(pairs_turn_round),
	    cmocka_unit_test(first_difference_by_line),
	    cmocka_unit_test(plot_bins_hold_every_sample),
	    cmocka_unit_test(texts_for_people),
	    cmocka_unit_test_setup_teardown(json_comes_back_the_same, doc_make, doc_free),
	    cmocka_unit_test_setup_teardown(broken_json_is_refused, doc_make, doc_free),
	    cmocka_unit_test_setup_teardown(verdict_reaches_every_form, doc_make, doc_free),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
