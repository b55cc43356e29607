/* SPDX-License-Identifier: MIT */
#include "tools/compare_stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

uint64_t cmp_rng_next(struct cmp_rng *rng)
{
	uint64_t z = (rng->state += 0x9e3779b97f4a7c15ULL);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

uint32_t cmp_rng_below(struct cmp_rng *rng, uint32_t bound)
{
	return (uint32_t)(((cmp_rng_next(rng) >> 32) * bound) >> 32);
}

static int compare_doubles(const void *x, const void *y)
{
	double a = *(const double *)x, b = *(const double *)y;

	return (a > b) - (a < b);
}

/* Resampled sets are short (tens), where insertion beats qsort by far. */
static void sort_doubles(double *v, size_t n)
{
	if (n > 64) {
		qsort(v, n, sizeof(*v), compare_doubles);
		return;
	}
	for (size_t i = 1; i < n; i++) {
		double x = v[i];
		size_t j = i;

		for (; j && v[j - 1] > x; j--)
			v[j] = v[j - 1];
		v[j] = x;
	}
}

double cmp_median(double *v, size_t n)
{
	if (!n)
		return NAN;
	sort_doubles(v, n);
	if (n % 2 || v[n / 2 - 1] == v[n / 2])
		return v[n / 2];
	return (v[n / 2 - 1] + v[n / 2]) / 2;
}

double cmp_quantile(const double *sorted, size_t n, double q)
{
	double at = q * (double)(n - 1), below = floor(at);
	size_t i = (size_t)below;

	if (i + 1 >= n)
		return sorted[n - 1];
	if (sorted[i] == sorted[i + 1]) /* also keeps inf - inf out */
		return sorted[i];
	return sorted[i] + (at - below) * (sorted[i + 1] - sorted[i]);
}

struct cmp_summary cmp_summarize(const double *v, size_t n)
{
	struct cmp_summary s = {n, NAN, NAN, NAN, NAN, NAN};
	double sum = 0, squares = 0, *copy;

	if (!n)
		return s;
	s.min = s.max = v[0];
	for (size_t i = 0; i < n; i++) {
		s.min = fmin(s.min, v[i]);
		s.max = fmax(s.max, v[i]);
		sum += v[i];
	}
	s.mean = sum / (double)n;
	for (size_t i = 0; i < n; i++)
		squares += (v[i] - s.mean) * (v[i] - s.mean);
	s.stddev = n > 1 ? sqrt(squares / (double)(n - 1)) : 0;
	copy = malloc(n * sizeof(*copy));
	if (copy) {
		memcpy(copy, v, n * sizeof(*copy));
		s.median = cmp_median(copy, n);
		free(copy);
	}
	return s;
}

double cmp_effect(double a, double b, enum cmp_scale scale, int dir)
{
	if (a == b)
		return 0;
	if (scale == CMP_ABSOLUTE)
		return dir * (b - a);
	return a == 0 ? dir * (b > 0 ? INFINITY : -INFINITY) : dir * (b - a) / fabs(a);
}

static bool all_equal(const double *v, size_t n)
{
	for (size_t i = 1; i < n; i++)
		if (v[i] != v[0])
			return false;
	return n > 1;
}

/* Fills the intervals and p values from the resampled effects (sorted here). */
static void estimate_finish(struct cmp_estimate *e, double *boot, double limit, double floor_p)
{
	size_t under = 0, over = 0, below = 0, above = 0;

	if (e->exact) {
		e->low = e->high = e->point;
		e->p_over = e->point > limit ? 0 : 1;
		e->p_under = e->point > limit ? 1 : 0;
		e->p_zero = e->point == 0 ? 1 : 0;
		return;
	}
	for (size_t i = 0; i < CMP_RESAMPLES; i++) {
		under += boot[i] <= limit;
		over += boot[i] > limit;
		below += boot[i] <= 0;
		above += boot[i] >= 0;
	}
	qsort(boot, CMP_RESAMPLES, sizeof(*boot), compare_doubles);
	e->low = cmp_quantile(boot, CMP_RESAMPLES, 0.025);
	e->high = cmp_quantile(boot, CMP_RESAMPLES, 0.975);
	e->p_over = fmax(floor_p, (double)(under + 1) / (CMP_RESAMPLES + 1));
	e->p_under = fmax(floor_p, (double)(over + 1) / (CMP_RESAMPLES + 1));
	e->p_zero = (double)((below < above ? below : above) + 1) / (CMP_RESAMPLES + 1);
	e->p_zero = fmin(1, 2 * fmax(floor_p, e->p_zero));
}

static double median_resampled(const double *v, size_t n, double *scratch, struct cmp_rng *rng)
{
	for (size_t i = 0; i < n; i++)
		scratch[i] = v[cmp_rng_below(rng, (uint32_t)n)];
	return cmp_median(scratch, n);
}

static struct cmp_estimate estimate_none(void)
{
	return (struct cmp_estimate){NAN, NAN, NAN, 1, 1, 1, false};
}

struct cmp_estimate cmp_estimate_pairs(const double *a, const double *b, size_t n,
				       enum cmp_scale scale, int dir, double limit, uint64_t seed)
{
	struct cmp_estimate e = estimate_none();
	struct cmp_rng rng = {seed};
	double *effect = malloc((2 * n + CMP_RESAMPLES) * sizeof(*effect));
	double *scratch = effect + n, *boot = scratch + n;

	if (!effect || !n)
		goto out;
	for (size_t i = 0; i < n; i++)
		effect[i] = scratch[i] = cmp_effect(a[i], b[i], scale, dir);
	e.point = cmp_median(scratch, n);
	e.exact = all_equal(a, n) && all_equal(b, n);
	for (size_t i = 0; i < CMP_RESAMPLES && !e.exact; i++)
		boot[i] = median_resampled(effect, n, scratch, &rng);
	estimate_finish(&e, boot, limit, ldexp(1, -(int)n));
out:
	free(effect);
	return e;
}

double cmp_sets_floor(size_t na, size_t nb)
{
	double a = (double)na, b = (double)nb;

	return exp(lgamma(a + 1) + lgamma(b + 1) - lgamma(a + b + 1));
}

struct cmp_estimate cmp_estimate_sets(const double *a, size_t na, const double *b, size_t nb,
				      enum cmp_scale scale, int dir, double limit, uint64_t seed)
{
	struct cmp_estimate e = estimate_none();
	struct cmp_rng rng = {seed};
	double *sa = malloc((na + nb + CMP_RESAMPLES) * sizeof(*sa));
	double *sb = sa + na, *boot = sb + nb;

	if (!sa || !na || !nb)
		goto out;
	memcpy(sa, a, na * sizeof(*sa));
	memcpy(sb, b, nb * sizeof(*sb));
	e.point = cmp_effect(cmp_median(sa, na), cmp_median(sb, nb), scale, dir);
	e.exact = all_equal(a, na) && all_equal(b, nb);
	for (size_t i = 0; i < CMP_RESAMPLES && !e.exact; i++) {
		double ma = median_resampled(a, na, sa, &rng);

		boot[i] = cmp_effect(ma, median_resampled(b, nb, sb, &rng), scale, dir);
	}
	estimate_finish(&e, boot, limit, cmp_sets_floor(na, nb));
out:
	free(sa);
	return e;
}

void cmp_holm(double *p, size_t m)
{
	size_t *order = malloc((m ? m : 1) * sizeof(*order));
	double largest = 0;

	if (!order)
		abort();
	for (size_t i = 0; i < m; i++) {
		size_t j = i;

		for (; j && p[order[j - 1]] > p[i]; j--)
			order[j] = order[j - 1];
		order[j] = i;
	}
	for (size_t rank = 0; rank < m; rank++) {
		largest = fmax(largest, fmin(1, p[order[rank]] * (double)(m - rank)));
		p[order[rank]] = largest;
	}
	free(order);
}

size_t cmp_looks(size_t pairs, size_t max, size_t looks[3])
{
	size_t n = 0;

	for (size_t factor = 1; factor <= 4; factor *= 2) {
		looks[n] = pairs * factor < max ? pairs * factor : max;
		n++;
		if (looks[n - 1] == max)
			break;
	}
	return n;
}

size_t cmp_pairs_needed(size_t m, double alpha)
{
	size_t n = 2;

	while (n < 60 && 2 * ldexp(1, -(int)n) * (double)m > alpha)
		n++;
	return n;
}
