/* SPDX-License-Identifier: MIT */
/* Draws the screen of top with ncursesw. */
#include <langinfo.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <ncursesw/curses.h>

#include "tools/reader_text.h"
#include "tools/screen.h"

#define BAR_WIDTH 24

void draw_init(struct screen *s)
{
	const char *no = getenv("NO_COLOR");

	s->ascii = s->ascii || strcmp(nl_langinfo(CODESET), "UTF-8");
	s->colours = !(no && *no) && has_colors();
	if (!s->colours)
		return;
	start_color();
	use_default_colors();
	init_pair(GOOD, COLOR_GREEN, -1);
	init_pair(WARN, COLOR_YELLOW, -1);
	init_pair(BAD, COLOR_RED, -1);
	init_pair(DIM, COLOR_CYAN, -1);
	init_pair(HEAD, COLOR_BLACK, COLOR_GREEN);
	init_pair(CURSOR, COLOR_BLACK, COLOR_CYAN);
}

void paint(const struct screen *s, enum colour c)
{
	attrset(A_NORMAL);
	if (s->colours)
		attrset(COLOR_PAIR(c));
	else if (c == HEAD || c == CURSOR)
		attrset(A_REVERSE);
	else if (c == WARN || c == BAD)
		attrset(A_BOLD);
}

void put(int y, int x, int width, const char *text)
{
	if (width > 0)
		mvaddnstr(y, x, text, width);
}

static void fill_line(int y, const char *text)
{
	move(y, 0);
	for (int i = 0; i < COLS; i++)
		addch(' ');
	put(y, 0, COLS, text);
}

/* --- Cells. --- */

static int width_of(enum column c)
{
	return c == COL_PID || c == COL_OBJECTS ? 8 : c == COL_NODE ? 5 : 7;
}

static enum colour cell(const struct screen *s, const struct row *r, enum column c,
			char text[TEXT_NUMBER])
{
	const uint64_t *n = r->counts.counter;

	switch (c) {
	case COL_PID:
		snprintf(text, TEXT_NUMBER, "%d", r->process->info->pid);
		return r->process->now.live ? PLAIN : DIM;
	case COL_NODE:
		snprintf(text, TEXT_NUMBER, "%d", r->node);
		return PLAIN;
	case COL_SIZE:
		snprintf(text, TEXT_NUMBER, r->size ? "%u" : "kept", r->size);
		return PLAIN;
	case COL_USED:
		text_bytes(text, r->counts.used_bytes);
		return PLAIN;
	case COL_HELD:
		text_bytes(text, n[COUNT_held]);
		return PLAIN;
	case COL_FRAG:
		snprintf(text, TEXT_NUMBER, "%.1f", 100 * reader_fragmentation(&r->counts));
		return n[COUNT_held] >= 1 << 20 && reader_fragmentation(&r->counts) > 0.5 ? WARN
											  : PLAIN;
	case COL_SLABS:
		text_count(text, (double)counts_slabs(&r->counts));
		return PLAIN;
	case COL_PARTIAL:
		text_count(text, (double)n[COUNT_partial]);
		return PLAIN;
	case COL_MISPLACED:
		text_count(text, (double)n[COUNT_misplaced]);
		return n[COUNT_misplaced] ? BAD : PLAIN;
	case COL_LARGE:
		text_bytes(text, r->large_bytes);
		return PLAIN;
	case COL_OBJECTS:
		text_count(text, (double)n[COUNT_used]);
		return PLAIN;
	case COL_OWN ... COL_REMOTE_OUT: {
		double value =
		    s->totals ? (double)n[rate_counter[c - COL_OWN]] : r->rate[c - COL_OWN];

		text_count(text, value);
		/* Steps 4 and 5: the node had nothing. */
		return value > 0 && (c == COL_ANY_PARTIAL || c == COL_ANY_NEW) ? WARN : PLAIN;
	}
	default:
		*text = 0;
		return PLAIN;
	}
}

/* Columns that fit, the command having the rest; those that tell least go first. */
static unsigned long fitting(const struct screen *s)
{
	static const enum column expendable[] = {COL_REMOTE_OUT, COL_LARGE,	 COL_NODE_PARTIAL,
						 COL_PARTIAL,	 COL_ANY_NEW,	 COL_OWN,
						 COL_SLABS,	 COL_ANY_PARTIAL};
	unsigned long set = 0;
	int width = s->view == VIEW_PROCESSES ? 12 : 0;

	for (enum column c = 0; c < COL_COMMAND; c++)
		if (column_is_in(c, s->view)) {
			set |= 1ul << c;
			width += width_of(c);
		}
	for (size_t i = 0; i < sizeof expendable / sizeof *expendable && width > COLS; i++)
		if (set & 1ul << expendable[i]) {
			set &= ~(1ul << expendable[i]);
			width -= width_of(expendable[i]);
		}
	return set;
}

