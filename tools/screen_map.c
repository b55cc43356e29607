/* SPDX-License-Identifier: MIT */
/* The last view of top: the slabs of a process by address, a character each, node by node. */
#include <stdlib.h>
#include <string.h>

#include <ncursesw/curses.h>

#include "tools/reader_text.h"
#include "tools/screen.h"

#define PREFIX	     6	/* columns before the cells where a node has one line */
#define LEGEND_WIDTH 76 /* what the whole legend takes */

struct look {
	uint8_t state;
	enum colour colour;
	const char *glyph, *name;
};

static const struct look looks[] = {
    {READER_UNIT_ACTIVE, GOOD, "▓", "active"},
    {READER_UNIT_PARTIAL, WARN, "░", "partial"},
    {READER_UNIT_FULL, PLAIN, "█", "full"},
    {READER_UNIT_EMPTY, DIM, "·", "empty"},
    {READER_UNIT_ACTIVE | PICTURE_MISPLACED, BAD, "×", "misplaced"},
};

static const struct look *look_of(uint8_t cell)
{
	unsigned i = 0;

	if (cell & PICTURE_MISPLACED)
		return &looks[4];
	while (i < 3 && looks[i].state != cell)
		i++;
	return &looks[i];
}

/* Where it is not UTF-8 letters, capitals where misplaced. */
static void draw_cell(const struct screen *s, uint8_t cell)
{
	const struct look *l = look_of(cell);

	paint(s, l->colour);
	if (s->ascii)
		addch((chtype)picture_letter(cell));
	else
		addstr(l->glyph);
}

/* What the characters mean, and how many slabs each is. */
static void draw_legend(const struct screen *s, int y, const struct picture *p, uint32_t size)
{
	char text[64];
	bool brief = COLS < LEGEND_WIDTH; /* the letters of the lines below */

	if (size == PICTURE_ALL)
		snprintf(text, sizeof text, "all classes, ");
	else if (size == 0)
		snprintf(text, sizeof text, "spans kept, ");
	else
		snprintf(text, sizeof text, "blocks of %u, ", size);
	paint(s, PLAIN);
	put(y, 0, COLS, brief ? "" : text);
	if (p->per_cell == 1)
		snprintf(text, sizeof text, "each a slab: ");
	else
		snprintf(text, sizeof text, "each %llu slabs: ", (unsigned long long)p->per_cell);
	put(y, getcurx(stdscr), COLS - getcurx(stdscr), text);
	for (size_t i = 0; i < sizeof looks / sizeof *looks; i++) {
		snprintf(text, sizeof text, brief ? "%.1s " : " %s ", looks[i].name);
		if (getcurx(stdscr) + 1 + (int)strlen(text) > COLS)
			break;
		draw_cell(s, looks[i].state);
		paint(s, PLAIN);
		addstr(text);
	}
}

