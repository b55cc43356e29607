/* SPDX-License-Identifier: MIT */
/* What the launcher tells compare over a pipe, one or two records. */
#ifndef NUMASLAB_TOOLS_COMPARE_LAUNCHER_H
#define NUMASLAB_TOOLS_COMPARE_LAUNCHER_H

#include <stdint.h>

enum { CMP_STARTED = 1, CMP_NOT_STARTED };

struct cmp_started {
	int64_t kind, pid;
	int64_t seconds, nanoseconds; /* CLOCK_MONOTONIC, right before exec */
	int64_t error;		      /* CMP_NOT_STARTED: errno */
};

#endif
