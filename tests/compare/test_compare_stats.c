/* SPDX-License-Identifier: MIT */
/* Statistics and verdicts of numaslab compare, against values worked out by other means: by hand,
 * by enumerating every resample, or from the published vectors of the generator. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "tools/compare_judge.h"

#define CLOSE(a, b, eps) assert_true(fabs((a) - (b)) <= (eps))

/* The first outputs of splitmix64 for seed 1234567, as its authors' program prints them. */
static void generator_is_splitmix64(void **state)
{
	struct cmp_rng rng = {1234567};

	(void)state;
	assert_true(cmp_rng_next(&rng) == 6457827717110365317ULL);
	assert_true(cmp_rng_next(&rng) == 3203168211198807973ULL);
	assert_true(cmp_rng_next(&rng) == 9817491932198370423ULL);
}

static void generator_is_even(void **state)
{
	struct cmp_rng rng = {7};
	unsigned count[10] = {0};
	double chi = 0;

	(void)state;
	for (int i = 0; i < 100000; i++) {
		uint32_t k = cmp_rng_below(&rng, 10);

		assert_true(k < 10);
		count[k]++;
	}
	for (int i = 0; i < 10; i++)
		chi += (count[i] - 1e4) * (count[i] - 1e4) / 1e4;
	assert_true(chi < 27.9); /* 9 degrees of freedom, 1 in 1000 */
	assert_true(chi > 0.9);	 /* not a counter either */
}

static void summary_of_known_samples(void **state)
{
	/* The example of NIST's handbook style: 2 4 4 4 5 5 7 9, mean 5, sum of squares 32. */
	const double v[] = {9, 4, 5, 2, 4, 7, 5, 4};
	struct cmp_summary s = cmp_summarize(v, 8);

	(void)state;
	CLOSE(s.mean, 5, 1e-12);
	CLOSE(s.stddev, sqrt(32.0 / 7), 1e-12);
	CLOSE(s.median, 4.5, 0);
	CLOSE(s.min, 2, 0);
	CLOSE(s.max, 9, 0);
	s = cmp_summarize(v, 1);
	CLOSE(s.stddev, 0, 0);
	CLOSE(s.median, 9, 0);
	assert_true(isnan(cmp_summarize(v, 0).mean));
}

static void medians_odd_even_infinite(void **state)
{
	double odd[] = {3, 1, 2}, even[] = {4, 1, 3, 2}, inf[] = {INFINITY, INFINITY, 1, 1};
	double many[101];

	(void)state;
	CLOSE(cmp_median(odd, 3), 2, 0);
	CLOSE(cmp_median(even, 4), 2.5, 0);
	assert_true(isinf(cmp_median(inf, 4)));
	for (int i = 0; i < 101; i++)
		many[i] = (i * 37) % 101;
	CLOSE(cmp_median(many, 101), 50, 0);
	assert_true(isnan(cmp_median(many, 0)));
}

static void quantiles_interpolate(void **state)
{
	const double v[] = {10, 20, 30, 40, 50};

	(void)state;
	CLOSE(cmp_quantile(v, 5, 0), 10, 0);
	CLOSE(cmp_quantile(v, 5, 0.5), 30, 0);
	CLOSE(cmp_quantile(v, 5, 0.1), 14, 1e-12);
	CLOSE(cmp_quantile(v, 5, 1), 50, 0);
}

static void effects_have_a_direction(void **state)
{
	(void)state;
	CLOSE(cmp_effect(100, 110, CMP_RELATIVE, 1), 0.1, 1e-12);
	CLOSE(cmp_effect(100, 110, CMP_RELATIVE, -1), -0.1, 1e-12);
	CLOSE(cmp_effect(100, 90, CMP_ABSOLUTE, 1), -10, 0);
	CLOSE(cmp_effect(0, 0, CMP_RELATIVE, 1), 0, 0);
	assert_true(cmp_effect(0, 5, CMP_RELATIVE, 1) == INFINITY);
	assert_true(cmp_effect(0, 5, CMP_RELATIVE, -1) == -INFINITY);
	CLOSE(cmp_effect(5, 0, CMP_RELATIVE, 1), -1, 0);
}

/* Share of the 5^5 resamples of v whose median is <= limit. */
static double exact_share(const double *v, double limit)
{
	unsigned hits = 0;

	for (unsigned code = 0; code < 3125; code++) {
		double r[5];
		unsigned c = code;

		for (int i = 0; i < 5; i++, c /= 5)
			r[i] = v[c % 5];
		hits += cmp_median(r, 5) <= limit;
	}
	return hits / 3125.0;
}

