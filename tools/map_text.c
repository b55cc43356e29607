/* SPDX-License-Identifier: MIT */
#include "tools/map_text.h"

#include <stdlib.h>

#include "tools/map_picture.h"
#include "tools/reader_text.h"

#define WIDTH 72
#define LINES 24

static void put_node(FILE *out, const struct picture_node *n)
{
	fprintf(out,
		"  node %d: %llu slabs: %llu active, %llu partial, %llu full, %llu empty; "
		"%llu misplaced\n",
		n->node, (unsigned long long)n->slabs,
		(unsigned long long)n->state[READER_UNIT_ACTIVE],
		(unsigned long long)n->state[READER_UNIT_PARTIAL],
		(unsigned long long)n->state[READER_UNIT_FULL],
		(unsigned long long)n->state[READER_UNIT_EMPTY], (unsigned long long)n->misplaced);
	for (size_t i = 0; i < n->cells; i++) {
		if (i % WIDTH == 0)
			fputs(i ? "\n    " : "    ", out);
		fputc(picture_letter(n->cell[i]), out);
	}
	if (n->cells)
		fputc('\n', out);
	if (n->slots == 0)
		return;
	fputs("    full to, %:", out);
	for (unsigned i = 0; i < PICTURE_TENTHS; i++)
		fprintf(out, "  %u:%llu", 10 * (i + 1), (unsigned long long)n->tenth[i]);
	fputc('\n', out);
}

void map_put_text(FILE *out, const struct reader_map *m, const struct reader_pool *pool)
{
	const struct picture_filter filter = {
	    .node = -1, .size = PICTURE_ALL, .width = WIDTH, .lines = LINES};
	struct picture p = {0};
	char b[2][TEXT_NUMBER];

	if (!m->there) {
		fputs("  no slab map: an older library, or no room for it\n", out);
		return;
	}
	if (!picture_draw(&p, m, pool, &filter)) {
		picture_free(&p);
		return;
	}
	fputs(
	    "  slab map, by address: a active  p partial  f full  e empty  (capitals: misplaced); ",
	    out);
	if (p.per_cell == 1)
		fputs("each a slab\n", out);
	else
		fprintf(out, "each %llu slabs\n", (unsigned long long)p.per_cell);
	for (size_t i = 0; i < p.nodes; i++)
		put_node(out, &p.node[i]);
	if (p.large)
		fprintf(out, "  large blocks: %llu in %s of addresses, the longest %s\n",
			(unsigned long long)p.large, text_bytes(b[0], p.large_units << 16),
			text_bytes(b[1], p.longest << 16));
	if (m->lost)
		fprintf(out, "  not on the map: %llu stretches of 32M (no room for them)\n",
			(unsigned long long)m->lost);
	picture_free(&p);
}

static void put_json_node(struct json *j, const struct picture_node *n)
{
	json_open(j, NULL, '{');
	json_int(j, "id", n->node);
	json_number(j, "slabs", n->slabs);
	json_number(j, "active", n->state[READER_UNIT_ACTIVE]);
	json_number(j, "partial", n->state[READER_UNIT_PARTIAL]);
	json_number(j, "full", n->state[READER_UNIT_FULL]);
	json_number(j, "empty", n->state[READER_UNIT_EMPTY]);
	json_number(j, "objects", n->used);
	json_number(j, "slots", n->slots);
	json_number(j, "misplaced_slabs", n->misplaced);
	json_number(j, "given_back_bytes", n->given_back << 16);
	json_open(j, "slabs_by_fill", '[');
	for (unsigned i = 0; i < PICTURE_TENTHS; i++)
		json_number(j, NULL, n->tenth[i]);
	json_close(j, ']');
	json_close(j, '}');
}

void map_put_json(struct json *j, const struct reader_map *m, const struct reader_pool *pool)
{
	const struct picture_filter filter = {
	    .node = -1, .size = PICTURE_ALL, .width = WIDTH, .lines = 1};
	struct picture p = {0};

	if (!m->there || !picture_draw(&p, m, pool, &filter)) {
		picture_free(&p);
		json_null(j, "map");
		return;
	}
	json_open(j, "map", '{');
	json_open(j, "nodes", '[');
	for (size_t i = 0; i < p.nodes; i++)
		put_json_node(j, &p.node[i]);
	json_close(j, ']');
	json_open(j, "large", '{');
	json_number(j, "count", p.large);
	json_number(j, "bytes", p.large_units << 16);
	json_number(j, "longest_bytes", p.longest << 16);
	json_close(j, '}');
	json_number(j, "lost_bytes", m->lost << 25);
	json_close(j, '}');
	picture_free(&p);
}
