/* SPDX-License-Identifier: MIT */
/* Reads the slab map, all of it: telemetry/ring.h has its words. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/reader_internal.h"

#define SAME(ours, ring) _Static_assert((int)(ours) == (int)(ring), "states are the map's")
SAME(READER_UNIT_FREE, RING_MAP_FREE);
SAME(READER_UNIT_ACTIVE, RING_MAP_ACTIVE);
SAME(READER_UNIT_PARTIAL, RING_MAP_PARTIAL);
SAME(READER_UNIT_FULL, RING_MAP_FULL);
SAME(READER_UNIT_EMPTY, RING_MAP_EMPTY);
SAME(READER_UNIT_LARGE, RING_MAP_LARGE);

#define UNIT_SHIFT 16u
#define SHIFT_MIN  (UNIT_SHIFT + 9) /* a window is whole pages of the map */
#define SHIFT_MAX  47u
#define PLACES_MAX ((uint64_t)1 << 22)
#define DIR_CHUNK  16384u

/* --- What the header says of it. --- */

static bool find_exact(const struct ring_header *h, uint64_t size, enum ring_section_type type,
		       uint32_t stride, struct ring_section *out)
{
	for (uint32_t i = 0; i < h->section_count; i++) {
		const struct ring_section *s = &h->sections[i];

		if (s->type != type || s->count == 0)
			continue;
		if (s->stride != stride || s->offset % stride || s->offset > size ||
		    s->count > (size - s->offset) / stride)
			return false;
		*out = *s;
		return true;
	}
	return false;
}

static bool has_section(const struct ring_header *h, enum ring_section_type type)
{
	for (uint32_t i = 0; i < h->section_count; i++)
		if (h->sections[i].type == type && h->sections[i].count)
			return true;
	return false;
}

bool reader_load_map(struct reader *r, const struct ring_header *h)
{
	struct reader_slabs *p = &r->slabs;

	if (h->minor < 1 || !has_section(h, RING_SLAB_DIR))
		return true;
	if (!find_exact(h, r->size, RING_SLAB_DIR, sizeof(uint32_t), &p->dir) ||
	    !find_exact(h, r->size, RING_SLAB_MAP, sizeof(uint64_t), &p->map))
		return false;
	if (h->window_count != r->info.pools || h->window_shift < SHIFT_MIN ||
	    h->window_shift > SHIFT_MAX || h->base % ((uint64_t)1 << UNIT_SHIFT) ||
	    h->base > UINT64_MAX / 2 || h->span != (uint64_t)h->window_count << h->window_shift ||
	    h->span > UINT64_MAX / 4 || p->map.count % RING_MAP_UNITS ||
	    h->span >> UNIT_SHIFT != p->dir.count * RING_MAP_UNITS || p->dir.count > PLACES_MAX)
		return false;
	p->base = h->base;
	p->window_units = (uint32_t)1 << (h->window_shift - UNIT_SHIFT);
	p->pages = (uint32_t)(p->map.count / RING_MAP_UNITS);
	p->there = true;
	return true;
}

/* --- The directory. --- */

struct page {
	uint32_t place, page; /* from 0 */
};

struct pages {
	size_t count, room;
	struct page *page;
	uint8_t *taken; /* a bit for each page of the map */
	uint64_t odd;
};

static bool add_page(struct pages *all, uint32_t place, uint32_t page, uint32_t limit)
{
	if (page > limit || all->taken[(page - 1) / 8] & 1u << (page - 1) % 8) {
		all->odd++; /* beyond the map, or another place's too */
		return true;
	}
	all->taken[(page - 1) / 8] |= (uint8_t)(1u << (page - 1) % 8);
	if (all->count == all->room) {
		size_t room = all->room ? 2 * all->room : 64;
		struct page *more = realloc(all->page, room * sizeof *more);

		if (!more)
			return false;
		all->page = more;
		all->room = room;
	}
	all->page[all->count++] = (struct page){place, page - 1};
	return true;
}

/*
 * By pread: looking at a hole of a mapped file would give it memory.  Entries go from 0 to a
 * number once.
 */
static enum reader_result list_pages(const struct reader *r, struct pages *all)
{
	static _Thread_local uint32_t entry[DIR_CHUNK];
	const struct reader_slabs *p = &r->slabs;