static void bootstrap_agrees_with_every_resample(void **state)
{
	const double a[] = {100, 100, 100, 100, 100.001};
	const double b[] = {101, 103, 104, 106, 110.0011};
	const double effect[] = {0.01, 0.03, 0.04, 0.06, 0.10};

	(void)state;
	for (double limit = 0.02; limit < 0.1; limit += 0.02) {
		struct cmp_estimate e =
		    cmp_estimate_pairs(a, b, 5, CMP_RELATIVE, 1, limit - 1e-6, 42);
		double under = exact_share(effect, limit - 1e-6);

		CLOSE(e.point, 0.04, 1e-6);
		/* 9999 resamples: 4 standard errors; and never below the coins' 2^-5. */
		CLOSE(e.p_over, fmax(under, 1 / 32.0), 0.02);
		CLOSE(e.p_under, fmax(1 - under, 1 / 32.0), 0.02);
	}
	/* 5.8 % of the medians are the lowest value, so the 95 % interval begins there. */
	CLOSE(cmp_estimate_pairs(a, b, 5, CMP_RELATIVE, 1, 0, 42).low, 0.01, 1e-6);
	CLOSE(cmp_estimate_pairs(a, b, 5, CMP_RELATIVE, 1, 0, 42).high, 0.10, 1e-6);
}

static void same_seed_same_answer(void **state)
{
	double a[12], b[12];
	struct cmp_estimate x, y, z;

	(void)state;
	for (int i = 0; i < 12; i++) {
		a[i] = 10 + i % 5;
		b[i] = 10 + (i * 7) % 6;
	}
	x = cmp_estimate_pairs(a, b, 12, CMP_RELATIVE, 1, 0.01, 5);
	y = cmp_estimate_pairs(a, b, 12, CMP_RELATIVE, 1, 0.01, 5);
	z = cmp_estimate_pairs(a, b, 12, CMP_RELATIVE, 1, 0.01, 6);
	assert_memory_equal(&x, &y, sizeof x);
	assert_true(x.p_over != z.p_over || x.p_under != z.p_under);
}

static void constant_samples_need_no_chance(void **state)
{
	const double a[] = {1000, 1000}, b[] = {1025, 1025}, c[] = {1025, 1026};
	struct cmp_estimate e = cmp_estimate_pairs(a, b, 2, CMP_RELATIVE, 1, 0.02, 1);

	(void)state;
	assert_true(e.exact);
	CLOSE(e.p_over, 0, 0);
	CLOSE(e.p_under, 1, 0);
	assert_false(cmp_estimate_pairs(a, c, 2, CMP_RELATIVE, 1, 0.02, 1).exact);
	assert_false(cmp_estimate_pairs(a, b, 1, CMP_RELATIVE, 1, 0.02, 1).exact);
	/* Two pairs that vary show nothing better than two coins. */
	CLOSE(cmp_estimate_pairs(a, c, 2, CMP_RELATIVE, 1, 0.02, 1).p_over, 0.25, 1e-12);
	e = cmp_estimate_sets(a, 2, b, 2, CMP_RELATIVE, 1, 0.03, 1);
	assert_true(e.exact && e.p_under == 0);
}

static void sets_are_floored_by_permutations(void **state)
{
	const double a[] = {1, 1.1, 1.2}, b[] = {5, 5.1, 5.2};
	struct cmp_estimate e = cmp_estimate_sets(a, 3, b, 3, CMP_RELATIVE, 1, 0.05, 1);

	(void)state;
	CLOSE(e.p_over, 1 / 20.0, 1e-9); /* C(6, 3) = 20 */
	CLOSE(e.point, (5.1 - 1.1) / 1.1, 1e-12);
}

static void holm_of_a_known_table(void **state)
{
	/* Holm's procedure on .01 .04 .03 .005: sorted times 4 3 2 1, made monotonous. */
	double p[] = {0.01, 0.04, 0.03, 0.005}, one[] = {0.7, 0.9};

	(void)state;
	cmp_holm(p, 4);
	CLOSE(p[3], 0.02, 1e-12);
	CLOSE(p[0], 0.03, 1e-12);
	CLOSE(p[2], 0.06, 1e-12);
	CLOSE(p[1], 0.06, 1e-12);
	cmp_holm(one, 2);
	CLOSE(one[0], 1, 0);
	cmp_holm(one, 0);
}

