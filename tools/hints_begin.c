/* SPDX-License-Identifier: MIT */
#include "tools/hints_begin.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "tools/cmd.h"
#include "tools/machine.h"

/*
 * Of processes that were named, those that are still there.  None of them, or no memory: as they
 * were named, so that the refusal says it.
 */
static int start_living(struct hints_begun *b, const struct hints_options *o)
{
	int *pids = malloc((o->pid_count + 1) * sizeof *pids);
	struct hints_options living = *o;

	living.pid_count = 0;
	for (size_t i = 0; pids && i < o->pid_count; i++)
		if (kill(o->pids[i], 0) == 0 || errno != ESRCH)
			pids[living.pid_count++] = o->pids[i];
	living.pids = pids;
	int status =
	    hints_start(&b->session, living.pid_count ? &living : o, b->why, sizeof b->why);
	free(pids); /* it has its own */
	return status;
}

enum feed_state hints_begin(struct hints_begun *b, const struct hints_options *o)
{
	if (b->state > FEED_OFF)
		return b->state;
	if (read_number("", "/proc/sys/kernel/numa_balancing") == 0) {
		snprintf(b->why, sizeof b->why,
			 "NUMA balancing is off ('sysctl kernel.numa_balancing=1')");
		return b->state = FEED_OFF;
	}
	int status = start_living(b, o);
	b->state = !status		      ? FEED_LIVE
		   : status == STATUS_NOTHING ? FEED_BEGINS
		   : status == STATUS_DENIED  ? FEED_DENIED
					      : FEED_UNABLE;
	return b->state;
}

void hints_end(struct hints_begun *b, enum feed_state state, const char *why)
{
	hints_close(b->session);
	b->session = NULL;
	b->state = state;
	snprintf(b->why, sizeof b->why, "%s", why);
}

char *hints_tier_line(char *buf, size_t size, const struct hints *h)
{
	const char *how = h->tier == HINTS_PROC ? ": not whose" : h->exact ? "" : ", an estimate";

	snprintf(buf, size, "hint faults by tier %s%s%s", h->tier_name, how,
		 h->balancing == 0 ? "; balancing is off" : "");
	return buf;
}
