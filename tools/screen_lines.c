/* SPDX-License-Identifier: MIT */
/* The lines above and below the table: what is shown, the history, the keys. */
#include <stdio.h>
#include <time.h>

#include <ncursesw/curses.h>

#include "tools/reader_text.h"
#include "tools/screen.h"

/* All of the history in so many columns: of counts the sums, of bytes the last ones. */
static uint64_t column_of(const struct spark *spark, const uint64_t *value, size_t column,
			  size_t columns)
{
	size_t from = column * spark->count / columns, to = (column + 1) * spark->count / columns;
	uint64_t sum = 0;

	if (value != spark->made)
		return value[to - 1];
	while (from < to)
		sum += value[from++];
	return sum;
}

static void draw_spark(const struct screen *s, int y, const char *name, const uint64_t *value,
		       const struct spark *spark)
{
	static const char *const blocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
	static const char ascii[] = ".:-=+*#@";
	size_t room = COLS > 24 ? (size_t)COLS - 24 : 0;
	size_t columns = spark->count < room ? spark->count : room;
	uint64_t most = 1;
	char b[TEXT_NUMBER];

	for (size_t i = 0; i < columns; i++)
		if (column_of(spark, value, i, columns) > most)
			most = column_of(spark, value, i, columns);
	paint(s, PLAIN);
	mvprintw(y, 0, "%9s max %-7s ", name,
		 value == spark->made ? text_count(b, (double)most) : text_bytes(b, most));
	paint(s, GOOD);
	move(y, 22);
	for (size_t i = 0; i < columns; i++) {
		double part = (double)column_of(spark, value, i, columns) / (double)most;
		unsigned level = (unsigned)(part * 7.99);

		if (s->ascii)
			addch((chtype)ascii[level]);
		else
			addstr(blocks[level]);
	}
}

static const char *count_of(const struct screen *s, const struct model *m, char *text, size_t size)
{
	size_t all = m->set.count;

	if (*s->filter)
		snprintf(text, size, "%zu of %zu process%s", s->rows.count, all,
			 all == 1 ? "" : "es");
	else
		snprintf(text, size, "%zu process%s", all, all == 1 ? "" : "es");
	return text;
}

void draw_title(const struct screen *s, const struct model *m)
{
	char line[256], head[40], clock[16], count[48] = "", sums[64];
	time_t now = time(NULL);
	struct tm tm;
	uint64_t used = 0, held = 0;
	char b[2][TEXT_NUMBER];

	strftime(clock, sizeof clock, "%H:%M:%S", localtime_r(&now, &tm));
	snprintf(head, sizeof head, "%s%s", COLS < 60 ? "" : "numaslab top ", clock);
	for (size_t i = 0; i < s->rows.count; i++) {
		used += s->rows.row[i].counts.used_bytes;
		held += s->rows.row[i].counts.counter[COUNT_held];
	}
	snprintf(sums, sizeof sums, "used %s of %s held", text_bytes(b[0], used),
		 text_bytes(b[1], held));
	if (m && s->view == VIEW_PROCESSES)
		count_of(s, m, count, sizeof count);
	struct part part[] = {
	    {head, 3},
	    {m ? count : "looking for processes", 1},
	    {m ? sums : "", 0},
	    {s->totals ? "totals" : "per second", 2},
	    {s->paused ? "PAUSED" : "", 0},
	    {s->dead ? "with exited" : "", 5},
	    {s->reverse ? "reversed" : "", 6},
	};
	join_parts(line, sizeof line, COLS, "  ", part, sizeof part / sizeof *part);
	paint(s, s->paused ? WARN : PLAIN);
	put(0, 0, COLS, line);
}

static const struct process *shown_process(const struct screen *s)
{
	return s->rows.count ? s->rows.row[0].process : NULL;
}

