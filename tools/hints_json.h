/* SPDX-License-Identifier: MIT */
/* Members of an object that is open: for documents that have more than hint faults. */
#ifndef NUMASLAB_HINTS_JSON_H
#define NUMASLAB_HINTS_JSON_H

#include "tools/hints.h"
#include "tools/reader_json.h"

/* The tier, what it cannot know, what was dropped. */
void hints_json_session(struct json *j, const struct hints *h);
/* The heap of a process: its counts and the matrix. */
void hints_json_heap(struct json *j, const struct hints *h, const struct hints_process *p);

#endif