static void draw_heads(const struct screen *s, int y, unsigned long set)
{
	int x = 0;

	paint(s, HEAD);
	fill_line(y, "");
	for (enum column c = 0; c < COL_COMMAND; c++) {
		char text[24];

		if (!(set & 1ul << c))
			continue;
		snprintf(text, sizeof text, "%s%s", s->sort[s->view] == c ? "*" : "",
			 column_title(c));
		mvprintw(y, x, "%*s", width_of(c), text);
		x += width_of(c);
	}
	if (s->view == VIEW_PROCESSES)
		put(y, x + 1, COLS - x - 1, s->sort[0] == COL_COMMAND ? "*COMMAND" : "COMMAND");
	else if (COLS - x > BAR_WIDTH)
		put(y, x + 2, COLS - x - 2, "a active  p partial  f full  e empty");
}

/* The slabs of a row by state, each state at least a cell where there is one. */
static void draw_map(const struct screen *s, int y, int x, int width, const struct row *r)
{
	static const enum counter states[] = {COUNT_active, COUNT_partial, COUNT_full, COUNT_empty};
	static const enum colour colour[] = {GOOD, WARN, PLAIN, DIM};
	uint64_t all = counts_slabs(&r->counts), left = (uint64_t)width;

	for (unsigned i = 0; i < 4 && all; i++) {
		uint64_t n = r->counts.counter[states[i]];
		uint64_t cells = n ? n * (uint64_t)width / all : 0;

		if (n && cells == 0)
			cells = 1;
		if (cells > left)
			cells = left;
		left -= cells;
		paint(s, colour[i]);
		for (; cells; cells--)
			mvaddch(y, x++, (chtype)("apfe"[i]));
	}
}

static void draw_row(const struct screen *s, int y, const struct row *r, unsigned long set,
		     bool cursor)
{
	int x = 0;
	char text[TEXT_NUMBER];

	if (cursor) {
		paint(s, CURSOR);
		fill_line(y, "");
	}
	for (enum column c = 0; c < COL_COMMAND; c++) {
		if (!(set & 1ul << c))
			continue;
		enum colour colour = cell(s, r, c, text);

		paint(s, cursor ? CURSOR : colour);
		mvprintw(y, x, "%*s", width_of(c), text);
		x += width_of(c);
	}
	if (s->view == VIEW_PROCESSES) {
		char command[96];

		snprintf(command, sizeof command, "%s%s", r->process->info->comm,
			 r->process->now.live ? "" : " (exited)");
		paint(s, cursor ? CURSOR : r->process->now.live ? PLAIN : DIM);
		put(y, x + 1, COLS - x - 1, command);
	} else if (COLS - x > BAR_WIDTH) {
		draw_map(s, y, x + 2, COLS - x - 3 < 60 ? COLS - x - 3 : 60, r);
	}
}

/* Below the nodes, where there was no room beside them. */
static void draw_maps(const struct screen *s, int y, unsigned long set)
{
	int x = 0;

	for (enum column c = 0; c < COL_COMMAND; c++)
		x += set & 1ul << c ? width_of(c) : 0;
	if (COLS - x > BAR_WIDTH || y >= LINES - 1)
		return;
	paint(s, DIM);
	put(y++, 0, COLS, "Slabs by state: a active  p partial  f full  e empty");
	for (size_t i = 0; i < s->rows.count && y < LINES - 1; i++, y++) {
		paint(s, PLAIN);
		mvprintw(y, 0, "%5d", s->rows.row[i].node);
		draw_map(s, y, 7, COLS - 9, &s->rows.row[i]);
	}
}

/* --- The lines above. --- */

static void draw_spark(const struct screen *s, int y, const char *name, const uint64_t *value,
		       const struct spark *spark)
{
	static const char *const blocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
	static const char ascii[] = ".:-=+*#@";
	int room = COLS - 24;
	size_t shown = spark->count < (size_t)(room > 0 ? room : 0) ? spark->count
								    : (size_t)(room > 0 ? room : 0);
	size_t first = spark->count - shown;
	uint64_t most = 1;
	char b[TEXT_NUMBER];

	for (size_t i = first; i < spark->count; i++)
		if (value[i] > most)
			most = value[i];
	paint(s, PLAIN);
	mvprintw(y, 0, "%9s max %-7s ", name,
		 value == spark->made ? text_count(b, (double)most) : text_bytes(b, most));
	paint(s, GOOD);
	move(y, 22);
	for (size_t i = first; i < spark->count; i++) {
		unsigned level = (unsigned)((double)value[i] / (double)most * 7.99);

		if (s->ascii)
			addch((chtype)ascii[level]);
		else
			addstr(blocks[level]);
	}
}