static void looks_are_fixed(void **state)
{
	size_t l[3];

	(void)state;
	assert_int_equal(cmp_looks(10, 40, l), 3);
	assert_true(l[0] == 10 && l[1] == 20 && l[2] == 40);
	assert_int_equal(cmp_looks(10, 30, l), 3);
	assert_true(l[2] == 30);
	assert_int_equal(cmp_looks(10, 10, l), 1);
	assert_int_equal(cmp_looks(10, 20, l), 2);
	assert_int_equal(cmp_looks(10, 1000, l), 3);
	assert_true(l[2] == 40);
	/* 2 * 2^-n * m <= alpha */
	assert_int_equal(cmp_pairs_needed(1, 0.05), 6);
	assert_int_equal(cmp_pairs_needed(2, 0.05 / 3), 8);
}

/* --- verdicts --- */

static struct cmp_plan plan;
static struct cmp_runs runs;

/* Fills one metric of a side with value * (1 + spread * pattern), a pattern without trend. */
static void fill(enum cmp_side side, int metric, size_t n, double value, double spread)
{
	static const double pattern[] = {0.3, -0.8, 0.5, -0.1, 0.9, -0.4, 0.1, -0.6, 0.7, -0.2};

	runs.n[side] = 0;
	for (size_t i = 0; i < n; i++) {
		struct cmp_sample *s = cmp_runs_next(&runs, side);

		s->v[metric] = value * (1 + spread * pattern[(i * 3 + (size_t)side) % 10]);
		runs.n[side]++;
	}
}

static enum cmp_verdict time_verdict(double before, double after, double control, double spread,
				     double limit)
{
	struct cmp_report r;

	memset(&plan, 0, sizeof plan);
	plan.threshold[CMP_M_TIME] = (struct cmp_threshold){true, CMP_RELATIVE, limit};
	plan.nlooks = cmp_looks(10, 40, plan.looks);
	plan.seed = 1;
	fill(CMP_BEFORE, CMP_M_TIME, 10, before, spread);
	fill(CMP_AFTER, CMP_M_TIME, 10, after, spread);
	fill(CMP_CONTROL, CMP_M_TIME, 10, control, spread);
	cmp_judge(&plan, &runs, NULL, 10, 0, &r);
	assert_int_equal(r.m[CMP_M_TIME].verdict, r.overall);
	cmp_runs_free(&runs);
	return r.overall;
}

static void verdicts_of_clear_and_unclear_samples(void **state)
{
	(void)state;
	assert_int_equal(time_verdict(1, 1.20, 1, 0.01, 0.05), CMP_FAIL);
	assert_int_equal(time_verdict(1, 0.80, 1, 0.01, 0.05), CMP_PASS);
	assert_int_equal(time_verdict(1, 1.00, 1, 0.01, 0.05), CMP_PASS);
	assert_int_equal(time_verdict(1, 1.05, 1, 0.02, 0.05), CMP_INCONCLUSIVE);
	assert_int_equal(time_verdict(1, 1.00, 1, 0.30, 0.05), CMP_INCONCLUSIVE);
}

static void a_control_that_moves_is_noise(void **state)
{
	(void)state;
	/* The same allocator differs by 10 %: neither +12 % nor -2 % mean a thing. */
	assert_int_equal(time_verdict(1, 1.12, 1.10, 0.002, 0.05), CMP_NOISY);
	assert_int_equal(time_verdict(1, 0.98, 1.10, 0.002, 0.05), CMP_NOISY);
	assert_int_equal(time_verdict(1, 0.98, 0.90, 0.002, 0.05), CMP_NOISY);
	/* What lies farther from the limit than the control moved stands. */
	assert_int_equal(time_verdict(1, 1.40, 1.10, 0.002, 0.05), CMP_FAIL);
	assert_int_equal(time_verdict(1, 0.60, 1.10, 0.002, 0.05), CMP_PASS);
}

static void higher_is_better_turns_the_verdict(void **state)
{
	struct cmp_report r;

	(void)state;
	for (int higher = 0; higher < 2; higher++) {
		memset(&plan, 0, sizeof plan);
		plan.threshold[CMP_M_FIGURE] = (struct cmp_threshold){true, CMP_RELATIVE, 0.05};
		plan.nlooks = cmp_looks(10, 10, plan.looks);
		plan.figure_higher[0] = higher;
		fill(CMP_BEFORE, CMP_M_FIGURE, 10, 1000, 0.01);
		fill(CMP_AFTER, CMP_M_FIGURE, 10, 1200, 0.01);
		fill(CMP_CONTROL, CMP_M_FIGURE, 10, 1000, 0.01);
		cmp_judge(&plan, &runs, NULL, 10, 0, &r);
		assert_int_equal(r.overall, higher ? CMP_PASS : CMP_FAIL);
		assert_int_equal(r.m[CMP_M_FIGURE].tendency, higher ? -1 : 1);
		cmp_runs_free(&runs);
	}
}

