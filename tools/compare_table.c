/* SPDX-License-Identifier: MIT */
/* The report for people: what failed, the two tables, the verdicts, the plots, one sentence. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cmd.h"
#include "tools/compare_report.h"

/* The rows of the first table, in the order in which time(1) has taught people to read them. */
static const struct {
	int metric;
	const char *title;
} times[] = {{CMP_M_TIME, "Real:"}, {CMP_M_SYS, "Sys:"}, {CMP_M_USER, "User:"}};

static const char *paint(const struct cmp_style *style, enum cmp_verdict v)
{
	if (!style->color)
		return "";
	if (v == CMP_PASS)
		return "\033[32m";
	return v == CMP_FAIL || v == CMP_ERROR ? "\033[31m" : "\033[33m";
}

static const char *plain(const struct cmp_style *style)
{
	return style->color ? "\033[0m" : "";
}

static double mean_change(const struct cmp_judgement *j)
{
	return cmp_effect(j->before.mean, j->after.mean, CMP_RELATIVE, 1);
}

static void time_row(FILE *f, const char *who, const char *title, const struct cmp_summary *s,
		     const char *change)
{
	int digits = s->max >= 100 ? 2 : s->max >= 1 ? 3 : 5;

	fprintf(f, "%-20s %-6s %9.*f %9.*f %9.*f %9.*f %9s\n", who, title, digits, s->min, digits,
		s->max, digits, s->mean, digits, s->stddev, change);
}

static void write_times(FILE *f, const struct cmp_document *d)
{
	char before[96], after[96], change[32];

	cmp_column_names(d, before, after);
	fprintf(f, "%-20s %-6s %9s %9s %9s %9s %9s\n", "Allocator", "Time", "Min", "Max", "Avg",
		"StdDev", "%Change");
	for (int side = 0; side < 2; side++) {
		for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
			const struct cmp_judgement *j = &d->report.m[times[i].metric];

			if (!j->present)
				continue;
			cmp_change_text(change, sizeof change, mean_change(j));
			time_row(f, side ? after : before, times[i].title,
				 side ? &j->after : &j->before, side ? change : "");
		}
	}
}

static bool is_time(int metric)
{
	return metric == CMP_M_TIME || metric == CMP_M_SYS || metric == CMP_M_USER;
}

static void write_parameters(FILE *f, const struct cmp_document *d)
{
	char before[96], after[96], a[48], b[48], change[32];

	cmp_column_names(d, before, after);
	fprintf(f, "\n%-24s %16s %16s %9s\n", "Parameter", before, after, "%Change");
	for (int m = 0; m < CMP_M_COUNT; m++) {
		const struct cmp_judgement *j = &d->report.m[m];
		enum cmp_unit unit = cmp_metrics[m].unit;

		if (is_time(m) || !cmp_row_shown(d, m))
			continue;
		fprintf(f, "%-24s %16s %16s %9s\n", cmp_metrics[m].name,
			cmp_value_text(a, sizeof a, unit, j->before.mean),
			cmp_value_text(b, sizeof b, unit, j->after.mean),
			cmp_change_text(change, sizeof change, mean_change(j)));
	}
}

static void write_residency(FILE *f, const struct cmp_document *d)
{
	enum cmp_side side;
	const struct cmp_runs *before = cmp_before_runs(d, &side);

	if (d->machine.nodes < 2)
		return;
	for (size_t i = 0; i < d->machine.nodes; i++) {
		char name[40], a[48], b[48];
		double sum[2] = {0, 0};

		for (size_t k = 0; k < before->n[side]; k++)
			sum[0] += before->side[side][k].node_bytes[i] / (double)before->n[side];
		for (size_t k = 0; k < d->runs.n[CMP_AFTER]; k++)
			sum[1] +=
			    d->runs.side[CMP_AFTER][k].node_bytes[i] / (double)d->runs.n[CMP_AFTER];
		snprintf(name, sizeof name, "heap on node %d", d->machine.node[i].number);
		fprintf(f, "%-24s %16s %16s\n", name,
			cmp_value_text(a, sizeof a, CMP_BYTES, sum[0]),
			cmp_value_text(b, sizeof b, CMP_BYTES, sum[1]));
	}
}

static void write_peers(FILE *f, const struct cmp_document *d)
{
	char value[48], change[48];

	if (!d->peers)
		return;
	fprintf(f, "\n%-20s", "Medians");
	for (int m = 0; m < CMP_M_COUNT; m++)
		if (cmp_peer_column(d, m))
			fprintf(f, " %10s %8s", cmp_metrics[m].name, "%Change");
	fputc('\n', f);
	for (size_t row = 0; row < cmp_peer_rows(d); row++) {
		fprintf(f, "%-20s", cmp_peer_name(d, row));
		for (int m = 0; m < CMP_M_COUNT; m++) {
			if (!cmp_peer_column(d, m))
				continue;
			cmp_peer_cell(d, row, m, value, change);
			fprintf(f, " %10s %8s", value, change);
		}
		fputc('\n', f);
	}
}

