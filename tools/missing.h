/* SPDX-License-Identifier: MIT */
/* Why a process, or any at all, cannot be shown: what happened, why, and what to do. */
#ifndef NUMASLAB_MISSING_H
#define NUMASLAB_MISSING_H

#include <stddef.h>

#include "tools/reader_set.h"

/*
 * For a pid that was asked for, is not in the set and has no refusal: writes why, and returns a
 * status.
 */
int missing_process_why(const char *cmd, int pid, char *why, size_t size);

/* For a set that is empty without refusals. */
int missing_all_why(const char *cmd, const struct process_set *set, char *why, size_t size);

/* The same, said on stderr. */
int missing_process(const char *cmd, int pid);
int missing_all(const char *cmd, const struct process_set *set);

#endif