static void what_was_not_measured_has_not_passed(void **state)
{
	struct cmp_report r;

	(void)state;
	memset(&plan, 0, sizeof plan);
	plan.threshold[CMP_M_RSS] = (struct cmp_threshold){true, CMP_RELATIVE, 0.05};
	plan.nlooks = 1;
	fill(CMP_BEFORE, CMP_M_TIME, 10, 1, 0);
	fill(CMP_AFTER, CMP_M_TIME, 10, 1, 0);
	cmp_judge(&plan, &runs, NULL, 10, 0, &r);
	assert_int_equal(r.overall, CMP_INCONCLUSIVE);
	plan.threshold[CMP_M_RSS].judged = false;
	cmp_judge(&plan, &runs, NULL, 10, 0, &r);
	assert_int_equal(r.overall, CMP_PASS);
	cmp_runs_free(&runs);
}

/* A lot of judged metrics make each one harder to decide. */
static void holm_is_applied_over_the_judged(void **state)
{
	struct cmp_report r;
	double alone = 0, among = 0;

	(void)state;
	for (int many = 0; many < 2; many++) {
		memset(&plan, 0, sizeof plan);
		plan.nlooks = 1;
		for (int m = 0; m < (many ? 5 : 1); m++)
			plan.threshold[m] = (struct cmp_threshold){true, CMP_RELATIVE, 0.05};
		for (int side = 0; side < CMP_SIDES; side++) {
			fill(side, CMP_M_TIME, 10, side == CMP_AFTER ? 1.2 : 1, 0.01);
			for (size_t i = 0; i < 10; i++)
				for (int m = 1; m < 5; m++)
					runs.side[side][i].v[m] = runs.side[side][i].v[0];
		}
		cmp_judge(&plan, &runs, NULL, 10, 0, &r);
		*(many ? &among : &alone) = r.m[CMP_M_TIME].p;
		cmp_runs_free(&runs);
	}
	CLOSE(alone, 2.0 / 1024, 1e-9); /* ten pairs on one side: 2 * 2^-10 */
	CLOSE(among, 5 * alone, 1e-9);
}

static void an_earlier_run_is_a_base(void **state)
{
	struct cmp_runs base;
	struct cmp_report r;

	(void)state;
	for (int drift = 0; drift < 2; drift++) {
		memset(&plan, 0, sizeof plan);
		plan.threshold[CMP_M_TIME] = (struct cmp_threshold){true, CMP_RELATIVE, 0.05};
		plan.nlooks = 1;
		fill(CMP_BEFORE, CMP_M_TIME, 10, 1.0, 0.01);
		fill(CMP_AFTER, CMP_M_TIME, 12, 0.8, 0.01);
		base = runs;
		memset(&runs, 0, sizeof runs);
		/* Now 15 % slower than the base; with drift, so is the reference allocator. */
		fill(CMP_BEFORE, CMP_M_TIME, 10, drift ? 1.15 : 1.0, 0.01);
		fill(CMP_AFTER, CMP_M_TIME, 10, 0.92, 0.01);
		cmp_judge(&plan, &runs, &base, 10, 0, &r);
		assert_int_equal(r.m[CMP_M_TIME].before.n, 12);
		CLOSE(r.m[CMP_M_TIME].effect.point, 0.15, 0.02);
		assert_int_equal(r.overall, drift ? CMP_NOISY : CMP_FAIL);
		cmp_runs_free(&runs);
		cmp_runs_free(&base);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(generator_is_splitmix64),
	    cmocka_unit_test(generator_is_even),
	    cmocka_unit_test(summary_of_known_samples),
	    cmocka_unit_test(medians_odd_even_infinite),
	    cmocka_unit_test(quantiles_interpolate),
	    cmocka_unit_test(effects_have_a_direction),
	    cmocka_unit_test(bootstrap_agrees_with_every_resample),
	    cmocka_unit_test(same_seed_same_answer),
	    cmocka_unit_test(constant_samples_need_no_chance),
	    cmocka_unit_test(sets_are_floored_by_permutations),
	    cmocka_unit_test(holm_of_a_known_table),
	    cmocka_unit_test(looks_are_fixed),
	    cmocka_unit_test(verdicts_of_clear_and_unclear_samples),
	    cmocka_unit_test(a_control_that_moves_is_noise),
	    cmocka_unit_test(higher_is_better_turns_the_verdict),
	    cmocka_unit_test(what_was_not_measured_has_not_passed),
	    cmocka_unit_test(holm_is_applied_over_the_judged),
	    cmocka_unit_test(an_earlier_run_is_a_base),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
