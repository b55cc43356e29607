/* SPDX-License-Identifier: MIT */
/* Each threshold metric gets a two-sided p value against its threshold, from the bootstrap; Holm
 * makes them one family; the direction says PASS or FAIL.  Alpha is divided among the looks, so the
 * chance that any verdict of the whole run is wrong stays below CMP_ALPHA however often it looked.
 */
#include "tools/compare_judge.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *cmp_verdict_text(enum cmp_verdict v)
{
	static const char *const text[] = {
	    [CMP_NOT_JUDGED] = "-", [CMP_PASS] = "PASS",
	    [CMP_FAIL] = "FAIL",    [CMP_INCONCLUSIVE] = "INCONCLUSIVE",
	    [CMP_NOISY] = "NOISY",  [CMP_ERROR] = "ERROR",
	};

	return text[v];
}

struct cmp_sample *cmp_runs_next(struct cmp_runs *runs, enum cmp_side side)
{
	struct cmp_sample *s;

	if (runs->n[side] == runs->room[side]) {
		runs->room[side] = runs->room[side] ? 2 * runs->room[side] : 16;
		runs->side[side] =
		    realloc(runs->side[side], runs->room[side] * sizeof(*runs->side[side]));
		if (!runs->side[side])
			abort();
	}
	s = &runs->side[side][runs->n[side]];
	memset(s, 0, sizeof(*s));
	for (int m = 0; m < CMP_M_COUNT; m++)
		s->v[m] = NAN;
	return s;
}

void cmp_runs_free(struct cmp_runs *runs)
{
	for (int i = 0; i < CMP_SIDES; i++)
		free(runs->side[i]);
	memset(runs, 0, sizeof(*runs));
}

bool cmp_column(const struct cmp_sample *s, size_t n, int metric, double *out)
{
	for (size_t i = 0; i < n; i++) {
		out[i] = s[i].v[metric];
		if (isnan(out[i]))
			return false;
	}
	return n > 0;
}

/* The four columns of one metric: before/after is the question, reference/control the check. */
struct columns {
	double *before, *after, *reference, *control;
	size_t nbefore, nafter, nreference, ncontrol;
	bool paired;
};

static size_t fewer(size_t a, size_t b)
{
	return a < b ? a : b;
}

static bool column(const struct cmp_runs *r, enum cmp_side side, size_t pairs, int metric,
		   double **out, size_t *n)
{
	*n = fewer(pairs, r->n[side]);
	*out = calloc(*n + 1, sizeof(**out));
	if (!*out)
		abort();
	if (!cmp_column(r->side[side], *n, metric, *out))
		*n = 0;
	return *n > 0;
}

static bool columns_get(const struct cmp_runs *runs, const struct cmp_runs *base, size_t pairs,
			int metric, struct columns *c)
{
	bool present;

	c->paired = !base;
	if (base) {
		present = column(base, CMP_AFTER, SIZE_MAX, metric, &c->before, &c->nbefore);
		column(base, CMP_BEFORE, SIZE_MAX, metric, &c->reference, &c->nreference);
		column(runs, CMP_BEFORE, pairs, metric, &c->control, &c->ncontrol);
	} else {
		present = column(runs, CMP_BEFORE, pairs, metric, &c->before, &c->nbefore);
		column(runs, CMP_BEFORE, pairs, metric, &c->reference, &c->nreference);
		column(runs, CMP_CONTROL, pairs, metric, &c->control, &c->ncontrol);
	}
	/* Not &&: each column is filled, also where another one lacks the metric. */
	return column(runs, CMP_AFTER, pairs, metric, &c->after, &c->nafter) & present;
}

static void columns_free(struct columns *c)
{
	free(c->before);
	free(c->after);
	free(c->reference);
	free(c->control);
}

static struct cmp_estimate estimate(const struct columns *c, const double *a, size_t na,
				    const double *b, size_t nb, const struct cmp_judgement *j,
				    uint64_t seed)
{
	double limit = j->threshold.judged ? j->threshold.limit : 0;

	if (c->paired)
		return cmp_estimate_pairs(a, b, fewer(na, nb), j->threshold.scale, j->dir, limit,
					  seed);
	return cmp_estimate_sets(a, na, b, nb, j->threshold.scale, j->dir, limit, seed);
}

static void measure(const struct cmp_plan *plan, const struct columns *c, int metric,
		    struct cmp_judgement *j)
{
	uint64_t seed = plan->seed;

	/* By name, so that a metric's resamples stay the same when others are added. */
	for (const char *name = cmp_metrics[metric].name; *name; name++)
		seed = (seed ^ (unsigned char)*name) * 0x100000001b3ULL;
	j->before = cmp_summarize(c->before, c->nbefore);
	j->after = cmp_summarize(c->after, c->nafter);
	j->effect = estimate(c, c->before, c->nbefore, c->after, c->nafter, j, seed);
	j->control_ran = c->nreference && c->ncontrol;
	j->control = estimate(c, c->reference, c->nreference, c->control, c->ncontrol, j, seed + 1);
	j->control_ok =
	    !j->control_ran || !j->threshold.judged || fabs(j->control.point) <= j->threshold.limit;
	j->p = fmin(1, 2 * fmin(j->effect.p_over, j->effect.p_under));
	j->p_zero = j->effect.p_zero;
}

