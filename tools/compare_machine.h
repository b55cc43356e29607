/* SPDX-License-Identifier: MIT */
/* numaslab compare: the machine on which the figures hold. */
#ifndef NUMASLAB_TOOLS_COMPARE_MACHINE_H
#define NUMASLAB_TOOLS_COMPARE_MACHINE_H

#include <stdbool.h>
#include <stddef.h>

#include "tools/compare_judge.h"

#define CMP_CPUS_MAX 8192

struct cmp_node {
	int number;
	double memory; /* bytes */
	char cpus[128];
};

struct cmp_machine {
	char kernel[136], arch[72], cpu[128], libc[32], thp[32], governor[32], started[32];
	int cpus_online, cpus_allowed;
	double memory, load; /* bytes; runnable processes, average of the last minute */
	int numa_balancing;  /* -1: the kernel has none */
	struct cmp_node node[CMP_NODES_MAX]; /* nodes with memory */
	size_t nodes;
	int excluded[CMP_NODES_MAX]; /* online, but without memory */
	size_t excluded_n;
};

/* Describes this machine, and fills the tables of the two functions below. */
void cmp_machine_read(struct cmp_machine *m);

/* Index of a node with memory among those of the machine, or -1. */
int cmp_node_index(int node);
/* The node of a CPU, or -1. */
int cmp_node_of_cpu(int cpu);

/* The deltas of /proc/vmstat: fills v[CMP_VMSTAT_FIRST..LAST], NAN where the kernel has no row. */
void cmp_vmstat_read(double *v);
/* Pure: the same from text. */
void cmp_vmstat_parse(const char *text, double *v);

#endif
