/* SPDX-License-Identifier: MIT */
/* numaslab compare: from samples to verdicts.  Pure: no clock, no files, no processes. */
#ifndef NUMASLAB_TOOLS_COMPARE_JUDGE_H
#define NUMASLAB_TOOLS_COMPARE_JUDGE_H

#include "tools/compare_stats.h"

#define CMP_ALPHA     0.05
#define CMP_NODES_MAX 64

#define CMP_PEERS 8 /* allocators beside the two that are judged */

/* CMP_PEER + i is the i-th peer's side. */
enum cmp_side { CMP_BEFORE, CMP_AFTER, CMP_CONTROL, CMP_PEER, CMP_SIDES = CMP_PEER + CMP_PEERS };

/* One run of the command.  v[] is NAN where a figure could not be had. */
struct cmp_sample {
	double v[CMP_M_COUNT];
	double node_bytes[CMP_NODES_MAX]; /* heap by node at its largest, by index of the node */
	unsigned order;			  /* position of the run in the whole experiment, from 0 */
	int status;			  /* exit status, or 128 + signal */
};

/* All runs so far.  Side CMP_CONTROL is a second run of "before" in each pair; a peer has one run
 * in each pair, until it fails.  Against a base, the two sides of `base` are an earlier
 * experiment's; there is no control then, but `before` is run again and must be where it was. */
struct cmp_runs {
	struct cmp_sample *side[CMP_SIDES];
	size_t n[CMP_SIDES], room[CMP_SIDES];
};

enum cmp_verdict {
	CMP_NOT_JUDGED, /* no threshold given */
	CMP_PASS,	/* the change lies within the threshold */
	CMP_FAIL,	/* the change lies beyond it */
	CMP_INCONCLUSIVE,
	CMP_NOISY, /* the control moved by more than the threshold, and the result not by more still
		    */
	CMP_ERROR  /* the command failed or differed (overall verdict only) */
};

const char *cmp_verdict_text(enum cmp_verdict v);

struct cmp_judgement {
	bool present; /* measured in every run */
	struct cmp_threshold threshold;
	int dir; /* +1: less is better, -1: more is better */
	struct cmp_summary before, after;
	struct cmp_estimate effect;  /* before -> after; positive: worse */
	struct cmp_estimate control; /* before -> before again */
	bool control_ran, control_ok;
	double p;      /* two-sided against the threshold, Holm-adjusted */
	double p_zero; /* two-sided against no change, Holm-adjusted */
	enum cmp_verdict verdict;
	int tendency; /* +1 after is worse, -1 better, 0 no difference seen */
};

struct cmp_plan {
	struct cmp_threshold threshold[CMP_M_COUNT];
	bool figure_higher[CMP_FIGURES]; /* --metric: higher is better */
	size_t looks[3], nlooks;
	uint64_t seed;
};

struct cmp_report {
	struct cmp_judgement m[CMP_M_COUNT];
	enum cmp_verdict overall;
	size_t judged; /* metrics with a threshold */
	double alpha;  /* of this look */
	size_t pairs, look;
};

/* Judges the first `pairs` pairs at look number `look` (from 0).  base: NULL, or an earlier
 * experiment whose "after" is then compared with this one's. */
void cmp_judge(const struct cmp_plan *plan, const struct cmp_runs *runs,
	       const struct cmp_runs *base, size_t pairs, size_t look, struct cmp_report *report);

/* What is told of "after" against each other allocator where there are peers: wall and processor
 * time, peak memory, the command's own figures.  Nothing is judged.  The other metrics stay absent.
 */
bool cmp_peer_metric(int metric);
void cmp_judge_peer(const struct cmp_plan *plan, const struct cmp_runs *runs, enum cmp_side side,
		    size_t pairs, struct cmp_report *report);

/* Are more pairs worth running: undecided, and nothing has failed? */
bool cmp_judge_undecided(const struct cmp_report *report);

/* Copies one metric of n samples into out; false if one of them lacks it. */
bool cmp_column(const struct cmp_sample *s, size_t n, int metric, double *out);

/* Adds room and returns the next sample of this side, zeroed and with every value NAN; n is not
 * counted up. */
struct cmp_sample *cmp_runs_next(struct cmp_runs *runs, enum cmp_side side);
void cmp_runs_free(struct cmp_runs *runs);

#endif
