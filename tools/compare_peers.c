/* SPDX-License-Identifier: MIT */
/* The allocators beside the two that are judged, as a table. */
#include "tools/compare_report.h"

void cmp_judge_peers(struct cmp_document *d)
{
	if (d->peers)
		cmp_judge_peer(&d->plan, &d->runs, CMP_BEFORE, d->report.pairs, &d->beside);
	for (size_t i = 0; i < d->peers; i++)
		cmp_judge_peer(&d->plan, &d->runs, CMP_PEER + i, d->report.pairs,
			       &d->peer[i].report);
}

bool cmp_peer_column(const struct cmp_document *d, int metric)
{
	for (size_t i = 0; i < d->peers; i++)
		if (d->peer[i].report.m[metric].present)
			return true;
	return false;
}

size_t cmp_peer_rows(const struct cmp_document *d)
{
	return 2 + d->peers;
}

const char *cmp_peer_name(const struct cmp_document *d, size_t row)
{
	return row < 2 ? d->name[row ? CMP_BEFORE : CMP_AFTER] : d->peer[row - 2].name;
}

void cmp_peer_cell(const struct cmp_document *d, size_t row, int metric, char value[48],
		   char change[48])
{
	const struct cmp_report *r = row < 2 ? &d->beside : &d->peer[row - 2].report;
	const struct cmp_judgement *j = &r->m[metric];

	change[0] = '\0';
	cmp_value_text(value, 48, cmp_metrics[metric].unit,
		       row ? j->before.median : j->after.median);
	if (!row || !j->present)
		return;
	if (!j->tendency)
		*change++ = '~';
	cmp_change_text(change, 40, j->dir * j->effect.point);
}
