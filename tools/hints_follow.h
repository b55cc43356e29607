/* SPDX-License-Identifier: MIT */
/* The processes that a session follows: which images there were, and the slab map of each. */
#ifndef NUMASLAB_HINTS_FOLLOW_H
#define NUMASLAB_HINTS_FOLLOW_H

#include "tools/hints.h"
#include "tools/hints_table.h"
#include "tools/reader_address.h"

/* One image (program) of one process. */
struct followed {
	int pid;
	unsigned image;
	enum hints_state state;
	char comm[64];
	char *path; /* of its file; NULL: it does not publish */
	struct reader *reader;
	char refusal[128];		/* why there is no reader, if there is a file */
	struct hints_geometry geometry; /* span 0: no slab map */
	bool known;			/* the collector has been told of it */
	bool has_map;			/* and of its slab map */
};

struct follow {
	bool all;
	bool ended; /* what processes say of themselves is no longer asked */
	size_t count, room;
	struct followed *item;
	bool denied;   /* a process may not be looked into */
	bool mismatch; /* a file's format version is not understood */
	uint64_t looked_ms;
	struct table threads; /* whose names were asked */
	char (*thread_comm)[32];
	size_t thread_room;
};

/* Takes up a process; NULL: no memory. */
struct followed *follow_add(struct follow *f, int pid, unsigned image);
/* The image of that number, or NULL. */
struct followed *follow_find(const struct follow *f, int pid, unsigned image);
/* The last image of a process, or NULL. */
struct followed *follow_last(const struct follow *f, int pid);

/* Looks for files of those that have none yet and, if all are followed, for new processes; at
 * most five times a second unless `now` is 0. */
bool follow_look(struct follow *f, uint64_t now_ms);

/* Without events from the kernel: who ended, or executed another program. */
void follow_poll(struct follow *f);
void follow_exited(struct followed *item);
/* It executed another program; the entry of that one.  NULL: no memory. */
struct followed *follow_replaced(struct follow *f, struct followed *item, unsigned image);

/* The name of a thread, asked once, since it may end; "": it has. */
const char *follow_thread_comm(struct follow *f, int pid, int tid);

/* Copies what is known of the processes into the model's entries. */
bool follow_describe(const struct follow *f, struct hints *h);
bool follow_is_over(const struct follow *f);
void follow_free(struct follow *f);

#endif
