/* SPDX-License-Identifier: MIT */
/* Draws the screen of top with ncursesw. */
#include <langinfo.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <ncursesw/curses.h>

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

void fill_line(int y, const char *text)
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
	case COL_HINTS:
	case COL_HINTS_REMOTE:
		return hints_cell(s, r, c, text);
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

/*
 * Columns that fit, the command having the rest; those that tell least go first.  The one that is
 * sorted by stays: so each can be brought in.
 */
static unsigned long fitting(const struct screen *s)
{
	static const enum column expendable[] = {
	    COL_REMOTE_OUT, COL_HINTS_REMOTE, COL_NODE_PARTIAL, COL_PARTIAL,
	    COL_ANY_NEW,    COL_OWN,	      COL_SLABS,	COL_ANY_PARTIAL,
	    COL_REMOTE_IN,  COL_NODE_NEW,     COL_OBJECTS,	COL_LARGE,
	    COL_HINTS,	    COL_FRAG,	      COL_MISPLACED,	COL_USED};
	unsigned long set = 0;
	int width = s->view == VIEW_PROCESSES ? 12 : 0;

	for (enum column c = 0; c < COL_COMMAND; c++)
		if (column_is_in(s, c)) {
			set |= 1ul << c;
			width += width_of(c);
		}
	for (size_t i = 0; i < sizeof expendable / sizeof *expendable && width > COLS; i++)
		if (set & 1ul << expendable[i] && expendable[i] != s->sort[s->view]) {
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
	if (m && s->view == VIEW_PROCESSES)
		draw_notes(s, m, y + (int)(s->rows.count < room ? s->rows.count : room) + 1);
}

void draw_all(struct screen *s, const struct model *m)
{
	int y = 2;

	erase();
	if (s->help) {
		draw_help(s);
		draw_foot(s);
		refresh();
		return;
	}
	rows_for_view(s, m);
	draw_title(s, m);
	if (s->view == VIEW_PROCESSES)
		draw_hints_line(s, 1);
	else if (s->view != VIEW_HINTS)
		y = draw_process(s, m);
	if (s->view == VIEW_MAP)
		draw_slab_map(s, m, y);
	else if (s->view == VIEW_HINTS)
		draw_hints(s, 1);
	else if (m)
		draw_table(s, m, y);
	draw_foot(s);
	s->drawn = m ? m->serial : 0;
	refresh();
}
