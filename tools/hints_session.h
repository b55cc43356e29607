/* SPDX-License-Identifier: MIT */
/*
 * A running collection: picks the tier, follows the processes, keeps a struct hints up to date.
 * One thread at a time calls it; it starts no thread and keeps nothing attached beyond the life of
 * its process, however that ends.
 */
#ifndef NUMASLAB_HINTS_SESSION_H
#define NUMASLAB_HINTS_SESSION_H

#include "tools/hints.h"

struct hints_options {
	const int *pids; /* none: all processes */
	size_t pid_count;
	int tier;	  /* enum hints_tier; -1: the best that this machine has */
	uint32_t observe; /* 1 in so many; 0: do not ask for observation */
};

struct hints_session;

/* As --tier takes it; NULL: there is no such tier. */
const char *hints_tier_name(int tier);

/*
 * 0 and *out, or the exit status (tools/cmd.h: 3, 4, 77) and in why what happened and what to do.
 * From its return on faults are counted.
 */
int hints_start(struct hints_session **out, const struct hints_options *o, char *why, size_t size);

/* Waits at most timeout_ms (less when a signal comes), then brings the model up to date.
 * NULL: no memory.  The pointer is good until the next call. */
const struct hints *hints_poll(struct hints_session *s, int timeout_ms);

/* All processes that were named have ended. */
bool hints_is_over(const struct hints_session *s);

/* Ends observation and counting, reads the rest; the model stays until hints_close. */
const struct hints *hints_stop(struct hints_session *s);
void hints_close(struct hints_session *s);

#endif
