/* SPDX-License-Identifier: MIT */
/* Why a process, or any at all, cannot be shown: what happened, why, and what to do. */
#ifndef NUMASLAB_MISSING_H
#define NUMASLAB_MISSING_H

#include "tools/reader_set.h"

/* For a pid that was asked for, is not in the set and has no refusal; says so and returns a status.
 */
int missing_process(const char *cmd, int pid);

/* For a set that is empty without refusals; says so and returns a status. */
int missing_all(const char *cmd, const struct process_set *set);

#endif
