/* SPDX-License-Identifier: MIT */
#include "tools/cmd_top_hints.h"

#include <stdio.h>
#include <string.h>

#include "tools/hints_json.h"

#define WAIT_MAX 2000 /* ms; processes that are new are followed from the next look on */

static void poll_model(struct top_hints *t, int ms)
{
	t->model = hints_poll(t->begun.session, ms);
	if (!t->model)
		hints_end(&t->begun, FEED_UNABLE, "out of memory");
}

void top_hints_look(struct top_hints *t, const struct top_options *o)
{
	struct hints_options options = {
	    .pids = o->pids, .pid_count = o->pid_count, .tier = o->tier};

	t->none = o->no_hints;
	if (t->none)
		hints_end(&t->begun, FEED_UNABLE, "not looked for (--tier none)");
	else if (hints_begin(&t->begun, &options) == FEED_LIVE && !t->model)
		poll_model(t, 0);
}

bool top_hints_wait(struct top_hints *t, int ms)
{
	if (!t->model)
		return false;
	poll_model(t, ms < WAIT_MAX ? ms : WAIT_MAX);
	return t->model != NULL;
}

void top_hints_end(struct top_hints *t)
{
	t->model = NULL;
	hints_close(t->begun.session);
}

const struct hints_process *top_hints_find(const struct top_hints *t, uint64_t id)
{
	if (!t->model || t->model->tier == HINTS_PROC)
		return NULL;
	for (size_t i = 0; i < t->model->process_count; i++)
		if (t->model->process[i].id == id && t->model->process[i].state == HINTS_LIVE)
			return &t->model->process[i];
	return NULL;
}

const char *top_hints_line(struct top_hints *t)
{
	char line[sizeof t->said];

	if (t->model)
		hints_tier_line(line, sizeof line, t->model);
	else
		snprintf(line, sizeof line, "hint faults are not seen: %s", t->begun.why);
	if (t->none || !strcmp(line, t->said))
		return NULL;
	return strcpy(t->said, line);
}

void top_hints_json(const struct top_hints *t, struct json *j)
{
	json_open(j, "hints", '{');
	if (t->model) {
		hints_json_session(j, t->model);
		json_null(j, "why");
	} else {
		json_null(j, "tier");
		json_text(j, "why", t->begun.why);
	}
	json_close(j, '}');
}

void top_hints_json_process(const struct top_hints *t, struct json *j, uint64_t id)
{
	const struct hints_process *p = top_hints_find(t, id);

	if (!p) {
		json_null(j, "hints");
		return;
	}
	json_open(j, "hints", '{');
	hints_json_heap(j, t->model, p);
	json_close(j, '}');
}
