/* SPDX-License-Identifier: MIT */
/* numaslab compare: statistics.  Pure functions; the same seed gives the same answer anywhere. */
#ifndef NUMASLAB_TOOLS_COMPARE_STATS_H
#define NUMASLAB_TOOLS_COMPARE_STATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/compare_metrics.h"

/* splitmix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014). */
struct cmp_rng {
	uint64_t state;
};

uint64_t cmp_rng_next(struct cmp_rng *rng);
/* Uniform in 0..bound-1, bound > 0 (bias below 2^-32 for the bounds used here). */
uint32_t cmp_rng_below(struct cmp_rng *rng, uint32_t bound);

struct cmp_summary {
	size_t n;
	double min, max, mean, stddev, median; /* stddev: n - 1, 0 for n = 1; all NAN for n = 0 */
};

struct cmp_summary cmp_summarize(const double *v, size_t n);

/* Sorts v, returns its median (NAN for n = 0). */
double cmp_median(double *v, size_t n);
/* The q-quantile of sorted v, by linear interpolation. */
double cmp_quantile(const double *sorted, size_t n, double q);

/* Change from a to b on a scale; dir is +1 where more is worse, -1 where less is.  Positive is
 * always worse.  From 0 to something on the relative scale is infinitely more. */
double cmp_effect(double a, double b, enum cmp_scale scale, int dir);

#define CMP_RESAMPLES 9999

struct cmp_estimate {
	double point;	  /* median effect (positive: worse) */
	double low, high; /* bootstrap 95 % interval of it */
	double p_over;	  /* chance of such samples if the effect were <= limit */
	double p_under;	  /* chance of such samples if the effect were > limit */
	double p_zero;	  /* two-sided, against no effect */
	bool exact;	  /* both sides never varied: nothing is left to chance */
};

/* Pairs (a[i], b[i]).  The p values are never below 2^-n, what n fair coins can show, unless exact.
 */
struct cmp_estimate cmp_estimate_pairs(const double *a, const double *b, size_t n,
				       enum cmp_scale scale, int dir, double limit, uint64_t seed);
/* Two independent sets; effect of the medians; p values not below 1 / C(na + nb, na). */
struct cmp_estimate cmp_estimate_sets(const double *a, size_t na, const double *b, size_t nb,
				      enum cmp_scale scale, int dir, double limit, uint64_t seed);

/* The least p value that two sets can show: 1 / C(na + nb, na). */
double cmp_sets_floor(size_t na, size_t nb);

/* Holm's step-down: p[m] becomes adjusted p values; compare each with alpha. */
void cmp_holm(double *p, size_t m);

/* The looks: numbers of pairs after which the data are judged, 1, 2 and 4 times `pairs`, the last
 * cut to `max`.  Returns how many (1..3). */
size_t cmp_looks(size_t pairs, size_t max, size_t looks[3]);

/* The smallest number of pairs with which one of m metrics can be decided at this alpha. */
size_t cmp_pairs_needed(size_t m, double alpha);

#endif
