/* SPDX-License-Identifier: MIT */
#include "tools/compare_metrics.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct cmp_metric cmp_metrics[CMP_M_COUNT] = {
#define X(id, name_, alias_, unit_, help_)                                                         \
	[CMP_M_##id] = {.name = (name_), .alias = (alias_), .help = (help_), .unit = CMP_##unit_},
    CMP_METRICS(X)
#undef X
};

int cmp_metric_find(const char *name, size_t len)
{
	for (int m = 0; m < CMP_M_COUNT; m++) {
		const char *names[] = {cmp_metrics[m].name, cmp_metrics[m].alias};

		for (int i = 0; i < 2; i++)
			if (strlen(names[i]) == len && !memcmp(names[i], name, len))
				return m;
	}
	return -1;
}

/* One limit: a number, then % (relative) or k, M, G, T (binary multiples) or nothing. */
static bool limit_parse(const char *text, size_t len, struct cmp_threshold *t)
{
	static const char units[] = "kMGT";
	char copy[64], *end;

	if (!len || len >= sizeof(copy))
		return false;
	memcpy(copy, text, len);
	copy[len] = '\0';
	if (copy[0] != '.' && (copy[0] < '0' || copy[0] > '9'))
		return false;
	t->limit = strtod(copy, &end);
	t->scale = CMP_ABSOLUTE;
	if (*end == '%') {
		t->scale = CMP_RELATIVE;
		t->limit /= 100;
		end++;
	} else if (*end) {
		const char *unit = strchr(units, *end == 'K' ? 'k' : *end);

		if (!unit)
			return false;
		t->limit *= (double)(1ULL << (10 * (unit - units + 1)));
		end++;
	}
	t->judged = true;
	return !*end && isfinite(t->limit);
}

const char *cmp_threshold_parse(const char *text, struct cmp_threshold *all)
{
	static char why[200];

	memset(all, 0, sizeof(*all) * CMP_M_COUNT);
	if (!strcmp(text, "none"))
		return NULL;
	for (;;) {
		size_t len = strcspn(text, ",");
		const char *equals = memchr(text, '=', len);
		int m;

		if (!equals) {
			snprintf(why, sizeof(why), "'%.*s' is not NAME=LIMIT", (int)len, text);
			return why;
		}
		m = cmp_metric_find(text, (size_t)(equals - text));
		if (m < 0) {
			snprintf(why, sizeof(why), "no metric is called '%.*s'",
				 (int)(equals - text), text);
			return why;
		}
		if (!limit_parse(equals + 1, len - (size_t)(equals + 1 - text), &all[m])) {
			snprintf(why, sizeof(why),
				 "'%.*s': a limit is a number, with %% or k, M, G, T after it",
				 (int)len, text);
			return why;
		}
		if (!text[len])
			return NULL;
		text += len + 1;
	}
}

static const char *bytes_text(char *buf, size_t size, double value)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
	unsigned u = 0;

	while (fabs(value) >= 1024 && u + 1 < sizeof(units) / sizeof(*units)) {
		value /= 1024;
		u++;
	}
	snprintf(buf, size, u ? "%.2f %s" : "%.0f %s", value, units[u]);
	return buf;
}

const char *cmp_value_text(char *buf, size_t size, enum cmp_unit unit, double value)
{
	if (isnan(value))
		snprintf(buf, size, "-");
	else if (unit == CMP_BYTES)
		return bytes_text(buf, size, value);
	else if (unit == CMP_SECONDS)
		snprintf(buf, size, fabs(value) >= 10 ? "%.2f" : "%.4f", value);
	else if (unit == CMP_SHARE)
		snprintf(buf, size, "%.2f %%", value * 100);
	else if (unit == CMP_COUNT)
		snprintf(buf, size, value == floor(value) ? "%.0f" : "%.1f", value);
	else
		snprintf(buf, size, "%.6g", value);
	return buf;
}

const char *cmp_threshold_text(char *buf, size_t size, enum cmp_unit unit,
			       const struct cmp_threshold *t)
{
	if (!t->judged)
		snprintf(buf, size, "-");
	else if (t->scale == CMP_RELATIVE)
		snprintf(buf, size, "%g%%", t->limit * 100);
	else if (unit == CMP_BYTES)
		return bytes_text(buf, size, t->limit);
	else
		snprintf(buf, size, "%g", t->limit);
	return buf;
}

const char *cmp_change_text(char *buf, size_t size, double change)
{
	double percent = change * 100;

	if (isnan(change))
		snprintf(buf, size, "-");
	else if (isinf(change))
		snprintf(buf, size, "new");
	else if (fabs(percent) < 0.005)
		snprintf(buf, size, "0%%");
	else if (fabs(percent) >= 99.95)
		snprintf(buf, size, "%+.0f%%", percent);
	else
		snprintf(buf, size, fabs(percent) >= 10 ? "%+.1f%%" : "%+.2f%%", percent);
	return buf;
}
