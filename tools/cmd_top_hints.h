/* SPDX-License-Identifier: MIT */
/* Hint faults in the lines of numaslab top; counts are totals since the first look. */
#ifndef NUMASLAB_CMD_TOP_HINTS_H
#define NUMASLAB_CMD_TOP_HINTS_H

#include <stdint.h>

#include "tools/cmd_top.h"
#include "tools/hints_begin.h"
#include "tools/reader_json.h"

/* To begin with all 0. */
struct top_hints {
	struct hints_begun begun;
	const struct hints *model; /* NULL: there is none, begun.why */
	bool none;		   /* --tier none */
	char said[600];
};

/* Begins, if it has not and can; the model is of now. */
void top_hints_look(struct top_hints *t, const struct top_options *o);
/* At most so long; false: nothing is counted, and nothing was waited for. */
bool top_hints_wait(struct top_hints *t, int ms);
void top_hints_end(struct top_hints *t);

/* The process of that file (reader_id()), if its heap's faults are known; else NULL. */
const struct hints_process *top_hints_find(const struct top_hints *t, uint64_t id);

/* What is seen, or why nothing is; NULL: as the time before, or --tier none. */
const char *top_hints_line(struct top_hints *t);
/* Each a member "hints": of the document, of a process. */
void top_hints_json(const struct top_hints *t, struct json *j);
void top_hints_json_process(const struct top_hints *t, struct json *j, uint64_t id);

#endif
