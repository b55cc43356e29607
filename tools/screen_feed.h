/* SPDX-License-Identifier: MIT */
/*
 * Hint faults for the screen of top: a session as `numaslab hints` has one, on a thread of its own,
 * begun when NUMA balancing is on and if it is permitted.  Each look makes a view, which never
 * changes afterwards; whoever has got one gives it back.
 */
#ifndef NUMASLAB_SCREEN_FEED_H
#define NUMASLAB_SCREEN_FEED_H

#include "tools/cmd_top.h"
#include "tools/hints_begin.h"

#define FEED_NOBODY UINT64_MAX
#define FEED_ALL    0 /* of no process: what is said of the session */

/* The heap of a process that publishes. */
struct feed_row {
	uint64_t id; /* as struct process has it; a pid may be that of several */
	bool masked; /* its policy hides the heap from balancing */
	uint64_t faults, remote;
	double fault_rate, remote_rate; /* per second, since the view before */
};

struct feed {
	enum feed_state state;
	bool by_process; /* else the tier does not know whose faults they are */
	char line[512];	 /* what is seen, or why nothing is */
	size_t count;
	struct feed_row *row;
	uint64_t text_id; /* whose text; FEED_NOBODY: there is none */
	char *text;	  /* lines, as numaslab hints prints them */
	/* private */
	int text_pid, users;
	uint64_t time_ms;
};

/* o->tier: of the session.  fresh() is called, by the feed's thread, when something is there that
 * was waited for.  False: no thread. */
bool feed_start(const struct top_options *o, void (*fresh)(void));
/* Ends the session: nothing stays attached. */
void feed_stop(void);

/* The newest view, NULL before the first; to be given back. */
struct feed *feed_get(void);
void feed_put(struct feed *f);

/* Of which process the text shall be (pid: what it is called there); and how long a look takes. */
void feed_want(uint64_t id, int pid);
void feed_set_delay(double seconds);

const struct feed_row *feed_find(const struct feed *f, uint64_t id);

#endif
