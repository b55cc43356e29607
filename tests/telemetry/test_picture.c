/* SPDX-License-Identifier: MIT */
/* The picture of a slab map: what is shown, in which order, how many to a cell. */
#include <stdlib.h>
#include <string.h>

#include "tests/telemetry/tap.h"
#include "tools/map_picture.h"

#define SLABS 1000

static struct reader_unit units[SLABS];
static struct reader_map_sum sums[4];
static struct reader_pool pools[4] = {{.node = 0}, {.node = 2}, {.node = 5}, {.node = -1}};
static struct reader_map map = {.there = true, .unit = units, .pools = 4, .pool = sums};
static struct picture p;

static struct reader_unit *add(unsigned pool, unsigned state, unsigned cls, unsigned used)
{
	struct reader_unit *u = &units[map.count];

	*u = (struct reader_unit){.unit = (uint32_t)map.count * 8,
				  .units = 1,
				  .pool = (uint16_t)pool,
				  .state = state & 7,
				  .cls = (uint8_t)cls,
				  .used = (uint16_t)used};
	map.count++;
	return u;
}

static bool draw(int node, uint32_t size, size_t width, size_t lines, size_t each)
{
	struct picture_filter f = {node, size, width, lines, each};

	return picture_draw(&p, &map, pools, &f);
}

static bool row_is(size_t i, const char *want)
{
	char row[SLABS + 1];

	for (size_t k = 0; k < p.node[i].cells; k++)
		row[k] = picture_letter(p.node[i].cell[k]);
	row[p.node[i].cells] = 0;
	if (strcmp(row, want))
		printf("# got '%s', want '%s'\n", row, want);
	return !strcmp(row, want);
}

static void each_slab(void)
{
	add(0, READER_UNIT_ACTIVE, 5, 1);
	add(1, READER_UNIT_FULL, 5, 819);
	add(0, READER_UNIT_FREE, 0, 0)->units = 7;
	add(0, READER_UNIT_PARTIAL, 9, 100)->misplaced = 1;
	add(1, READER_UNIT_EMPTY, 0, 0)->units = 3;
	add(0, READER_UNIT_FULL, 9, 455);
	add(3, READER_UNIT_LARGE, 0, 0)->units = 40;
	add(3, READER_UNIT_LARGE, 0, 0)->units = 9;
	ok(draw(-1, PICTURE_ALL, 80, 20, 0) && p.nodes == 3 && p.per_cell == 1,
	   "three nodes, a cell a slab");
	ok(p.node[0].node == 0 && p.node[1].node == 2 && p.node[2].node == 5, "in their order");
	ok(row_is(0, "aPf") && row_is(1, "feee") && row_is(2, ""), "slabs by address");
	ok(p.node[0].given_back == 7 && p.node[0].slabs == 3, "what was given back is no slab");
	ok(p.node[0].misplaced == 1 && p.node[0].used == 556 && p.node[0].slots == 819 + 2 * 455,
	   "sums of use");
	ok(p.node[0].tenth[0] == 1 && p.node[0].tenth[2] == 1 && p.node[0].tenth[9] == 1,
	   "slabs by how full they are; full is in the last tenth");
	ok(p.large == 2 && p.large_units == 49 && p.longest == 40, "large blocks in sum");
}

static void filters(void)
{
	ok(draw(-1, 80, 80, 20, 0) && row_is(0, "a") && row_is(1, "f"), "one class");
	ok(draw(2, PICTURE_ALL, 80, 20, 0) && p.nodes == 1 && row_is(0, "feee"), "one node");
	ok(draw(-1, 0, 80, 20, 0) && row_is(0, "") && row_is(1, "eee"), "spans kept alone");
	ok(draw(7, PICTURE_ALL, 80, 20, 0) && p.nodes == 0, "a node that is not there");
	ok(draw(-1, 144, 80, 20, 0) && row_is(0, "Pf") && p.node[0].slabs == 2, "another class");
}

static void runs(void)
{
	map.count = 0;
	for (unsigned i = 0; i < 400; i++)
		add(0, i < 200 ? READER_UNIT_FULL : READER_UNIT_PARTIAL, 5, 1);
	for (unsigned i = 0; i < 10; i++)
		add(1, READER_UNIT_ACTIVE, 5, 1);
	ok(draw(-1, PICTURE_ALL, 10, 4, 0) && p.per_cell > 1, "too many: a cell is several");
	ok(p.node[0].cells <= 30 && p.node[1].cells >= 1 && p.node[1].cells <= 10,
	   "all fit in the lines, a node with little has its own (%llu to a cell)",
	   (unsigned long long)p.per_cell);
	ok(picture_letter(p.node[0].cell[0]) == 'f' &&
	       picture_letter(p.node[0].cell[p.node[0].cells - 1]) == 'p',
	   "each cell has the state of most");
	ok(draw(-1, PICTURE_ALL, 10, 40, 1) && p.node[0].cells <= 10 && p.per_cell == 40,
	   "at most a line a node");
	ok(draw(-1, PICTURE_ALL, 10, 0, 0) && p.per_cell == 1 && p.node[0].cells == 400,
	   "without a bound each slab");
	units[5].misplaced = 1;
	ok(draw(-1, PICTURE_ALL, 10, 4, 0) && picture_letter(p.node[0].cell[0]) == 'F',
	   "one misplaced slab marks its cell");
	units[0].units = 1;
	map.count = 1;
	units[0] = (struct reader_unit){.units = 1u << 30, .state = READER_UNIT_EMPTY};
	ok(draw(-1, PICTURE_ALL, 10, 4, 0) && p.node[0].cells <= 40, "a huge run is a few cells");
}

int main(void)
{
	map.size[5] = 80, map.slots[5] = 819;
	map.size[9] = 144, map.slots[9] = 455;
	each_slab();
	filters();
	runs();
	picture_free(&p);
	return tap_end();
}
