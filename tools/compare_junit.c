/* SPDX-License-Identifier: MIT */
/* The report as JUnit XML: a test case for each judged metric and one for the command itself.
 * FAIL is a failure; a command that failed is an error; undecided is skipped with its reason, since
 * most viewers know no fourth state. */
#include <math.h>
#include <string.h>

#include "tools/cmd.h"
#include "tools/compare_report.h"

/* printable() has left UTF-8 without control characters, except that lines may end. */
static void put(FILE *f, const char *text)
{
	for (; *text; text++) {
		switch (*text) {
		case '&':
			fputs("&amp;", f);
			break;
		case '<':
			fputs("&lt;", f);
			break;
		case '>':
			fputs("&gt;", f);
			break;
		case '"':
			fputs("&quot;", f);
			break;
		default:
			fputc(*text, f);
		}
	}
}

/* Text of others, each line made safe and ended by `end`.  U+FFFE and U+FFFF are UTF-8 that XML 1.0
 * refuses all the same. */
static void put_lines(FILE *f, const char *text, const char *end)
{
	char copy[8192], *save, *line;

	snprintf(copy, sizeof copy, "%s", text);
	for (line = strtok_r(copy, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		char shown[4096];

		printable(shown, sizeof shown, line);
		for (char *c = shown; (c = strstr(c, "\xef\xbf")); c += 3)
			if (c[2] == '\xbe' || c[2] == '\xbf')
				memcpy(c, "???", 3);
		put(f, shown);
		fputs(end, f);
	}
}

static void write_metric(FILE *f, const struct cmp_document *d, int metric, const char *class)
{
	const struct cmp_judgement *j = &d->report.m[metric];
	char reason[400];

	cmp_reason_text(reason, sizeof reason, d, metric);
	fputs("    <testcase classname=\"", f);
	put(f, class);
	fprintf(f, "\" name=\"%s\" time=\"%.6f\">\n", cmp_metrics[metric].name,
		d->report.m[CMP_M_TIME].present ? d->report.m[CMP_M_TIME].after.mean : 0);
	if (j->verdict == CMP_FAIL) {
		fputs("      <failure type=\"regression\" message=\"", f);
		put(f, reason);
		fputs("\"/>\n", f);
	} else if (j->verdict == CMP_PASS) {
		fputs("      <system-out>", f);
		put(f, reason);
		fputs("</system-out>\n", f);
	} else {
		fprintf(f, "      <skipped message=\"%s: ", cmp_verdict_text(j->verdict));
		put(f, reason);
		fputs("\"/>\n", f);
	}
	fputs("    </testcase>\n", f);
}

static void write_command(FILE *f, const struct cmp_document *d, const char *class)
{
	fputs("    <testcase classname=\"", f);
	put(f, class);
	fputs("\" name=\"command\">\n", f);
	if (d->problem.what[0]) {
		fputs("      <error type=\"command\" message=\"", f);
		put_lines(f, d->problem.what, "");
		fputs("\">", f);
		put_lines(f, d->problem.output, "\n");
		put_lines(f, d->problem.how, "\n");
		fputs("</error>\n", f);
	}
	fputs("    </testcase>\n", f);
}

static size_t count(const struct cmp_document *d, enum cmp_verdict v)
{
	size_t n = 0;

	for (int m = 0; m < CMP_M_COUNT; m++)
		n += d->report.m[m].threshold.judged && d->report.m[m].present &&
		     d->report.m[m].verdict == v;
	return n;
}

void cmp_write_junit(FILE *f, const struct cmp_document *d)
{
	char before[96], after[96], command[2048], class[200];
	size_t failed = count(d, CMP_FAIL), passed = count(d, CMP_PASS);
	size_t metrics = d->problem.what[0] ? 0 : d->report.judged;

	if (d->problem.what[0])
		failed = passed = 0;
	cmp_column_names(d, before, after);
	cmp_command_text(d, command, sizeof command);
	snprintf(class, sizeof class, "numaslab.compare.%s", after);
	fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n", f);
	fprintf(f,
		"  <testsuite name=\"numaslab compare\" tests=\"%zu\" failures=\"%zu\" "
		"errors=\"%d\" skipped=\"%zu\" timestamp=\"%.19s\">\n",
		metrics + 1, failed, d->problem.what[0] != 0, metrics - failed - passed,
		d->machine.started);
	fputs("    <properties>\n      <property name=\"command\" value=\"", f);
	put_lines(f, command, "");
	fputs("\"/>\n      <property name=\"before\" value=\"", f);
	put(f, before);
	fputs("\"/>\n      <property name=\"after\" value=\"", f);
	put(f, after);
	fprintf(f, "\"/>\n      <property name=\"pairs\" value=\"%zu\"/>\n    </properties>\n",
		d->report.pairs);
	write_command(f, d, class);
	for (int m = 0; m < CMP_M_COUNT && metrics; m++)
		if (d->report.m[m].threshold.judged && d->report.m[m].present)
			write_metric(f, d, m, class);
	fputs("  </testsuite>\n</testsuites>\n", f);
}
