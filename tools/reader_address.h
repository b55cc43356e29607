/* SPDX-License-Identifier: MIT */
/* The slab map of a file: where it is in its process, its words, and the control file beside it. */
#ifndef NUMASLAB_READER_ADDRESS_H
#define NUMASLAB_READER_ADDRESS_H

#include "tools/hints_decode.h"
#include "tools/reader.h"

/* What the header says of observation, at one time. */
struct reader_observation {
	uint64_t request, observed_bytes, map_lost;
	uint32_t how; /* enum ring_observe; what is out of range is RING_OBSERVE_NONE */
};

/* The geometry, checked; false: the file has no slab map (an older library, or no room for it). */
bool reader_geometry(const struct reader *r, struct hints_geometry *g);

/* Which node a pool is; -1: it is none. */
int reader_pool_node(const struct reader *r, unsigned pool);
/* Bytes of a block of a class, and of a slab of it; 0: there is no such class. */
uint32_t reader_class_size(const struct reader *r, unsigned class);
uint32_t reader_slab_bytes(const struct reader *r, unsigned class);

/* What lies at an address of the process now; DECODED_UNREAD: the file was cut. */
void reader_resolve(const struct reader *r, const struct hints_geometry *g, uint64_t address,
		    struct hints_place *p);

void reader_observed(const struct reader *r, struct reader_observation *o);

#endif
