/* SPDX-License-Identifier: MIT */
/* numaslab compare: the processes that one run of the command consists of. */
#ifndef NUMASLAB_TOOLS_COMPARE_TREE_H
#define NUMASLAB_TOOLS_COMPARE_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "tools/compare_judge.h"

/* What sampling has seen of a tree so far. */
struct cmp_peak {
	double pss;			  /* largest sum of PSS, bytes; 0: never seen */
	double heap;			  /* largest sum of anonymous memory, bytes */
	double node_bytes[CMP_NODES_MAX]; /* its pages by node, at that moment */
	double remote_share; /* its part on nodes that ran none of the process's threads */
};

/* Makes this process the reaper of orphans below it and notes which children it already has: they
 * are somebody else's and are neither sampled nor killed. */
void cmp_tree_init(void);

struct cmp_counters;

/* What to look at. */
struct cmp_watch {
	bool pss, nodes;
	struct cmp_counters *counters; /* NULL: not numaslab's */
};

/* Looks at the memory of every process of the tree once.  A process that is alone is left in peace
 * as far as PSS goes: the kernel's own high-water mark of it is exact. */
void cmp_tree_sample(struct cmp_peak *peak, const struct cmp_watch *watch);

/* The counters of every process of the tree that publishes; true if any did so far. */
bool cmp_tree_counters(struct cmp_counters *counters);

/* Kills what is left of the tree, process by process, and reaps it; adds its usage to sum, but for
 * that of `launcher`, which may be among them.  What they published since `since` goes too. Returns
 * how many had to be reaped. */
int cmp_tree_end(pid_t launcher, struct rusage *sum, time_t since);

void cmp_rusage_add(struct rusage *sum, const struct rusage *one);

/* Pure parsers. */
/* A line of numa_maps: adds the bytes of anonymous memory without a file to bytes[index of node].
 * index_of maps a node number to an index below CMP_NODES_MAX, or -1. */
void cmp_numa_maps_line(const char *line, double *bytes, int (*index_of)(int node));
/* The parent's pid, and the CPU last run on, from the text of a stat file; -1 if it is malformed.
 */
int cmp_stat_parent(const char *stat);
int cmp_stat_cpu(const char *stat);

#endif