	for (uint64_t at = 0; at < p->dir.count; at += DIR_CHUNK) {
		uint64_t n = p->dir.count - at < DIR_CHUNK ? p->dir.count - at : DIR_CHUNK;
		ssize_t bytes = (ssize_t)(n * sizeof *entry);

		if (pread(r->fd, entry, (size_t)bytes,
			  (off_t)(p->dir.offset + at * sizeof *entry)) != bytes)
			return READER_DAMAGED;
		for (uint64_t i = 0; i < n; i++)
			if (entry[i] && !add_page(all, (uint32_t)(at + i), entry[i], p->pages))
				return READER_FAILED;
	}
	return READER_OK;
}

/* --- Words. --- */

struct parse {
	const struct reader *r;
	struct reader_map *m;
	uint64_t word[RING_MAP_UNITS];
	uint64_t offset;     /* of the words, in the file */
	uint32_t first, end; /* a slab that is followed by inner units up to end */
	uint32_t next;	     /* the inner unit that should come */
	uint32_t beyond;     /* of the large block that we are in */
};

static void unit_add(struct parse *s, const struct reader_unit *u)
{
	struct reader_map *m = s->m;

	if (!m->unit || m->count == m->room) {
		size_t room = m->room ? 2 * m->room : 1024;
		struct reader_unit *more =
		    m->room < READER_UNITS_MAX ? realloc(m->unit, room * sizeof *more) : NULL;

		if (!more) {
			m->left_out++;
			return;
		}
		m->unit = more;
		m->room = room;
	}
	m->unit[m->count++] = *u;
}

/* Free units that follow each other are one. */
static void take_free(struct parse *s, uint32_t unit, unsigned state, unsigned pool)
{
	struct reader_map *m = s->m;
	struct reader_unit *last = m->count ? &m->unit[m->count - 1] : NULL;

	m->pool[pool].state[state]++;
	if (last && last->state == state && last->pool == pool && last->unit + last->units == unit)
		last->units++;
	else
		unit_add(s,
			 &(struct reader_unit){
			     .unit = unit, .units = 1, .state = state & 7, .pool = (uint16_t)pool});
}

static bool take_slab(struct parse *s, uint32_t unit, uint64_t w, unsigned pool)
{
	const struct reader *r = s->r;
	unsigned cls = RING_MAP_CLASS(w), landed = RING_MAP_POOL(w);
	uint32_t window = r->slabs.window_units;

	if (cls >= r->info.classes || r->class_size[cls] == 0 || landed >= r->info.pools ||
	    r->node[landed] < 0)
		return false;
	uint32_t bytes = r->slab_bytes[cls], units = bytes >> UNIT_SHIFT;
	uint32_t slots = s->m->slots[cls], used = RING_MAP_USED(w);
	if (units == 0 || units > window || unit + units > (pool + 1) * window)
		return false;
	struct reader_unit u = {
	    .unit = unit,
	    .units = units,
	    .used = (uint16_t)(used < slots ? used : slots),
	    .generation = (uint16_t)RING_MAP_GENERATION(w),
	    .state = RING_MAP_STATE(w) & 7,
	    .cls = (uint8_t)cls,
	    .pool = (uint16_t)landed,
	    .misplaced = RING_MAP_MISPLACED(w) & 1,
	};
	struct reader_map_sum *sum = &s->m->pool[landed];
	sum->state[u.state]++;
	sum->used += u.used;
	sum->misplaced += u.misplaced;
	unit_add(s, &u);
	s->first = unit;
	s->next = unit + 1;
	s->end = unit + units;
	return true;
}

static bool take_large(struct parse *s, uint32_t unit, uint64_t w, unsigned pool)
{
	uint32_t window = s->r->slabs.window_units, units = RING_MAP_LENGTH(w);
	uint64_t end = (uint64_t)(pool + 1) * window;

	if (units == 0 || unit + (uint64_t)units > end)
		return false;
	s->beyond = unit + units;
	s->m->pool[pool].state[READER_UNIT_LARGE]++;
	s->m->pool[pool].large_units += units;
	unit_add(s, &(struct reader_unit){.unit = unit,
					  .units = units,
					  .state = READER_UNIT_LARGE,
					  .pool = (uint16_t)pool});
	return true;
}

/* An inner unit counts for the slab before it, which knows how many there are. */
static bool take_inner(struct parse *s, uint32_t unit, uint64_t w)
{
	if (unit != s->next || unit >= s->end || RING_MAP_BACK(w) != unit - s->first)
		return false;
	s->next++;
	return true;
}

