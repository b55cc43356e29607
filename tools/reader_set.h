/* SPDX-License-Identifier: MIT */
/* The processes that publish, followed from one look to the next. */
#ifndef NUMASLAB_READER_SET_H
#define NUMASLAB_READER_SET_H

#include "tools/reader.h"

struct process {
	uint64_t id; /* of its file, never 0; a pid may be that of several processes */
	char *path;
	struct reader *reader;
	const struct reader_info *info;
	struct reader_snapshot now, before; /* before.pool NULL: seen for the first time */
	int asked; /* the pid that it was found by: its own number, or ours for it */
	bool seen;
};

/* A file that cannot be shown. */
struct refusal {
	enum reader_result result;
	int pid; /* as its name says; 0: not known */
	char path[512];
	char why[READER_WHY_SIZE];
};

struct process_set {
	size_t count;
	struct process *process; /* by pid, then start */
	size_t refused_count;
	struct refusal refused[16];
	bool denied; /* a directory that could not be read */
};

/*
 * Looks again: takes up new files, drops those that went, reads all.  dead: those of processes that
 * ended too.  pids NULL: all; else these only, found through /proc too.  False: no memory.
 */
bool process_set_look(struct process_set *set, const int *pids, size_t pid_count, bool dead);
void process_set_free(struct process_set *set);

#endif
