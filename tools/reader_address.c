/* SPDX-License-Identifier: MIT */
#include "tools/reader_address.h"

#include <string.h>
#include <unistd.h>

#include "tools/reader_internal.h"

#define SAME(decode, ring) _Static_assert((int)(decode) == (int)(ring), "a word of the map")
SAME(DECODE_FREE, RING_MAP_FREE);
SAME(DECODE_ACTIVE, RING_MAP_ACTIVE);
SAME(DECODE_PARTIAL, RING_MAP_PARTIAL);
SAME(DECODE_FULL, RING_MAP_FULL);
SAME(DECODE_EMPTY, RING_MAP_EMPTY);
SAME(DECODE_INNER, RING_MAP_INNER);
SAME(1u << DECODE_PAGE_SHIFT, RING_MAP_UNITS);

#define SHIFT_MIN 21u
#define SHIFT_MAX 47u
#define DIR_MAX	  ((uint64_t)1 << 26)

static bool read_at(const struct reader *r, uint64_t offset, void *to, size_t size)
{
	return pread(r->fd, to, size, (off_t)offset) == (ssize_t)size;
}

static const struct ring_section *section_of(const struct reader *r, const struct ring_header *h,
					     enum ring_section_type type, uint32_t stride)
{
	for (uint32_t i = 0; i < h->section_count && i < RING_SECTIONS; i++) {
		const struct ring_section *s = &h->sections[i];

		if (s->type == type && s->stride == stride && s->offset % stride == 0 &&
		    s->offset <= r->size && s->count > 0 &&
		    s->count <= (r->size - s->offset) / stride)
			return s;
	}
	return NULL;
}

static bool geometry_is_sound(const struct ring_header *h)
{
	uint64_t unit = (uint64_t)1 << DECODE_UNIT_SHIFT, top = (uint64_t)1 << 56;

	return h->window_shift >= SHIFT_MIN && h->window_shift <= SHIFT_MAX && h->window_count &&
	       h->window_count <= READER_POOLS_MAX && h->base % unit == 0 && h->base < top &&
	       h->span < top && h->span == (uint64_t)h->window_count << h->window_shift &&
	       h->map_at % 8 == 0 && h->dir_at % 4 == 0 && h->map_at < top && h->dir_at < top;
}

bool reader_geometry(const struct reader *r, struct hints_geometry *g)
{
	struct ring_header h;

	memset(g, 0, sizeof *g);
	if (!read_at(r, 0, &h, sizeof h) || h.minor < 1 || !geometry_is_sound(&h))
		return false;
	const struct ring_section *map = section_of(r, &h, RING_SLAB_MAP, sizeof(uint64_t));
	const struct ring_section *dir = section_of(r, &h, RING_SLAB_DIR, sizeof(uint32_t));
	uint64_t places = h.span >> (DECODE_UNIT_SHIFT + DECODE_PAGE_SHIFT);
	if (!map || !dir || places > DIR_MAX || dir->count < places)
		return false;
	*g = (struct hints_geometry){.base = h.base,
				     .span = h.span,
				     .map_at = h.map_at,
				     .dir_at = h.dir_at,
				     .window_shift = h.window_shift,
				     .window_count = h.window_count,
				     .map_pages = (uint32_t)(map->count / RING_MAP_UNITS),
				     .map_offset = map->offset,
				     .dir_offset = dir->offset};
	if (!g->map_at || !g->dir_at)
		g->map_at = g->dir_at = 0;
	return true;
}

int reader_pool_node(const struct reader *r, unsigned pool)
{
	return pool < r->info.pools ? r->node[pool] : -1;
}

uint32_t reader_class_size(const struct reader *r, unsigned class)
{
	return class < r->info.classes ? r->class_size[class] : 0;
}

uint32_t reader_slab_bytes(const struct reader *r, unsigned class)
{
	return class < r->info.classes ? r->slab_bytes[class] : 0;
}

static enum hints_decoded read_word(const struct reader *r, const struct hints_geometry *g,
				    uint32_t unit, uint64_t *word)
{
	uint32_t page;
	uint64_t offset;

	if (!read_at(r, g->dir_offset + decode_dir_offset(unit), &page, sizeof page))
		return DECODED_UNREAD;
	if (page == 0)
		return DECODED_FREE;
	if (!decode_word_offset(g, page, unit, &offset))
		return DECODED_DAMAGED;
	return read_at(r, g->map_offset + offset, word, sizeof *word) ? DECODED_SLAB
								      : DECODED_UNREAD;
}

void reader_resolve(const struct reader *r, const struct hints_geometry *g, uint64_t address,
		    struct hints_place *p)
{
	uint32_t unit = 0;
	uint64_t word = 0;

	*p = (struct hints_place){.class = DECODE_CLASS_NONE, .pool = DECODE_POOL_NONE};
	p->decoded = decode_address(g, address, &unit);
	p->unit = unit;
	if (p->decoded != DECODED_SLAB)
		return;
	p->decoded = read_word(r, g, unit, &word);
	if (p->decoded == DECODED_SLAB && DECODE_STATE(word) == DECODE_INNER) {
		p->decoded =
		    decode_step_back(word, &unit) ? read_word(r, g, unit, &word) : DECODED_DAMAGED;
	}
	if (p->decoded != DECODED_SLAB)
		return;
	decode_word(word, unit, p);
	if (p->decoded == DECODED_SLAB &&
	    (reader_pool_node(r, p->pool) < 0 || reader_class_size(r, p->class) == 0))
		p->decoded = DECODED_DAMAGED;
}

void reader_observed(const struct reader *r, struct reader_observation *o)
{
	struct ring_header h;

	memset(o, 0, sizeof *o);
	if (!read_at(r, 0, &h, sizeof h) || h.minor < 1)
		return;
	o->request = h.observe_request;
	o->observed_bytes = h.observed_bytes;
	o->map_lost = h.map_lost;
	o->how = h.observe_how <= RING_OBSERVE_REFUSED ? h.observe_how : RING_OBSERVE_NONE;
}
