/* SPDX-License-Identifier: MIT */
/* The screen of numaslab top: its state, its keys. */
#include <locale.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <ncursesw/curses.h>

#include "tools/cmd.h"
#include "tools/screen.h"
#include "tools/screen_terminal.h"

#define POLL_MS 100
#define FIRST_S 0.5 /* so long the first picture is waited for */

/* --- Keys. --- */

static void sort_by(struct screen *s, int step)
{
	enum column *c = &s->sort[s->view];

	if (s->view >= VIEW_MAP)
		return;
	do
		*c = (enum column)(((int)*c + step + COL_COUNT) % COL_COUNT);
	while (!column_is_in(s, *c));
}

/* The row under the cursor, as it was drawn last. */
static void take_process(struct screen *s)
{
	s->id = (uint64_t)s->cursor_id;
	s->pid = s->cursor_pid;
}

/* size: of the class to begin with, or PICTURE_ALL. */
static void show_map(struct screen *s, uint32_t size)
{
	if (s->rows.count == 0 || s->view >= VIEW_MAP)
		return;
	if (s->view == VIEW_PROCESSES) {
		take_process(s);
		s->node = -1;
	}
	s->map_from = s->view;
	s->map_size = size;
	s->map_all_sizes = size == PICTURE_ALL;
	s->map_all_nodes = s->node < 0;
	s->view = VIEW_MAP;
	s->top = 0;
	model_set_map(s->id);
}

/* Of the process; where there is none, what is said of all. */
static void show_hints(struct screen *s)
{
	if (s->no_hints || s->view == VIEW_HINTS)
		return;
	if (s->view == VIEW_PROCESSES) {
		take_process(s);
		if (s->rows.count == 0)
			s->id = FEED_ALL;
	}
	s->hints_from = s->view;
	s->view = VIEW_HINTS;
	s->top = 0;
	feed_want(s->id, s->pid);
}

static void go_in(struct screen *s)
{
	if (s->rows.count == 0 || s->view >= VIEW_MAP)
		return;
	if (s->view == VIEW_CLASSES) {
		show_map(s, (uint32_t)s->cursor_id);
		return;
	}
	if (s->view == VIEW_PROCESSES) {
		take_process(s);
		s->view = VIEW_NODES;
		model_set_spark(s->id);
	} else {
		s->node = (int)s->cursor_id;
		s->view = VIEW_CLASSES;
	}
	s->cursor = s->top = 0;
	s->cursor_id = -2;
}

static void go_back(struct screen *s)
{
	if (s->view == VIEW_PROCESSES) {
		*s->filter = 0;
		return;
	}
	if (s->view == VIEW_HINTS) {
		s->view = s->hints_from;
		s->cursor_id = s->view == VIEW_PROCESSES ? (int64_t)s->id : -2;
		s->top = 0;
		feed_want(FEED_NOBODY, 0);
		return;
	}
	if (s->view == VIEW_MAP) {
		s->view = s->map_from;
		s->cursor_id = s->view == VIEW_PROCESSES ? (int64_t)s->id
			       : s->view == VIEW_NODES	 ? -2
							 : (int64_t)s->map_size;
		model_set_map(0);
		return;
	}
	s->cursor_id = s->view == VIEW_CLASSES ? s->node : (int64_t)s->id;
	s->view = s->view == VIEW_CLASSES ? VIEW_NODES : VIEW_PROCESSES;
	s->node = -1;
	s->top = 0;
	if (s->view == VIEW_PROCESSES)
		model_set_spark(0);
}

static void move_cursor(struct screen *s, long by)
{
	long from = s->view >= VIEW_MAP ? (long)s->top : (long)s->cursor, to = from + by;
	long last = (long)(s->view == VIEW_HINTS ? s->hints_lines : s->rows.count) - 1;

	if (s->view >= VIEW_MAP) { /* by nodes, by lines */
		s->top = (size_t)(to < 0 ? 0 : to > last ? (last < 0 ? 0 : last) : to);
		return;
	}
	s->cursor = (size_t)(to < 0 ? 0 : to > last ? (last < 0 ? 0 : last) : to);
	s->cursor_id = -2; /* the row, not what was in it */
}

static void type_filter(struct screen *s, int key)
{
	size_t n = strlen(s->filter);

	if (key == '\n' || key == KEY_ENTER) {
		s->typing = false;
	} else if (key == 27) {
		s->typing = false;
		*s->filter = 0;
	} else if ((key == KEY_BACKSPACE || key == 127 || key == 8) && n) {
		s->filter[n - 1] = 0;
	} else if (key >= ' ' && key < 127 && n + 1 < sizeof s->filter) {
		s->filter[n] = (char)key;
		s->filter[n + 1] = 0;
	}
}

static void change_delay(struct screen *s, double factor)
{
	double delay = s->delay * factor;

	s->delay = delay < 0.1 ? 0.1 : delay > 3600 ? 3600 : delay;
	model_set_delay(s->delay);
}

/* While paused we stay in the read-side section: the model stays, the collector waits for us. */
static void pause_or_go_on(struct screen *s)
{
	s->paused = !s->paused;
	if (s->paused)
		s->frozen = model_lock();
	else
		model_unlock();
}