/* Which process, and what of it. */
static void name_process(const struct screen *s, const struct process *p, char *line, size_t size)
{
	char name[96], what[64] = "", placement[64], large[64] = "";
	bool map = s->view == VIEW_MAP;

	snprintf(name, sizeof name, "%d %s", p->info->pid, p->info->comm);
	const char *of = map ? "slabs" : "size classes";
	if (s->view >= VIEW_CLASSES && s->node >= 0 && !(map && s->map_all_nodes))
		snprintf(what, sizeof what, "%s of node %d", of, s->node);
	else if (s->view >= VIEW_CLASSES)
		snprintf(what, sizeof what, "%s of all nodes", of);
	snprintf(placement, sizeof placement, "placement %s%s", p->info->placement,
		 p->info->simulated ? ", simulated nodes" : "");
	for (unsigned i = 0; i < p->now.pools && s->view == VIEW_NODES; i++) {
		struct reader_large l = reader_large(&p->now.pool[i].sum);
		char b[2][TEXT_NUMBER];

		if (p->now.pool[i].node < 0 && l.count)
			snprintf(large, sizeof large, "large blocks: %s in %s",
				 text_count(b[0], (double)l.count), text_bytes(b[1], l.bytes));
	}
	struct part part[] = {
	    {name, 0}, {p->now.live ? "live" : "exited", 1}, {placement, 3}, {large, 2}, {what, 0},
	};
	join_parts(line, size, COLS, "  ", part, sizeof part / sizeof *part);
}

/* The process of the views below the first; lines used. */
int draw_process(const struct screen *s, const struct model *m)
{
	const struct process *p = shown_process(s);
	char line[256], span[TEXT_NUMBER];
	int y = 1;

	if (!p)
		snprintf(line, sizeof line, "process %d is gone%s", s->pid,
			 s->dead ? "" : "; x shows it, if it left its file");
	else
		name_process(s, p, line, sizeof line);
	paint(s, p && !p->now.live ? DIM : PLAIN);
	put(y++, 0, COLS, line);
	if (s->view == VIEW_MAP || !p || m->spark.id != s->id || m->spark.count < 2 || LINES < 16)
		return y;
	draw_spark(s, y++, "used", m->spark.used, &m->spark);
	draw_spark(s, y++, "held", m->spark.held, &m->spark);
	draw_spark(s, y++, "new slabs", m->spark.made, &m->spark);
	snprintf(line, sizeof line, "          history of %s last %s", p->now.live ? "the" : "its",
		 text_age(span, m->spark.span_ms));
	paint(s, DIM);
	put(y++, 0, COLS, line);
	return y;
}

void draw_foot(const struct screen *s)
{
	bool map = s->view == VIEW_MAP, hints = s->view == VIEW_HINTS;
	bool table = !map && !hints && !s->help;
	char line[128];
	struct part part[] = {
	    {"F1 Help", 1},
	    {(s->help && s->help_scrolls) || hints ? "Up Down Scroll" : "", 2},
	    {s->view == VIEW_PROCESSES && !s->help ? "F4 Filter" : "", 5},
	    {!table ? "" : "F6 Sort", 4},
	    {!table		       ? ""
	     : s->view == VIEW_CLASSES ? "Enter Map"
				       : "Enter In",
	     2},
	    {!map || s->map_size == PICTURE_ALL ? ""
	     : s->map_all_sizes			? "c One class"
						: "c All classes",
	     4},
	    {!map || s->node < 0 ? ""
	     : s->map_all_nodes	 ? "n One node"
				 : "n All nodes",
	     3},
	    {"Esc Back", 1},
	    {!table ? "" : "m Map", 3},
	    {!table || s->no_hints ? "" : "i Hints", 3},
	    {!table ? "" : "t Totals", 7},
	    {s->help ? "" : "Z Pause", 6},
	    {COLS < 12 ? "q" : "F10 Quit", 0},
	};

	paint(s, HEAD);
	if (s->typing || (*s->filter && s->view == VIEW_PROCESSES && !s->help))
		snprintf(line, sizeof line, "Filter: %s%s   (Enter keeps it, Esc clears it)",
			 s->filter, s->typing ? "_" : "");
	else
		join_parts(line, sizeof line, COLS, " ", part, sizeof part / sizeof *part);
	fill_line(LINES - 1, line);
}
