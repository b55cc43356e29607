/* SPDX-License-Identifier: MIT */
/*
 * The slab map as a picture: for each node its slabs in the order of their addresses, a cell for
 * each, or for each run of some where they are too many.  Pure.
 */
#ifndef NUMASLAB_MAP_PICTURE_H
#define NUMASLAB_MAP_PICTURE_H

#include "tools/reader.h"

#define PICTURE_TENTHS	  10
#define PICTURE_MISPLACED 0x80u /* in a cell, beside its state */

struct picture_node {
	int node;
	uint64_t slabs; /* that are shown: of all states but free ones; spans kept count by units */
	uint64_t state[READER_UNIT_STATES], used, slots, misplaced;
	/* Slabs by how full they are; kept spans are not among them. */
	uint64_t tenth[PICTURE_TENTHS];
	uint64_t given_back; /* units that were used once and are not now; of all classes */
	size_t cells;
	uint8_t *cell; /* enum reader_unit_state, or PICTURE_MISPLACED with it */
};

struct picture {
	uint64_t per_cell; /* slabs */
	size_t nodes;
	struct picture_node *node;
	uint64_t large, large_units, longest; /* large blocks, in units of 64 KiB */
	size_t room;			      /* of node */
};

/* What is shown. */
struct picture_filter {
	int node;      /* its number; -1: all */
	uint32_t size; /* of a class; PICTURE_ALL: all, 0: spans kept */
	size_t width;  /* cells of a line */
	size_t lines;  /* of cells, of all nodes together; 0: as many as there are */
	size_t each;   /* of a node; 0: no bound of its own */
};

#define PICTURE_ALL UINT32_MAX

/* Fills p (zeros, or from an earlier call); false: no memory. */
bool picture_draw(struct picture *p, const struct reader_map *m, const struct reader_pool *pool,
		  const struct picture_filter *f);
void picture_free(struct picture *p);

/* a, p, f, e; capitals where misplaced. */
char picture_letter(uint8_t cell);

#endif
