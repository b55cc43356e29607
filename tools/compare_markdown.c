/* SPDX-License-Identifier: MIT */
/* The report as GitHub-flavoured Markdown, for a job's summary. */
#include <math.h>
#include <string.h>

#include "tools/cmd.h"
#include "tools/compare_report.h"

static const char *mark(enum cmp_verdict v)
{
	if (v == CMP_PASS)
		return "✅ ";
	return v == CMP_FAIL || v == CMP_ERROR ? "❌ " : v == CMP_NOT_JUDGED ? "" : "⚠️ ";
}

/* Text of others in a cell: what would end the cell or start markup is escaped. */
static void put(FILE *f, const char *text)
{
	for (; *text; text++) {
		if (strchr("\\|`*_[]<>#~&", *text))
			fputc('\\', f);
		fputc(*text == '\n' ? ' ' : *text, f);
	}
}

/* Text in a code span: one more backtick around it than it holds in a row. */
static void put_code(FILE *f, const char *text)
{
	size_t longest = 0, run = 0;

	for (const char *c = text; *c; c++) {
		run = *c == '`' ? run + 1 : 0;
		longest = run > longest ? run : longest;
	}
	for (size_t i = 0; i <= longest; i++)
		fputc('`', f);
	fprintf(f, longest ? " %s " : "%s", text);
	for (size_t i = 0; i <= longest; i++)
		fputc('`', f);
}

static void write_times(FILE *f, const struct cmp_document *d, const char *before,
			const char *after)
{
	static const int rows[] = {CMP_M_TIME, CMP_M_SYS, CMP_M_USER};
	static const char *const titles[] = {"Real", "Sys", "User"};

	fputs("\n| Allocator | Time | Min | Max | Avg | StdDev | %Change |\n"
	      "|---|---|---:|---:|---:|---:|---:|\n",
	      f);
	for (int i = 0; i < 6; i++) {
		const struct cmp_judgement *j = &d->report.m[rows[i % 3]];
		const struct cmp_summary *s = i < 3 ? &j->before : &j->after;
		char change[32] = "";

		if (!j->present)
			continue;
		if (i >= 3)
			cmp_change_text(change, sizeof change,
					cmp_effect(j->before.mean, s->mean, CMP_RELATIVE, 1));
		fputs("| ", f);
		put(f, i < 3 ? before : after);
		fprintf(f, " | %s | %.4f | %.4f | %.4f | %.4f | %s |\n", titles[i % 3], s->min,
			s->max, s->mean, s->stddev, change);
	}
}

static void write_parameters(FILE *f, const struct cmp_document *d, const char *before,
			     const char *after)
{
	char a[48], b[48], change[32];

	fputs("\n| Parameter | ", f);
	put(f, before);
	fputs(" | ", f);
	put(f, after);
	fputs(" | %Change |\n|---|---:|---:|---:|\n", f);
	for (int m = CMP_M_RSS; m < CMP_M_COUNT; m++) {
		const struct cmp_judgement *j = &d->report.m[m];
		enum cmp_unit unit = cmp_metrics[m].unit;

		if (cmp_row_shown(d, m))
			fprintf(f, "| %s | %s | %s | %s |\n", cmp_metrics[m].name,
				cmp_value_text(a, sizeof a, unit, j->before.mean),
				cmp_value_text(b, sizeof b, unit, j->after.mean),
				cmp_change_text(
				    change, sizeof change,
				    cmp_effect(j->before.mean, j->after.mean, CMP_RELATIVE, 1)));
	}
}

static void write_peers(FILE *f, const struct cmp_document *d)
{
	char value[48], change[48];

	if (!d->peers)
		return;
	fputs("\n| Medians |", f);
	for (int m = 0; m < CMP_M_COUNT; m++)
		if (cmp_peer_column(d, m))
			fprintf(f, " %s | %%Change |", cmp_metrics[m].name);
	fputs("\n|---|", f);
	for (int m = 0; m < CMP_M_COUNT; m++)
		if (cmp_peer_column(d, m))
			fputs("---:|---:|", f);
	for (size_t row = 0; row < cmp_peer_rows(d); row++) {
		fputs("\n| ", f);
		put(f, cmp_peer_name(d, row));
		fputs(" |", f);
		for (int m = 0; m < CMP_M_COUNT; m++) {
			if (!cmp_peer_column(d, m))
				continue;
			cmp_peer_cell(d, row, m, value, change);
			fprintf(f, " %s | ", value);
			put(f, change);
			fputs(" |", f);
		}
	}
	fputc('\n', f);
}

static void write_verdicts(FILE *f, const struct cmp_document *d)
{
	if (!d->report.judged)
		return;
	fputs("\n| Judged | Change | 95 % interval | Limit | Control | Verdict |\n"
	      "|---|---:|---:|---:|---:|---|\n",
	      f);
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
		fprintf(f, "| %s | %s | %s | %s | %s | %s%s |\n", cmp_metrics[m].name, change,
			interval, limit, control, mark(j->verdict), cmp_verdict_text(j->verdict));
	}
}

static void write_problem(FILE *f, const struct cmp_document *d)
{
	if (!d->problem.what[0])
		return;
	fputs("\n**", f);
	put(f, d->problem.what);
	fputs("**\n", f);
	if (d->problem.output[0]) {
		char copy[sizeof d->problem.output], *save, *line;

		/* Indented code needs no fence that the text could close. */
		fputc('\n', f);
		snprintf(copy, sizeof copy, "%s", d->problem.output);
		for (line = strtok_r(copy, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
			char shown[512];

			fprintf(f, "    %s\n", printable(shown, sizeof shown, line));
		}
	}
	if (d->problem.how[0]) {
		fputs("\nTo see it again: ", f);
		put_code(f, d->problem.how);
		fputc('\n', f);
	}
}

void cmp_write_markdown(FILE *f, const struct cmp_document *d)
{
	enum cmp_verdict v = cmp_document_verdict(d);
	char before[96], after[96], command[2048];

	cmp_column_names(d, before, after);
	cmp_command_text(d, command, sizeof command);
	fprintf(f, "### %s", mark(v));
	put(f, after);
	fputs(" against ", f);
	put(f, before);
	fprintf(f, ": %s\n\n", v == CMP_PASS && !d->report.judged ? "report" : cmp_verdict_text(v));
	put_code(f, command);
	fprintf(f, ", %zu pair%s\n", d->report.pairs, d->report.pairs == 1 ? "" : "s");
	write_problem(f, d);
	for (size_t i = 0; i < d->peers; i++)
		if (d->peer[i].problem.what[0]) {
			fputs("\n> ", f);
			put(f, d->peer[i].name);
			fputs(" is left out: ", f);
			put(f, d->peer[i].problem.what);
			fputc('\n', f);
		}
	if (d->report.pairs && d->report.m[CMP_M_TIME].present) {
		write_verdicts(f, d);
		write_times(f, d, before, after);
		write_parameters(f, d, before, after);
		write_peers(f, d);
	}
	for (size_t i = 0; i < d->notes; i++) {
		fputs("\n> ", f);
		put(f, d->note[i]);
		fputc('\n', f);
	}
	fputs("\n<sub>", f);
	put(f, d->machine.cpu);
	fprintf(f, ", %d CPUs, %zu node%s, ", d->machine.cpus_allowed, d->machine.nodes,
		d->machine.nodes == 1 ? "" : "s");
	put(f, d->machine.kernel);
	fputs("</sub>\n", f);
}
