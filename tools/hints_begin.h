/* SPDX-License-Identifier: MIT */
/* A session for one that can do without: begun when NUMA balancing is on, and if it is permitted.
 */
#ifndef NUMASLAB_HINTS_BEGIN_H
#define NUMASLAB_HINTS_BEGIN_H

#include "tools/hints_session.h"

enum feed_state {
	FEED_BEGINS,
	FEED_OFF,    /* balancing is off: nothing to see, nothing is attached */
	FEED_DENIED, /* not permitted */
	FEED_UNABLE, /* this machine, or this build, cannot */
	FEED_LIVE
};

/* To begin with all 0. */
struct hints_begun {
	enum feed_state state;
	struct hints_session *session; /* while FEED_LIVE */
	char why[512];		       /* else why not */
};

/* Tries, unless it is live, or was not permitted or not to be had: that is not tried again and
 * again. */
enum feed_state hints_begin(struct hints_begun *b, const struct hints_options *o);
/* The session, if there is one, ends. */
void hints_end(struct hints_begun *b, enum feed_state state, const char *why);

/* By which tier faults are seen, in a line; returns buf. */
char *hints_tier_line(char *buf, size_t size, const struct hints *h);

#endif