/* Something stands where the slab before should have an inner unit: it ends there. */
static void cut_slab(struct parse *s, uint32_t unit)
{
	struct reader_unit *last = s->m->count ? &s->m->unit[s->m->count - 1] : NULL;

	if (last && last->unit == s->first)
		last->units = unit - s->first;
	s->end = unit;
	s->m->odd++;
}

/* False: the word contradicts what is around it, or was caught between two stores. */
static bool take_word(struct parse *s, uint32_t unit, uint64_t w)
{
	unsigned pool = unit / s->r->slabs.window_units, state = RING_MAP_STATE(w);
	bool large = s->r->node[pool] < 0;

	if (state == RING_MAP_FREE && (large || RING_MAP_GENERATION(w) == 0))
		return true;
	if (unit < s->beyond || large != (state == RING_MAP_LARGE))
		return false;
	if (unit < s->end && state != RING_MAP_INNER)
		cut_slab(s, unit);
	switch (state) {
	case RING_MAP_FREE:
	case RING_MAP_EMPTY:
		take_free(s, unit, state, pool);
		return true;
	case RING_MAP_ACTIVE:
	case RING_MAP_PARTIAL:
	case RING_MAP_FULL:
		return take_slab(s, unit, w, pool);
	case RING_MAP_INNER:
		return take_inner(s, unit, w);
	case RING_MAP_LARGE:
		return take_large(s, unit, w, pool);
	default:
		return false;
	}
}

static void load_words(struct reader *r, void *data)
{
	struct parse *s = data;
	const uint64_t *from = (const void *)(r->map + s->offset);

	for (unsigned i = 0; i < RING_MAP_UNITS; i++)
		s->word[i] = ring_load(&from[i]);
}

static void load_lost(struct reader *r, void *data)
{
	struct reader_map *m = data;

	m->lost = ring_load(&((const struct ring_header *)r->map)->map_lost);
}

static enum reader_result read_pages(struct reader *r, const struct pages *all,
				     struct reader_map *m)
{
	struct parse s = {.r = r, .m = m};

	for (size_t k = 0; k < all->count; k++) {
		uint32_t unit = all->page[k].place * RING_MAP_UNITS;

		s.offset = r->slabs.map.offset +
			   (uint64_t)all->page[k].page * RING_MAP_UNITS * sizeof(uint64_t);
		if (!reader_guarded(load_words, r, &s))
			return READER_DAMAGED;
		for (unsigned i = 0; i < RING_MAP_UNITS; i++)
			if (s.word[i] && !take_word(&s, unit + i, s.word[i]))
				m->odd++;
	}
	return READER_OK;
}

static bool map_fit(const struct reader *r, struct reader_map *m)
{
	if (m->pools != r->info.pools) {
		reader_map_free(m);
		m->pool = calloc(r->info.pools, sizeof *m->pool);
		if (!m->pool)
			return false;
		m->pools = r->info.pools;
	}
	memset(m->pool, 0, m->pools * sizeof *m->pool);
	m->count = 0;
	m->odd = m->lost = m->left_out = 0;
	m->there = r->slabs.there;
	m->base = r->slabs.base;
	for (unsigned i = 0; i < READER_MAP_CLASSES; i++) {
		uint32_t size = i < r->info.classes ? r->class_size[i] : 0;
		uint32_t slots = size ? r->slab_bytes[i] / size : 0;

		m->size[i] = size;
		m->slots[i] = (uint16_t)(slots < UINT16_MAX ? slots : UINT16_MAX);
	}
	return true;
}

enum reader_result reader_map(struct reader *r, struct reader_map *m)
{
	struct pages all = {0};

	if (!map_fit(r, m))
		return READER_FAILED;
	if (!m->there)
		return READER_OK;
	all.taken = calloc(r->slabs.pages / 8 + 1, 1);
	enum reader_result result = all.taken ? list_pages(r, &all) : READER_FAILED;
	if (result == READER_OK && !reader_guarded(load_lost, r, m))
		result = READER_DAMAGED;
	if (result == READER_OK)
		result = read_pages(r, &all, m);
	m->odd += all.odd;
	free(all.taken);
	free(all.page);
	return result;
}

void reader_map_free(struct reader_map *m)
{
	free(m->unit);
	free(m->pool);
	memset(m, 0, sizeof *m);
}