/* How full the slabs are: a bar for each tenth, the tallest one being most slabs. */
static void draw_fill(const struct screen *s, const struct picture_node *n)
{
	static const char *const blocks[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
	static const char ascii[] = " .:-=+*#@";
	uint64_t most = 1;

	for (unsigned i = 0; i < PICTURE_TENTHS; i++)
		if (n->tenth[i] > most)
			most = n->tenth[i];
	paint(s, PLAIN);
	addstr("  fill 0[");
	paint(s, GOOD);
	for (unsigned i = 0; i < PICTURE_TENTHS; i++) {
		unsigned level =
		    (unsigned)((double)n->tenth[i] / (double)most * 7.99) + (n->tenth[i] != 0);

		level = level > 8 ? 8 : level;
		if (s->ascii)
			addch((chtype)ascii[level]);
		else
			addstr(blocks[level]);
	}
	paint(s, PLAIN);
	addstr("]100%");
}

static void draw_node_head(const struct screen *s, int y, const struct picture_node *n)
{
	char text[160], b[5][TEXT_NUMBER];
	double used = n->slots ? 100 * (double)n->used / (double)n->slots : 0;

	snprintf(text, sizeof text, "node %d: %s slabs  a %s  p %s  f %s  e %s", n->node,
		 text_count(b[0], (double)n->slabs),
		 text_count(b[1], (double)n->state[READER_UNIT_ACTIVE]),
		 text_count(b[2], (double)n->state[READER_UNIT_PARTIAL]),
		 text_count(b[3], (double)n->state[READER_UNIT_FULL]),
		 text_count(b[4], (double)n->state[READER_UNIT_EMPTY]));
	paint(s, PLAIN);
	put(y, 0, COLS, text);
	if (n->misplaced) {
		snprintf(text, sizeof text, "  misplaced %s",
			 text_count(b[0], (double)n->misplaced));
		paint(s, BAD);
		put(y, getcurx(stdscr), COLS - getcurx(stdscr), text);
	}
	if (n->slots && getcurx(stdscr) + 36 <= COLS) {
		snprintf(text, sizeof text, "  used %.0f%%", used);
		paint(s, PLAIN);
		addstr(text);
		draw_fill(s, n);
	}
}

/* Lines used. */
static int draw_cells(const struct screen *s, int y, int x, const struct picture_node *n,
		      size_t width, int room)
{
	int lines = 0;

	for (size_t i = 0; i < n->cells; i++) {
		if (i % width == 0) {
			if (lines == room)
				break;
			move(y + lines++, x);
		}
		draw_cell(s, n->cell[i]);
	}
	return lines;
}

static void draw_below(const struct screen *s, int y, const struct picture *p,
		       const struct reader_map *m)
{
	char text[128], b[3][TEXT_NUMBER];
	uint64_t back = 0;

	for (size_t i = 0; i < p->nodes; i++)
		back += p->node[i].given_back;
	snprintf(text, sizeof text,
		 "%s of addresses given back; large blocks: %s in %s, the longest %s",
		 text_bytes(b[0], back << 16), text_count((char[TEXT_NUMBER]){0}, (double)p->large),
		 text_bytes(b[1], p->large_units << 16), text_bytes(b[2], p->longest << 16));
	paint(s, DIM);
	put(y, 0, COLS, text);
	if (m->lost) {
		snprintf(text, sizeof text, "; %s not on the map: no room",
			 text_bytes(b[0], m->lost << 25));
		put(y, getcurx(stdscr), COLS - getcurx(stdscr), text);
	}
}

/* The nodes' pools, as the snapshot has them. */
static const struct reader_snapshot *snapshot_of(const struct model *m, uint64_t id)
{
	for (size_t i = 0; i < m->set.count; i++)
		if (m->set.process[i].id == id)
			return &m->set.process[i].now;
	return NULL;
}

static void draw_picture(const struct screen *s, int y, int room, struct picture *p,
			 const struct reader_map *map, const struct reader_pool *pool)
{
	bool short_of_lines = room < 2 * (int)map->pools;
	int x = short_of_lines ? PREFIX : 0;
	struct picture_filter f = {
	    .node = s->map_all_nodes ? -1 : s->node,
	    .size = s->map_all_sizes ? PICTURE_ALL : s->map_size,
	    .width = (size_t)(COLS - x > 8 ? COLS - x : 8),
	};
	int nodes = f.node < 0 ? (int)map->pools - 1 : 1;

	f.each = short_of_lines ? 1 : 0;
	f.lines = (size_t)(short_of_lines ? room : room - nodes);
	if (!picture_draw(p, map, pool, &f))
		return;
	draw_legend(s, y++, p, f.size);
	for (size_t i = s->top; i < p->nodes && room > 0; i++) {
		const struct picture_node *n = &p->node[i];
		int lines = 1;

		if (short_of_lines) {
			paint(s, PLAIN);
			mvprintw(y, 0, "%*d ", PREFIX - 1, n->node);
			draw_cells(s, y, x, n, f.width, 1);
		} else {
			draw_node_head(s, y, n);
			lines += draw_cells(s, y + 1, 0, n, f.width, room - 1);
		}
		y += lines;
		room -= lines;
	}
	draw_below(s, LINES - 2, p, map);
}

void draw_slab_map(const struct screen *s, const struct model *m, int y)
{
	static struct picture picture; /* one screen, one thread */
	const struct reader_snapshot *now = m ? snapshot_of(m, s->id) : NULL;
	int room = LINES - y - 3; /* without the legend, what is below, the keys */

	if (!now || m->map_id != s->id)
		return; /* it comes with the next look */
	if (!m->map.there || m->map.pools != now->pools) {
		paint(s, DIM);
		put(y + 1, 2, COLS - 2, "no slab map: an older library, or no room for it");
	} else if (room > 0) {
		draw_picture(s, y, room, &picture, &m->map, now->pool);
	}
}
