/* SPDX-License-Identifier: MIT */
#include "tools/compare_report.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cmd.h"

void cmp_note(struct cmp_document *d, const char *format, ...)
{
	va_list args;

	if (d->notes == CMP_NOTES)
		return;
	va_start(args, format);
	vsnprintf(d->note[d->notes++], sizeof d->note[0], format, args);
	va_end(args);
}

enum cmp_verdict cmp_document_verdict(const struct cmp_document *d)
{
	return d->problem.what[0] ? CMP_ERROR : d->report.overall;
}

int cmp_exit_status(const struct cmp_document *d)
{
	switch (cmp_document_verdict(d)) {
	case CMP_FAIL:
		return 1;
	case CMP_INCONCLUSIVE:
	case CMP_NOISY:
		return 6;
	case CMP_ERROR:
		return 7;
	default:
		return 0;
	}
}

void cmp_column_names(const struct cmp_document *d, char before[96], char after[96])
{
	if (d->base)
		snprintf(before, 96, "%s (base)", d->base->name[CMP_AFTER]);
	else
		snprintf(before, 96, "%s", d->name[CMP_BEFORE]);
	snprintf(after, 96, "%s", d->name[CMP_AFTER]);
}

const struct cmp_runs *cmp_before_runs(const struct cmp_document *d, enum cmp_side *side)
{
	*side = d->base ? CMP_AFTER : CMP_BEFORE;
	return d->base ? &d->base->runs : &d->runs;
}

void cmp_tendency_text(const struct cmp_document *d, int tendency, char *buf, size_t size)
{
	size_t used = 0;

	buf[0] = '\0';
	for (int m = 0; m < CMP_M_COUNT && used < size; m++) {
		const struct cmp_judgement *j = &d->report.m[m];

		if (!j->present || !cmp_row_shown(d, m) || j->tendency != tendency)
			continue;
		used += (size_t)snprintf(buf + used, size - used, "%s%s", used ? ", " : "",
					 cmp_metrics[m].name);
	}
}

bool cmp_row_shown(const struct cmp_document *d, int metric)
{
	const struct cmp_judgement *j = &d->report.m[metric];

	if (!j->present)
		return j->after.n && j->after.max != 0;
	return d->all_rows || j->threshold.judged || j->before.max != 0 || j->after.max != 0;
}

static bool needs_quotes(const char *arg)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789_-./:=,+@%";

	return !*arg || arg[strspn(arg, plain)];
}

void cmp_command_text(const struct cmp_document *d, char *buf, size_t size)
{
	size_t used = 0;

	buf[0] = '\0';
	for (int i = 0; i < d->argc && used + 8 < size; i++) {
		const char *quote = needs_quotes(d->argv[i]) ? "'" : "";
		char shown[1024];

		printable(shown, sizeof shown, d->argv[i]);
		used += (size_t)snprintf(buf + used, size - used, "%s%s", used ? " " : "", quote);
		for (const char *c = shown; *c && used + 8 < size; c++)
			used += (size_t)snprintf(buf + used, size - used,
						 *c == '\'' && *quote ? "'\\''" : "%c", *c);
		used += (size_t)snprintf(buf + used, size - used, "%s", quote);
	}
}

void cmp_effect_text(char *buf, size_t size, int metric, const struct cmp_judgement *j,
		     double effect)
{
	double change = j->dir * effect;

	if (j->threshold.scale == CMP_RELATIVE) {
		cmp_change_text(buf, size, change);
		return;
	}
	if (change > 0 && size > 1) {
		*buf++ = '+';
		size--;
	}
	cmp_value_text(buf, size, cmp_metrics[metric].unit, change == 0 ? 0 : change);
}

void cmp_interval_text(char *buf, size_t size, int metric, const struct cmp_judgement *j)
{
	char low[48], high[48];

	cmp_effect_text(low, sizeof low, metric, j, j->dir > 0 ? j->effect.low : j->effect.high);
	cmp_effect_text(high, sizeof high, metric, j, j->dir > 0 ? j->effect.high : j->effect.low);
	snprintf(buf, size, "%s .. %s", low, high);
}

void cmp_reason_text(char *buf, size_t size, const struct cmp_document *d, int metric)
{
	const struct cmp_judgement *j = &d->report.m[metric];
	char change[48], interval[100], limit[48], control[48];

	cmp_effect_text(change, sizeof change, metric, j, j->effect.point);
	cmp_interval_text(interval, sizeof interval, metric, j);
	cmp_threshold_text(limit, sizeof limit, cmp_metrics[metric].unit, &j->threshold);
	cmp_effect_text(control, sizeof control, metric, j, j->control.point);
	switch (j->verdict) {
	case CMP_PASS:
		snprintf(buf, size, "%s (95 %% interval %s) is within the limit of %s", change,
			 interval, limit);
		break;
	case CMP_FAIL:
		snprintf(buf, size, "%s (95 %% interval %s) is worse than the limit of %s", change,
			 interval, limit);
		break;
	case CMP_NOISY:
		snprintf(buf, size,
			 "too noisy: the same allocator against itself moved by %s, limit %s",
			 control, limit);
		break;
	default:
		snprintf(
		    buf, size,
		    "%s (95 %% interval %s) cannot be told from the limit of %s after %zu pairs",
		    change, interval, limit, d->report.pairs);
	}
}

void cmp_document_free(struct cmp_document *d)
{
	cmp_runs_free(&d->runs);
	for (int i = 0; i < d->argc; i++)
		free(d->argv[i]);
	free(d->argv);
	d->argc = 0;
	d->argv = NULL;
}
