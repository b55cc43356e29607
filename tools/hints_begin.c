/* SPDX-License-Identifier: MIT */
#include "tools/hints_begin.h"

#include <stdio.h>

#include "tools/cmd.h"
#include "tools/machine.h"

enum feed_state hints_begin(struct hints_begun *b, const struct hints_options *o)
{
	if (b->state > FEED_OFF)
		return b->state;
	if (read_number("", "/proc/sys/kernel/numa_balancing") == 0) {
		snprintf(b->why, sizeof b->why,
			 "NUMA balancing is off ('sysctl kernel.numa_balancing=1')");
		return b->state = FEED_OFF;
	}
	int status = hints_start(&b->session, o, b->why, sizeof b->why);
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
