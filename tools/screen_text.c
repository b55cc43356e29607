/* SPDX-License-Identifier: MIT */
/* Text on the screen of top: lines that fit, texts of several lines, notes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ncursesw/curses.h>

#include "tools/cmd.h"
#include "tools/screen.h"

void put(int y, int x, int width, const char *text)
{
	if (width > 0)
		mvaddnstr(y, x, text, width);
}

int put_wrapped(int y, int x, int width, const char *text)
{
	int lines = 0;

	while (*text && width > 0) {
		size_t n = strlen(text), cut = n < (size_t)width ? n : (size_t)width;

		if (cut < n) {
			while (cut > 0 && text[cut] != ' ')
				cut--;
			cut = cut ? cut : (size_t)width; /* a word longer than the line */
		}
		put(y + lines++, x, (int)cut, text);
		text += cut;
		while (*text == ' ')
			text++;
	}
	return lines;
}

void join_parts(char *line, size_t size, int width, const char *between, struct part *part,
		size_t count)
{
	for (;;) {
		size_t at = 0, most = 0;

		*line = 0;
		for (size_t i = 0; i < count; i++) {
			if (!*part[i].text)
				continue;
			at += (size_t)snprintf(line + at, size - at, "%s%s", at ? between : "",
					       part[i].text);
			if (at >= size)
				at = size - 1;
			most = part[i].rank > part[most].rank || !*part[most].text ? i : most;
		}
		if (at <= (size_t)(width > 0 ? width : 0) || part[most].rank == 0)
			return;
		part[most].text = "";
	}
}

int draw_notes(const struct screen *s, const struct model *m, int y)
{
	const char *dir = getenv("NUMASLAB_DIR");
	char text[320], shown[256];
	int from = y;

	if (m->set.count == 0 && m->note_count == 0) {
		paint(s, DIM);
		y += put_wrapped(
		    y, 2, COLS - 3,
		    "No process publishes yet: start one with 'numaslab run -- COMMAND'");
		if (dir && *dir) {
			snprintf(text, sizeof text, "(looked in %s alone: NUMASLAB_DIR)",
				 printable(shown, sizeof shown, dir));
			y += put_wrapped(y, 2, COLS - 3, text);
		}
		return y - from;
	}
	if (m->set.count && s->rows.count == 0) {
		paint(s, DIM);
		y += put_wrapped(y, 2, COLS - 3, "None matches the filter; Esc clears it");
	}
	paint(s, WARN);
	for (size_t i = 0; i < m->note_count && y < LINES - 1; i++)
		y += put_wrapped(y, 2, COLS - 3, m->note[i]);
	return y - from;
}