static void draw_title(const struct screen *s, const struct model *m)
{
	char line[256], clock[16];
	time_t now = time(NULL);
	struct tm tm;
	uint64_t used = 0, held = 0;
	char b[2][TEXT_NUMBER];

	strftime(clock, sizeof clock, "%H:%M:%S", localtime_r(&now, &tm));
	for (size_t i = 0; i < s->rows.count; i++) {
		used += s->rows.row[i].counts.used_bytes;
		held += s->rows.row[i].counts.counter[COUNT_held];
	}
	snprintf(line, sizeof line, "numaslab top %s  %zu process%s  used %s of %s held  %s%s%s%s",
		 clock, m ? m->set.count : 0, m && m->set.count == 1 ? "" : "es",
		 text_bytes(b[0], used), text_bytes(b[1], held),
		 s->totals ? "totals" : "per second", s->paused ? "  PAUSED" : "",
		 s->dead ? "  with exited" : "", s->reverse ? "  reversed" : "");
	paint(s, s->paused ? WARN : PLAIN);
	put(0, 0, COLS, line);
}

static const struct process *shown_process(const struct screen *s)
{
	return s->rows.count ? s->rows.row[0].process : NULL;
}

/* The process of the views below the first; lines used. */
static int draw_process(const struct screen *s, const struct model *m)
{
	const struct process *p = shown_process(s);
	char line[256], node[32] = "all nodes", span[TEXT_NUMBER];
	bool map = s->view == VIEW_MAP;
	int y = 1;

	if (s->node >= 0 && !(map && s->map_all_nodes))
		snprintf(node, sizeof node, "node %d", s->node);
	if (!p)
		snprintf(line, sizeof line, "process %d is gone", s->pid);
	else
		snprintf(line, sizeof line, "%d %s  %s  placement %s%s%s%s", p->info->pid,
			 p->info->comm, p->now.live ? "live" : "exited", p->info->placement,
			 p->info->simulated ? ", simulated nodes" : "",
			 map			   ? "  slabs of "
			 : s->view == VIEW_CLASSES ? "  size classes of "
						   : "",
			 s->view >= VIEW_CLASSES ? node : "");
	paint(s, p && !p->now.live ? DIM : PLAIN);
	put(y++, 0, COLS, line);
	if (map || !p || m->spark.pid != s->pid || m->spark.count < 2 || LINES < 16)
		return y;
	draw_spark(s, y++, "used", m->spark.used, &m->spark);
	draw_spark(s, y++, "held", m->spark.held, &m->spark);
	draw_spark(s, y++, "new slabs", m->spark.made, &m->spark);
	snprintf(line, sizeof line, "          history of the last %s",
		 text_age(span, m->spark.span_ms));
	paint(s, DIM);
	put(y++, 0, COLS, line);
	return y;
}

static void draw_foot(const struct screen *s)
{
	char line[128];

	paint(s, HEAD);
	if (s->view == VIEW_MAP)
		snprintf(line, sizeof line, "F1 Help  %s%sEsc Back  Z Pause  F10 Quit",
			 s->map_size == PICTURE_ALL ? ""
			 : s->map_all_sizes	    ? "c One class  "
						    : "c All classes  ",
			 s->node < 0	    ? ""
			 : s->map_all_nodes ? "n One node  "
					    : "n All nodes  ");
	else if (s->typing || *s->filter)
		snprintf(line, sizeof line, "Filter: %s%s   (Enter keeps it, Esc clears it)",
			 s->filter, s->typing ? "_" : "");
	else
		snprintf(
		    line, sizeof line,
		    "F1 Help F4 Filter F6 Sort Enter In Esc Back m Map t Totals Z Pause F10 Quit");
	fill_line(LINES - 1, line);
}

static void draw_table(struct screen *s, const struct model *m, int y)
{
	unsigned long set = fitting(s);

	draw_heads(s, y++, set);
	size_t room = LINES - 1 > y ? (size_t)(LINES - 1 - y) : 0;
	if (s->cursor < s->top)
		s->top = s->cursor;
	if (room && s->cursor >= s->top + room)
		s->top = s->cursor - room + 1;
	for (size_t i = 0; i < room && s->top + i < s->rows.count; i++)
		draw_row(s, y + (int)i, &s->rows.row[s->top + i], set, s->top + i == s->cursor);
	if (s->view == VIEW_NODES)
		draw_maps(s, y + (int)s->rows.count + 1, set);
	if (m && m->set.count == 0 && s->view == VIEW_PROCESSES) {
		paint(s, DIM);
		put(y + 1, 2, COLS - 2,
		    "No process publishes yet: start one with  numaslab run -- COMMAND");
	}
}

void draw_all(struct screen *s, const struct model *m)
{
	int y = 2;

	erase();
	if (s->help) {
		paint(s, PLAIN);
		for (int i = 0; i < LINES - 1 && help_lines[i]; i++)
			put(i, 0, COLS, help_lines[i]);
		draw_foot(s);
		refresh();
		return;
	}
	rows_for_view(s, m);
	draw_title(s, m);
	if (s->view != VIEW_PROCESSES)
		y = draw_process(s, m);
	if (s->view == VIEW_MAP)
		draw_slab_map(s, m, y);
	else
		draw_table(s, m, y);
	draw_foot(s);
	s->drawn = m ? m->serial : 0;
	refresh();
}
