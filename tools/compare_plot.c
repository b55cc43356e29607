/* SPDX-License-Identifier: MIT */
/* All samples of a metric on one axis: a line for each allocator, darker where more of them lie. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/compare_report.h"

#define NAME_COLUMNS 20

void cmp_plot_bins(const double *v, size_t n, double low, double high, int width, unsigned *bins)
{
	memset(bins, 0, sizeof *bins * (size_t)width);
	for (size_t i = 0; i < n; i++) {
		double share = high > low ? (v[i] - low) / (high - low) : 0.5;
		int column = (int)(share * width);

		if (column < 0)
			column = 0;
		if (column >= width)
			column = width - 1;
		bins[column]++;
	}
}

static void write_strip(FILE *f, const char *who, const double *v, const struct cmp_summary *s,
			const double axis[2], int width, const struct cmp_style *style)
{
	static const char *const blocks[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
	static const char *const letters[] = {" ", ".", ":", "-", "=", "+", "*", "#", "@"};
	const char *const *ink = style->utf8 ? blocks : letters;
	unsigned bins[400], median[400], most = 1;

	cmp_plot_bins(v, s->n, axis[0], axis[1], width, bins);
	cmp_plot_bins(&s->median, 1, axis[0], axis[1], width, median);
	for (int i = 0; i < width; i++)
		most = bins[i] > most ? bins[i] : most;
	fprintf(f, "  %-*.*s", NAME_COLUMNS, NAME_COLUMNS, who);
	for (int i = 0; i < width; i++) {
		unsigned level = bins[i] ? 1 + 7 * bins[i] / most : 0;
		const char *mark = median[i] && !bins[i] ? (style->utf8 ? "┊" : "|") : ink[level];

		fprintf(f, "%s%s%s", median[i] && style->color ? "\033[1;36m" : "", mark,
			median[i] && style->color ? "\033[0m" : "");
	}
	fputc('\n', f);
}

void cmp_write_plot(FILE *f, const struct cmp_document *d, int metric,
		    const struct cmp_style *style)
{
	const struct cmp_judgement *j = &d->report.m[metric];
	enum cmp_side side;
	const struct cmp_runs *runs = cmp_before_runs(d, &side);
	double *a, *b,
	    axis[2] = {fmin(j->before.min, j->after.min), fmax(j->before.max, j->after.max)};
	int width = style->width - NAME_COLUMNS - 4;
	char before[96], after[96], low[48], high[48];

	if (!j->present || j->before.n + j->after.n < 2)
		return;
	width = width < 20 ? 20 : width > 120 ? 120 : width;
	a = calloc(j->before.n + j->after.n, sizeof *a);
	if (!a)
		return;
	b = a + j->before.n;
	cmp_column(runs->side[side], j->before.n, metric, a);
	cmp_column(d->runs.side[CMP_AFTER], j->after.n, metric, b);
	cmp_column_names(d, before, after);
	cmp_value_text(low, sizeof low, cmp_metrics[metric].unit, axis[0]);
	cmp_value_text(high, sizeof high, cmp_metrics[metric].unit, axis[1]);
	fprintf(f, "\n  %-*s%-*s%s\n", NAME_COLUMNS, cmp_metrics[metric].name,
		width - (int)strlen(high), low, high);
	write_strip(f, before, a, &j->before, axis, width, style);
	write_strip(f, after, b, &j->after, axis, width, style);
	free(a);
}
