/* SPDX-License-Identifier: MIT */
/* numaslab compare: the experiment, run by run, and what can go wrong with the command. */
#ifndef NUMASLAB_TOOLS_COMPARE_LIVE_H
#define NUMASLAB_TOOLS_COMPARE_LIVE_H

#include "tools/compare_options.h"
#include "tools/compare_report.h"
#include "tools/compare_run.h"

struct cmp_live {
	const struct cmp_options *options;
	struct cmp_document *doc;
	struct cmp_command command;
	struct cmp_allocator allocator[2 + CMP_PEERS]; /* CMP_BEFORE, CMP_AFTER, the peers */
	struct cmp_output reference;		       /* the first output under "before" */
	bool have_reference, progress;
	int reference_status;
	int interrupted; /* the signal */
	unsigned order;	 /* runs so far */
	double began;
	double took;	    /* seconds of all counted runs */
	size_t pairs, goal; /* counted so far; until the next look (0: warming up) */
};

/* Finds the allocators, examines the command, prepares cgroup and signals.  -1, or the exit status.
 */
int cmp_live_open(struct cmp_live *l, const struct cmp_options *o, struct cmp_document *doc);

/* The runs before anything counts.  False: see doc->problem, l->interrupted. */
bool cmp_live_warm(struct cmp_live *l);

/* One more pair.  `goal`: pairs until the next look, for the progress line. */
bool cmp_live_pair(struct cmp_live *l, size_t goal);

/* Checks one run of an allocator (0 before, 1 after, 2 and on: peers) against the first run, which
 * it becomes if there was none.  False after having filled *problem. */
bool cmp_check_run(struct cmp_live *l, int allocator, int status, struct cmp_outcome *o,
		   bool measured, struct cmp_problem *problem);

/* Unblocks signals; dies of the one that interrupted, if one did. */
void cmp_live_close(struct cmp_live *l);

/* Pure: the sides of a pair in the order of their runs; "before" is always next to both others, and
 * the order turns round in each pair (C B A, A B C), so that a drift of the machine cancels out.
 * Peers come after these three (when turned round, before them), another one first in each pair. */
size_t cmp_pair_order(size_t pair, bool control, size_t peers, enum cmp_side order[CMP_SIDES]);

/* Pure: the first line in which two texts differ, from 1; shows both beginnings.  0: none. */
size_t cmp_first_difference(const char *a, const char *b, char *shown_a, char *shown_b,
			    size_t size);

#endif
