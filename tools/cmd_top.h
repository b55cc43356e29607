/* SPDX-License-Identifier: MIT */
/* What the forms of numaslab top share. */
#ifndef NUMASLAB_CMD_TOP_H
#define NUMASLAB_CMD_TOP_H

#include <stdbool.h>
#include <stddef.h>

enum top_form { TOP_SCREEN, TOP_TEXT, TOP_JSON, TOP_CSV };

struct top_options {
	enum top_form form;
	double delay; /* seconds */
	long ticks;   /* 0: until it is stopped */
	int *pids;    /* NULL: all */
	size_t pid_count;
	int tier;      /* of hint faults, enum hints_tier; -1: the best that there is */
	bool no_hints; /* they are not looked at */
};

/* Each returns the exit status. */
int top_batch(const struct top_options *o);
int top_screen(const struct top_options *o);

#endif
