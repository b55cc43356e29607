/* SPDX-License-Identifier: MIT */
/*
 * From an address to its slab, by the slab map of telemetry/ring.h.  Pure arithmetic, shared by
 * the eBPF programs (which read the words from the faulting process) and by the collectors (which
 * read them from its file).  Whatever the words are, a result is either in bounds or damaged.
 */
#ifndef NUMASLAB_HINTS_DECODE_H
#define NUMASLAB_HINTS_DECODE_H

#ifdef __bpf__
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef short int16_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
typedef _Bool bool;
#define true 1
#define false 0
#else
#include <stdbool.h>
#include <stdint.h>
#endif

#define DECODE_UNIT_SHIFT 16
#define DECODE_PAGE_SHIFT 9 /* units of a page of the map */
#define DECODE_POOL_NONE  0xffu
#define DECODE_CLASS_NONE 0xffffu

/* Of one process; checked by reader_address.c: base + span does not overflow, windows fill the
 * span. */
struct hints_geometry {
	uint64_t base, span;
	uint64_t map_at, dir_at; /* in the process; 0: it maps none */
	uint32_t window_shift, window_count;
	uint32_t map_pages; /* that the section has room for */
	uint32_t unused;
	uint64_t map_offset, dir_offset; /* in the file */
};

enum hints_decoded {
	DECODED_OUTSIDE, /* not of the heap */
	DECODED_LARGE,	 /* of the window of large blocks */
	DECODED_SLAB,
	DECODED_FREE,	/* of the heap, and no slab there now */
	DECODED_UNREAD, /* a word could not be read */
	DECODED_DAMAGED
};

struct hints_place {
	uint32_t unit; /* the slab's first */
	uint16_t generation, class;
	uint8_t pool;
	uint8_t decoded; /* enum hints_decoded */
};

/* DECODED_OUTSIDE, DECODED_LARGE, or DECODED_SLAB: the map has to be asked. */
static inline enum hints_decoded decode_address(const struct hints_geometry *g, uint64_t address,
						uint32_t *unit)
{
	uint64_t offset = address - g->base;

	if (offset >= g->span)
		return DECODED_OUTSIDE;
	*unit = (uint32_t)(offset >> DECODE_UNIT_SHIFT);
	return offset >> (g->window_shift & 63) == g->window_count - 1 ? DECODED_LARGE
								       : DECODED_SLAB;
}

/* Where the directory has the page of a unit, as an offset into SLAB_DIR. */
static inline uint64_t decode_dir_offset(uint32_t unit)
{
	return (uint64_t)(unit >> DECODE_PAGE_SHIFT) * 4;
}

/* Where the map has the word of a unit, as an offset into SLAB_MAP; false: nowhere. */
static inline bool decode_word_offset(const struct hints_geometry *g, uint32_t page, uint32_t unit,
				      uint64_t *offset)
{
	if (page == 0 || page > g->map_pages)
		return false;
	*offset = (((uint64_t)(page - 1) << DECODE_PAGE_SHIFT) |
		   (unit & ((1u << DECODE_PAGE_SHIFT) - 1))) *
		  8;
	return true;
}

#define DECODE_STATE(w)	     ((unsigned)((w)&7))
#define DECODE_CLASS(w)	     ((uint16_t)((w) >> 8 & 255))
#define DECODE_POOL(w)	     ((uint8_t)((w) >> 16 & 255))
#define DECODE_BACK(w)	     ((uint32_t)((w) >> 32 & 0xffff))
#define DECODE_GENERATION(w) ((uint16_t)((w) >> 48))

/* enum ring_map_state; asserted equal in reader_address.c */
enum { DECODE_FREE, DECODE_ACTIVE, DECODE_PARTIAL, DECODE_FULL, DECODE_EMPTY, DECODE_INNER };

/* For a word that is INNER: the unit of the slab's first; false: damaged. */
static inline bool decode_step_back(uint64_t word, uint32_t *unit)
{
	uint32_t back = DECODE_BACK(word);

	if (back == 0 || back > *unit)
		return false;
	*unit -= back;
	return true;
}

/* From the word of a slab's first unit. */
static inline void decode_word(uint64_t word, uint32_t unit, struct hints_place *p)
{
	unsigned state = DECODE_STATE(word);

	p->unit = unit;
	p->generation = DECODE_GENERATION(word);
	p->class = DECODE_CLASS_NONE;
	p->pool = DECODE_POOL(word);
	if (state == DECODE_FREE || state == DECODE_EMPTY) {
		p->decoded = DECODED_FREE;
	} else if (state >= DECODE_INNER) {
		p->decoded = DECODED_DAMAGED;
	} else {
		p->class = DECODE_CLASS(word);
		p->decoded = DECODED_SLAB;
	}
}

#endif