/* It scrolls where it does not fit; any other key ends it.  False: the end. */
static bool take_help_key(struct screen *s, int key)
{
	size_t page = LINES > 3 ? (size_t)LINES - 3 : 1;

	if (key == KEY_DOWN || key == 'j')
		s->help_top++;
	else if (key == KEY_NPAGE)
		s->help_top += page;
	else if (key == KEY_UP || key == 'k')
		s->help_top -= s->help_top > 0;
	else if (key == KEY_PPAGE)
		s->help_top -= s->help_top < page ? s->help_top : page;
	else if (key != KEY_RESIZE)
		s->help = false;
	return key != 'q' && key != KEY_F(10);
}

/* False: the end. */
static bool take_key(struct screen *s, int key)
{
	if (s->typing) {
		type_filter(s, key);
		return true;
	}
	if (s->help)
		return take_help_key(s, key);
	switch (key) {
	case 'q':
	case KEY_F(10):
		return false;
	case 'h':
	case '?':
	case KEY_F(1):
		s->help = true;
		s->help_top = 0;
		break;
	case KEY_UP:
	case 'k':
		move_cursor(s, -1);
		break;
	case KEY_DOWN:
	case 'j':
		move_cursor(s, 1);
		break;
	case KEY_PPAGE:
		move_cursor(s, -(LINES - 5));
		break;
	case KEY_NPAGE:
		move_cursor(s, LINES - 5);
		break;
	case KEY_HOME:
		move_cursor(s, -1000000);
		break;
	case KEY_END:
		move_cursor(s, 1000000);
		break;
	case '\n':
	case KEY_ENTER:
	case KEY_RIGHT:
		go_in(s);
		break;
	case 27:
	case KEY_LEFT:
	case KEY_BACKSPACE:
	case 127:
		go_back(s);
		break;
	case KEY_F(6):
	case '>':
		sort_by(s, 1);
		break;
	case '<':
		sort_by(s, -1);
		break;
	case 'I':
		s->reverse = !s->reverse;
		break;
	case KEY_F(4):
	case '\\':
		s->typing = s->view == VIEW_PROCESSES;
		break;
	case 'i':
		show_hints(s);
		break;
	case 'm':
		show_map(s, PICTURE_ALL);
		break;
	case 'c':
		s->map_all_sizes = !s->map_all_sizes || s->map_size == PICTURE_ALL;
		break;
	case 'n':
		s->map_all_nodes = !s->map_all_nodes || s->node < 0;
		break;
	case 't':
		s->totals = !s->totals;
		break;
	case 'x':
		s->dead = !s->dead;
		model_set_dead(s->dead);
		break;
	case 'Z':
	case ' ':
		pause_or_go_on(s);
		break;
	case '+':
		change_delay(s, 0.5);
		break;
	case '-':
		change_delay(s, 2);
		break;
	default:
		break;
	}
	return true;
}

static void run(struct screen *s, long ticks)
{
	uint64_t last = 0;
	bool again = true; /* something changed but the model */

	while (!terminal_ended) {
		const struct model *m = model_lock();

		if (s->paused)
			m = s->frozen; /* a newer one may have been put in its place */
		if (again || (m && m->serial != s->drawn))
			draw_all(s, m);
		last = m ? m->serial : 0;
		model_unlock();
		if (ticks && last >= (uint64_t)ticks)
			return;
		int key = getch();
		again = key != ERR;
		if (key == ERR && !isatty(0)) /* it was taken away: no key will ever come */
			return;
		if (key != ERR && !take_key(s, key))
			return;
	}
}

static int lines_instead(const struct top_options *o)
{
	const char *name = getenv("TERM");
	struct top_options text = *o;
	char shown[64];

	cmd_fail(0, "top",
		 "this terminal is not known, or cannot be drawn on (TERM is '%s'): lines instead",
		 printable(shown, sizeof shown, name ? name : ""));
	signal(SIGPIPE, SIG_DFL);
	text.form = TOP_TEXT;
	return top_batch(&text);
}

int top_screen(const struct top_options *o)
{
	struct screen s = {.node = -1,
			   .cursor_id = -2,
			   .delay = o->delay,
			   .no_hints = o->no_hints,
			   .sort = {COL_HELD, COL_NODE, COL_HELD, COL_NODE, COL_NODE}};

	setlocale(LC_ALL, "");
	setlocale(LC_NUMERIC, "C");
	if (!terminal_can_draw())
		return lines_instead(o);
	terminal_catch_signals();
	if (!newterm(NULL, stdout, stdin))
		return cmd_fail(STATUS_UNABLE, "top", "no memory for the screen; -b writes lines");
	cbreak();
	noecho();
	keypad(stdscr, TRUE);
	set_escdelay(25);
	timeout(POLL_MS);
	curs_set(0);
	draw_init(&s);
	bool started = model_start(o);
	if (started) {
		model_wait(FIRST_S);
		run(&s, o->ticks);
		if (s.paused)
			model_unlock();
		model_stop();
	}
	endwin();
	rows_free(&s.rows);
	if (!started)
		return cmd_fail(STATUS_UNABLE, "top", "no thread for the collector");
	return terminal_ended && terminal_ended != SIGINT ? 128 + terminal_ended : STATUS_DONE;
}
