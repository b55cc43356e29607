/* SPDX-License-Identifier: MIT */
/* Inside the screen of top: screen_main.c has the state and the keys, screen_draw.c draws, the map
 * of slabs screen_map.c, hint faults screen_hints.c. */
#ifndef NUMASLAB_SCREEN_H
#define NUMASLAB_SCREEN_H

#include "tools/map_picture.h"
#include "tools/reader_text.h"
#include "tools/screen_model.h"
#include "tools/screen_rows.h"

enum view { VIEW_PROCESSES, VIEW_NODES, VIEW_CLASSES, VIEW_MAP, VIEW_HINTS, VIEW_COUNT };

enum column {
	COL_PID,
	COL_NODE,
	COL_SIZE,
	COL_USED,
	COL_HELD,
	COL_FRAG,
	COL_SLABS,
	COL_PARTIAL,
	COL_OWN,
	COL_NODE_PARTIAL,
	COL_NODE_NEW,
	COL_ANY_PARTIAL,
	COL_ANY_NEW,
	COL_REMOTE_IN,
	COL_REMOTE_OUT,
	COL_MISPLACED,
	COL_LARGE,
	COL_HINTS,
	COL_HINTS_REMOTE,
	COL_OBJECTS,
	COL_COMMAND,
	COL_COUNT
};

struct screen {
	enum view view;
	uint64_t id; /* of the process of the views below the first */
	int pid;     /* its number, for when it is gone */
	int node;    /* of VIEW_CLASSES and VIEW_MAP; -1: all */
	enum column sort[VIEW_COUNT];
	/* Of VIEW_MAP. */
	enum view map_from;
	uint32_t map_size; /* of the class chosen; PICTURE_ALL: none was */
	bool map_all_sizes, map_all_nodes;
	/* Of VIEW_HINTS. */
	enum view hints_from;
	size_t hints_lines; /* that there were when it was drawn */
	bool no_hints;
	bool reverse;
	bool totals; /* counts since the start instead of rates */
	bool paused, dead, help, ascii, colours;
	bool typing; /* the filter is being typed */
	char filter[32];
	size_t cursor, top; /* row under the cursor, first row shown */
	int cursor_pid;	    /* of the process there */
	int64_t cursor_id;  /* process, node or size under the cursor: it stays when rows move */
	double delay;
	const struct model *frozen; /* while paused */
	struct rows rows;	    /* of the view, sorted and filtered, as last drawn */
	bool help_scrolls;	    /* as drawn last: not all of it fits */
	size_t help_top;	    /* first line of the help that is shown */
	uint64_t drawn;		    /* serial of the model in them */
	const struct feed *feed;    /* of that model; while it is drawn */
};

enum colour { PLAIN, GOOD, WARN, BAD, DIM, HEAD, CURSOR };

void draw_init(struct screen *s);

/* Without colours what matters is bold, heads and the cursor reversed. */
void paint(const struct screen *s, enum colour c);
void put(int y, int x, int width, const char *text);

/* A line over the whole width. */
void fill_line(int y, const char *text);

/* As put(), over several lines; how many. */
int put_wrapped(int y, int x, int width, const char *text);

/*
 * What stands in a line: where it does not fit, those of the highest rank go first, and of rank 0
 * none.  An empty text is none.
 */
struct part {
	const char *text;
	int rank;
};
void join_parts(char *line, size_t size, int width, const char *between, struct part *part,
		size_t count);

/* The first line, the last one, and of the views below the first what is above: lines used. */
void draw_title(const struct screen *s, const struct model *m);
void draw_foot(const struct screen *s);
int draw_process(const struct screen *s, const struct model *m);

/* The map of slabs from line y on. */
void draw_slab_map(const struct screen *s, const struct model *m, int y);

/* What is not shown, and why; from line y on.  The lines used. */
int draw_notes(const struct screen *s, const struct model *m, int y);

/* Lines of the help, as far as they go, from s->help_top on, which is kept within them. */
void draw_help(struct screen *s);

/* Hint faults: the text about s->pid from line y on; a line of what is seen; the cells. */
void draw_hints(struct screen *s, int y);
void draw_hints_line(const struct screen *s, int y);
enum colour hints_cell(const struct screen *s, const struct row *r, enum column c,
		       char text[TEXT_NUMBER]);
double hints_value(const struct screen *s, const struct row *r, enum column c);

/* Draws everything from the model (NULL: none yet). */
void draw_all(struct screen *s, const struct model *m);

/* Whether the view shown has the column; its name. */
bool column_is_in(const struct screen *s, enum column c);
const char *column_title(enum column c);

/* The rows of the view: made, filtered, sorted; the cursor kept where it was. */
void rows_for_view(struct screen *s, const struct model *m);

#endif