/* What only one allocator can tell of itself is shown and not judged. */
static void measure_one_side(const struct columns *c, struct cmp_judgement *j)
{
	j->before = cmp_summarize(c->before, c->nbefore);
	j->after = cmp_summarize(c->after, c->nafter);
	j->effect = j->control = cmp_estimate_pairs(NULL, NULL, 0, j->threshold.scale, 1, 0, 0);
	j->p = j->p_zero = 1;
}

/* The verdict of one metric whose p is already adjusted.  A control that moved by more than the
 * threshold leaves standing only what lies farther from the threshold than the control moved. */
static enum cmp_verdict verdict(const struct cmp_judgement *j, double alpha)
{
	double limit = j->threshold.limit, moved = j->control_ok ? 0 : fabs(j->control.point);
	bool over = j->effect.p_over < j->effect.p_under;

	if (moved > 0 && (over ? j->effect.low <= limit + moved : j->effect.high > limit - moved))
		return CMP_NOISY;
	if (j->p > alpha)
		return CMP_INCONCLUSIVE;
	return over ? CMP_FAIL : CMP_PASS;
}

/* One metric before Holm's correction. */
static void judge_metric(const struct cmp_plan *plan, struct columns *c, int metric,
			 struct cmp_judgement *j)
{
	j->dir = metric >= CMP_M_FIGURE && plan->figure_higher[metric - CMP_M_FIGURE] ? -1 : 1;
	if (j->present)
		measure(plan, c, metric, j);
	else
		measure_one_side(c, j);
	columns_free(c);
}

/* Holm over the metrics that `which` picks; writes the adjusted values back. */
static void adjust(struct cmp_report *r, bool thresholds)
{
	double p[CMP_M_COUNT];
	size_t m = 0;

	for (int i = 0; i < CMP_M_COUNT; i++)
		if (r->m[i].present && (!thresholds || r->m[i].threshold.judged))
			p[m++] = thresholds ? r->m[i].p : r->m[i].p_zero;
	cmp_holm(p, m);
	m = 0;
	for (int i = 0; i < CMP_M_COUNT; i++)
		if (r->m[i].present && (!thresholds || r->m[i].threshold.judged))
			*(thresholds ? &r->m[i].p : &r->m[i].p_zero) = p[m++];
}

static void tell_tendencies(struct cmp_report *r)
{
	for (int i = 0; i < CMP_M_COUNT; i++) {
		struct cmp_judgement *j = &r->m[i];

		if (j->present && j->p_zero <= CMP_ALPHA)
			j->tendency = j->effect.point > 0 ? 1 : j->effect.point < 0 ? -1 : 0;
	}
}

static void conclude(struct cmp_report *r)
{
	/* The most telling verdict first: one failure is a failure whatever else is open. */
	static const enum cmp_verdict rank[] = {CMP_FAIL, CMP_NOISY, CMP_INCONCLUSIVE, CMP_PASS};
	size_t count[CMP_ERROR + 1] = {0};

	for (int i = 0; i < CMP_M_COUNT; i++)
		count[r->m[i].verdict]++;
	r->overall = CMP_PASS;
	for (size_t i = 0; i < sizeof(rank) / sizeof(*rank); i++) {
		if (count[rank[i]]) {
			r->overall = rank[i];
			return;
		}
	}
}

void cmp_judge(const struct cmp_plan *plan, const struct cmp_runs *runs,
	       const struct cmp_runs *base, size_t pairs, size_t look, struct cmp_report *r)
{
	memset(r, 0, sizeof(*r));
	r->pairs = pairs;
	r->look = look;
	r->alpha = CMP_ALPHA / (double)(plan->nlooks ? plan->nlooks : 1);
	for (int i = 0; i < CMP_M_COUNT; i++) {
		struct cmp_judgement *j = &r->m[i];
		struct columns c;

		j->threshold = plan->threshold[i];
		j->present = columns_get(runs, base, pairs, i, &c);
		judge_metric(plan, &c, i, j);
		r->judged += j->present && j->threshold.judged;
	}
	adjust(r, true);
	adjust(r, false);
	for (int i = 0; i < CMP_M_COUNT; i++) {
		struct cmp_judgement *j = &r->m[i];

		if (j->threshold.judged) /* what was not measured has not passed */
			j->verdict = j->present ? verdict(j, r->alpha) : CMP_INCONCLUSIVE;
	}
	tell_tendencies(r);
	conclude(r);
}

bool cmp_peer_metric(int metric)
{
	return metric == CMP_M_TIME || metric == CMP_M_CPU || metric == CMP_M_RSS ||
	       metric >= CMP_M_FIGURE;
}

void cmp_judge_peer(const struct cmp_plan *plan, const struct cmp_runs *runs, enum cmp_side side,
		    size_t pairs, struct cmp_report *r)
{
	memset(r, 0, sizeof(*r));
	r->pairs = fewer(pairs, runs->n[side]);
	for (int i = 0; i < CMP_M_COUNT; i++) {
		struct columns c = {.paired = true};
		struct cmp_judgement *j = &r->m[i];
		bool before, after;

		if (!cmp_peer_metric(i))
			continue;
		before = column(runs, side, r->pairs, i, &c.before, &c.nbefore);
		after = column(runs, CMP_AFTER, r->pairs, i, &c.after, &c.nafter);
		j->present = before && after;
		judge_metric(plan, &c, i, j);
	}
	adjust(r, false);
	tell_tendencies(r);
}

bool cmp_judge_undecided(const struct cmp_report *r)
{
	return r->overall == CMP_INCONCLUSIVE || r->overall == CMP_NOISY;
}
