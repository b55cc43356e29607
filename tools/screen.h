/* SPDX-License-Identifier: MIT */
/* Inside the screen of top: screen_main.c has the state and the keys, screen_draw.c draws, the map
 * of slabs screen_map.c. */
#ifndef NUMASLAB_SCREEN_H
#define NUMASLAB_SCREEN_H

#include "tools/map_picture.h"
#include "tools/screen_model.h"
#include "tools/screen_rows.h"

enum view { VIEW_PROCESSES, VIEW_NODES, VIEW_CLASSES, VIEW_MAP, VIEW_COUNT };

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
	COL_OBJECTS,
	COL_COMMAND,
	COL_COUNT
};

struct screen {
	enum view view;
	int pid;  /* of the views below the first */
	int node; /* of VIEW_CLASSES and VIEW_MAP; -1: all */
	enum column sort[VIEW_COUNT];
	/* Of VIEW_MAP. */
	enum view map_from;
	uint32_t map_size; /* of the class chosen; PICTURE_ALL: none was */
	bool map_all_sizes, map_all_nodes;
	bool reverse;
	bool totals; /* counts since the start instead of rates */
	bool paused, dead, help, ascii, colours;
	bool typing; /* the filter is being typed */
	char filter[32];
	size_t cursor, top; /* row under the cursor, first row shown */
	int cursor_id;	    /* pid, node or size under the cursor: it stays when rows move */
	double delay;
	const struct model *frozen; /* while paused */
	struct rows rows;	    /* of the view, sorted and filtered, as last drawn */
	uint64_t drawn;		    /* serial of the model in them */
};

enum colour { PLAIN, GOOD, WARN, BAD, DIM, HEAD, CURSOR };

void draw_init(struct screen *s);

/* Without colours what matters is bold, heads and the cursor reversed. */
void paint(const struct screen *s, enum colour c);
void put(int y, int x, int width, const char *text);

/* The map of slabs from line y on. */
void draw_slab_map(const struct screen *s, const struct model *m, int y);

/* Draws everything from the model (NULL: none yet). */
void draw_all(struct screen *s, const struct model *m);

/* Up to NULL, for 80 columns and 24 lines. */
extern const char *const help_lines[];

/* Whether the view has the column, and its name. */
bool column_is_in(enum column c, enum view v);
const char *column_title(enum column c);

/* The rows of the view: made, filtered, sorted; the cursor kept where it was. */
void rows_for_view(struct screen *s, const struct model *m);

#endif
