/* SPDX-License-Identifier: MIT */
/* Hint faults on the screen of top: the columns, the line above them, the view of one process. */
#include <stdlib.h>
#include <string.h>

#include <ncursesw/curses.h>

#include "tools/screen.h"

double hints_value(const struct screen *s, const struct row *r, enum column c)
{
	const struct feed_row *h = r->hints;

	if (!h)
		return 0;
	if (s->totals)
		return (double)(c == COL_HINTS ? h->faults : h->remote);
	return c == COL_HINTS ? h->fault_rate : h->remote_rate;
}

/* A number, or in a word why there is none. */
enum colour hints_cell(const struct screen *s, const struct row *r, enum column c,
		       char text[TEXT_NUMBER])
{
	static const char *const words[] = {[FEED_BEGINS] = "-",
					    [FEED_OFF] = "off",
					    [FEED_DENIED] = "denied",
					    [FEED_UNABLE] = "unable"};
	const struct feed *f = s->feed;
	const char *word = NULL;

	if (!f || !r->process->now.live)
		word = "-";
	else if (f->state != FEED_LIVE)
		word = words[f->state];
	else if (!r->hints)
		word = "-";
	else if (r->hints->masked)
		word = "masked";
	else if (!f->by_process)
		word = "?";
	if (word) {
		snprintf(text, TEXT_NUMBER, "%s", c == COL_HINTS ? word : "-");
		return DIM;
	}
	text_count(text, hints_value(s, r, c));
	return c == COL_HINTS_REMOTE && hints_value(s, r, c) > 0 ? WARN : PLAIN;
}

void draw_hints_line(const struct screen *s, int y)
{
	if (s->no_hints || !s->feed)
		return;
	paint(s, DIM);
	put(y, 0, COLS, s->feed->line);
}

/* Heads of tables are in capitals. */
static bool is_head(const char *line)
{
	return strstr(line, "FAULTS") || strstr(line, "home\\node");
}

void draw_hints(struct screen *s, int y)
{
	const struct feed *f = s->feed;
	const char *at = f && f->text && f->text_id == s->id ? f->text : NULL;
	size_t room = LINES - 1 > y ? (size_t)(LINES - 1 - y) : 0, line = 0;

	if (!at) { /* it comes with the next look; what is paused gets none */
		paint(s, DIM);
		put(y + 1, 2, COLS - 2, s->paused ? "paused" : "looking");
		return;
	}
	for (; *at; line++) {
		size_t length = strcspn(at, "\n");
		char text[512];

		snprintf(text, sizeof text, "%.*s", (int)(length < 511 ? length : 511), at);
		at += length + (at[length] == '\n');
		if (line < s->top || line >= s->top + room)
			continue;
		paint(s, is_head(text) ? HEAD : PLAIN);
		if (is_head(text))
			mvhline(y + (int)(line - s->top), 0, ' ', COLS);
		put(y + (int)(line - s->top), 0, COLS, text);
	}
	s->hints_lines = line > room ? line - room + 1 : 1; /* until the last one shows */
}
