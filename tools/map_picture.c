/* SPDX-License-Identifier: MIT */
#include "tools/map_picture.h"

#include <stdlib.h>
#include <string.h>

static bool is_slab(const struct reader_unit *u)
{
	return u->state == READER_UNIT_ACTIVE || u->state == READER_UNIT_PARTIAL ||
	       u->state == READER_UNIT_FULL;
}

/* Cells that the unit is worth, without the filter's node. */
static uint64_t worth(const struct reader_map *m, const struct reader_unit *u, uint32_t size)
{
	if (u->state == READER_UNIT_EMPTY)
		return size == PICTURE_ALL || size == 0 ? u->units : 0;
	if (!is_slab(u))
		return 0;
	return size == PICTURE_ALL || m->size[u->cls] == size;
}

/* --- Sums. --- */

static void count_slab(struct picture_node *n, const struct reader_map *m,
		       const struct reader_unit *u)
{
	unsigned slots = m->slots[u->cls], tenth = 0;

	if (slots)
		tenth = u->used * PICTURE_TENTHS / slots;
	n->tenth[tenth < PICTURE_TENTHS ? tenth : PICTURE_TENTHS - 1]++;
	n->used += u->used;
	n->slots += slots;
	n->misplaced += u->misplaced;
}

static void count_unit(struct picture *p, const struct reader_map *m, const struct reader_unit *u,
		       const int *place, uint32_t size)
{
	if (u->state == READER_UNIT_LARGE) {
		p->large++;
		p->large_units += u->units;
		p->longest = u->units > p->longest ? u->units : p->longest;
		return;
	}
	if (u->pool >= m->pools || place[u->pool] < 0)
		return;
	struct picture_node *n = &p->node[place[u->pool]];
	uint64_t cells = worth(m, u, size);
	if (u->state == READER_UNIT_FREE)
		n->given_back += u->units;
	n->state[u->state] += cells;
	n->slabs += cells;
	if (cells && is_slab(u))
		count_slab(n, m, u);
}

/* --- Cells. --- */

static bool fits(const struct picture *p, uint64_t per_cell, const struct picture_filter *f)
{
	uint64_t all = 0;

	for (size_t i = 0; i < p->nodes; i++) {
		uint64_t cells = (p->node[i].slabs + per_cell - 1) / per_cell;
		uint64_t lines = (cells + f->width - 1) / f->width;

		if (f->each && lines > f->each)
			return false;
		all += lines;
	}
	return all <= f->lines;
}

static uint64_t choose_per_cell(const struct picture *p, const struct picture_filter *f)
{
	uint64_t slabs = 0, per_cell = 1;

	for (size_t i = 0; i < p->nodes; i++)
		slabs += p->node[i].slabs;
	if (f->lines == 0)
		return 1;
	if (slabs / f->width / f->lines > 1)
		per_cell = slabs / f->width / f->lines;
	/* A node with anything takes a line, however many there are. */
	while (per_cell < slabs && !fits(p, per_cell, f))
		per_cell += 1 + per_cell / 64;
	return per_cell;
}

struct run {
	uint64_t state[READER_UNIT_STATES], count, misplaced;
};

/* The state of most of a run; of two alike, the fuller. */
static uint8_t run_cell(const struct run *r)
{
	static const uint8_t order[] = {READER_UNIT_FULL, READER_UNIT_ACTIVE, READER_UNIT_PARTIAL,
					READER_UNIT_EMPTY};
	uint8_t best = order[0];

	for (unsigned i = 1; i < sizeof order; i++)
		if (r->state[order[i]] > r->state[best])
			best = order[i];
	return (uint8_t)(best | (r->misplaced ? PICTURE_MISPLACED : 0));
}

static void run_end(struct picture_node *n, struct run *r)
{
	n->cell[n->cells++] = run_cell(r);
	memset(r, 0, sizeof *r);
}

static void run_add(struct picture_node *n, struct run *r, uint64_t per_cell,
		    const struct reader_unit *u, uint64_t cells)
{
	while (cells) {
		uint64_t fit = per_cell - r->count < cells ? per_cell - r->count : cells;

		r->state[u->state] += fit;
		r->count += fit;
		r->misplaced += u->misplaced;
		cells -= fit;
		if (r->count == per_cell)
			run_end(n, r);
	}
}

static bool draw_cells(struct picture *p, const struct reader_map *m, const int *place,
		       const struct picture_filter *f)
{
	struct run *run = calloc(p->nodes + 1, sizeof *run);
	bool good = run != NULL;

	for (size_t i = 0; good && i < p->nodes; i++) {
		uint64_t cells = (p->node[i].slabs + p->per_cell - 1) / p->per_cell;

		good = (p->node[i].cell = malloc(cells + 1)) != NULL;
	}
	for (size_t i = 0; good && i < m->count; i++) {
		const struct reader_unit *u = &m->unit[i];
		uint64_t cells = worth(m, u, f->size);

		if (!cells || u->pool >= m->pools || place[u->pool] < 0)
			continue;
		run_add(&p->node[place[u->pool]], &run[place[u->pool]], p->per_cell, u, cells);
	}
	for (size_t i = 0; good && i < p->nodes; i++)
		if (run[i].count)
			run_end(&p->node[i], &run[i]);
	free(run);
	return good;
}

/* --- All of it. --- */

static void clear(struct picture *p)
{
	for (size_t i = 0; i < p->nodes; i++)
		free(p->node[i].cell);
	p->nodes = 0;
	p->large = p->large_units = p->longest = 0;
	p->per_cell = 1;
}

bool picture_draw(struct picture *p, const struct reader_map *m, const struct reader_pool *pool,
		  const struct picture_filter *f)
{
	int *place = malloc((m->pools + 1) * sizeof *place); /* pool -> node of the picture */

	clear(p);
	if (p->room < m->pools) {
		free(p->node);
		p->node = calloc(m->pools, sizeof *p->node);
		p->room = p->node ? m->pools : 0;
	}
	if (!place || p->room < m->pools) {
		free(place);
		return false;
	}
	for (unsigned i = 0; i < m->pools; i++) {
		place[i] = -1;
		if (pool[i].node < 0 || (f->node >= 0 && pool[i].node != f->node))
			continue;
		place[i] = (int)p->nodes;
		p->node[p->nodes++] = (struct picture_node){.node = pool[i].node};
	}
	for (size_t i = 0; i < m->count; i++)
		count_unit(p, m, &m->unit[i], place, f->size);
	p->per_cell = choose_per_cell(p, f);
	bool good = draw_cells(p, m, place, f);
	free(place);
	return good;
}

void picture_free(struct picture *p)
{
	clear(p);
	free(p->node);
	memset(p, 0, sizeof *p);
}

char picture_letter(uint8_t cell)
{
	unsigned state = cell & ~PICTURE_MISPLACED;
	bool away = cell & PICTURE_MISPLACED;

	return (away ? ".APFE.." : ".apfe..")[state < 7 ? state : 0];
}
