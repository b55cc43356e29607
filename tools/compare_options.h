/* SPDX-License-Identifier: MIT */
/* numaslab compare: its command line. */
#ifndef NUMASLAB_TOOLS_COMPARE_OPTIONS_H
#define NUMASLAB_TOOLS_COMPARE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/compare_judge.h"

enum cmp_format { CMP_TABLE, CMP_MARKDOWN, CMP_JSON, CMP_JUNIT, CMP_FORMATS };

struct cmp_options {
	const char *against[1 + CMP_PEERS], *with; /* allocators: before, peers; after */
	size_t nagainst;
	const char *pin, *base, *replay;
	char *metric[CMP_FIGURES]; /* the expressions, NULL: none */
	bool metric_higher[CMP_FIGURES];
	size_t metrics;
	bool numa, same_output, ignore_failure, quiet, thresholds_given;
	bool wanted[CMP_FORMATS];
	const char *file[CMP_FORMATS]; /* NULL or "-": standard output */
	struct cmp_threshold threshold[CMP_M_COUNT];
	size_t pairs, max_pairs, warmup;
	uint64_t seed;
	double timeout;
	int argc;
	char **argv; /* the command */
};

/* -1: go on; else the exit status, after having said what is wrong (or the help). */
int cmp_options_parse(struct cmp_options *o, int argc, char **argv);

#endif