static void write_verdicts(FILE *f, const struct cmp_document *d, const struct cmp_style *style)
{
	if (!d->report.judged)
		return;
	fprintf(f, "\n%-20s %9s %22s %9s %9s  %s\n", "Judged", "change", "95 % interval", "limit",
		"control", "verdict");
	for (int m = 0; m < CMP_M_COUNT; m++) {
		const struct cmp_judgement *j = &d->report.m[m];
		char change[48], interval[100], limit[48], control[48] = "-";

		if (!j->present || !j->threshold.judged)
			continue;
		cmp_effect_text(change, sizeof change, m, j, j->effect.point);
		cmp_interval_text(interval, sizeof interval, m, j);
		cmp_threshold_text(limit, sizeof limit, cmp_metrics[m].unit, &j->threshold);
		if (j->control_ran)
			cmp_effect_text(control, sizeof control, m, j, j->control.point);
		fprintf(f, "%-20s %9s %22s %9s %9s  %s%s%s\n", cmp_metrics[m].name, change,
			interval, limit, control, paint(style, j->verdict),
			cmp_verdict_text(j->verdict), plain(style));
	}
}

static void write_problem(FILE *f, const struct cmp_document *d, const struct cmp_style *style)
{
	char output[sizeof d->problem.output];

	if (!d->problem.what[0])
		return;
	fprintf(f, "%sERROR%s: %s\n", paint(style, CMP_ERROR), plain(style), d->problem.what);
	if (d->problem.output[0]) {
		char *save, *line;

		fputs("The last that it wrote to stderr:\n", f);
		snprintf(output, sizeof output, "%s", d->problem.output);
		for (line = strtok_r(output, "\n", &save); line;
		     line = strtok_r(NULL, "\n", &save)) {
			char shown[512];

			fprintf(f, "    %s\n", printable(shown, sizeof shown, line));
		}
	}
	if (d->problem.how[0])
		fprintf(f, "To see it again: %s\n", d->problem.how);
	if (d->report.pairs)
		fputc('\n', f);
}

static void write_sentence(FILE *f, const struct cmp_document *d)
{
	static const struct {
		int tendency;
		const char *text;
	} kinds[] = {{-1, "better at"}, {1, "worse at"}, {0, "no difference seen at"}};
	char before[96], after[96], list[600];

	cmp_column_names(d, before, after);
	fprintf(f, "\n%s against %s:\n", after, before);
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		cmp_tendency_text(d, kinds[i].tendency, list, sizeof list);
		if (!list[0])
			continue;
		fprintf(f, "  %-22s", kinds[i].text);
		print_wrapped(f, list, 24, 24, 100);
	}
}

static void write_overall(FILE *f, const struct cmp_document *d, const struct cmp_style *style)
{
	enum cmp_verdict v = cmp_document_verdict(d);

	if (!d->report.judged && v != CMP_ERROR) {
		fprintf(f, "\n%zu pairs; nothing was judged (--fail-over none)\n", d->report.pairs);
		return;
	}
	fprintf(f, "\n%s%s%s after %zu pair%s", paint(style, v), cmp_verdict_text(v), plain(style),
		d->report.pairs, d->report.pairs == 1 ? "" : "s");
	if (v == CMP_INCONCLUSIVE)
		fputs(
		    ": the samples allow no verdict yet; more pairs (-r, --max-pairs) or a quieter "
		    "machine (--pin) may",
		    f);
	if (v == CMP_NOISY)
		fputs(": the machine is too noisy; the same allocator differs from itself by more "
		      "than "
		      "the limit",
		      f);
	fputc('\n', f);
}

void cmp_write_table(FILE *f, const struct cmp_document *d, const struct cmp_style *style)
{
	char command[2048];

	write_problem(f, d, style);
	for (size_t i = 0; i < d->peers; i++)
		if (d->peer[i].problem.what[0])
			fprintf(f, "%s is left out: %s\n", d->peer[i].name,
				d->peer[i].problem.what);
	if (d->problem.what[0] && !d->report.pairs)
		return;
	cmp_command_text(d, command, sizeof command);
	fprintf(f, "Command: %s\n", command);
	fprintf(f, "Machine: %s, %d CPUs, %zu node%s, %s\n\n", d->machine.cpu,
		d->machine.cpus_allowed, d->machine.nodes, d->machine.nodes == 1 ? "" : "s",
		d->machine.kernel);
	for (size_t i = 0; i < d->machine.excluded_n; i++)
		fprintf(f, "Node %d is online without memory and is left out.\n",
			d->machine.excluded[i]);
	if (d->report.pairs && d->report.m[CMP_M_TIME].present) {
		write_times(f, d);
		write_parameters(f, d);
		write_residency(f, d);
		write_peers(f, d);
		write_verdicts(f, d, style);
		for (int m = 0; m < CMP_M_COUNT; m++)
			if (m == CMP_M_TIME || d->report.m[m].threshold.judged)
				cmp_write_plot(f, d, m, style);
		write_sentence(f, d);
	}
	for (size_t i = 0; i < d->notes; i++)
		fprintf(f, "%sNote: %s\n", i ? "" : "\n", d->note[i]);
	write_overall(f, d, style);
}
