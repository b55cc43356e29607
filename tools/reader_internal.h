/* SPDX-License-Identifier: MIT */
/* Inside the reader: reader.c opens and validates, reader_data.c and reader_slabs.c read. */
#ifndef NUMASLAB_READER_INTERNAL_H
#define NUMASLAB_READER_INTERNAL_H

#include "telemetry/ring.h"
#include "tools/reader.h"

struct reader {
	int fd, pins_fd;
	int pin_slot; /* -1: none */
	struct reader_info info;
	const char *map;
	uint64_t size;
	struct ring_pin *pins;
	struct ring_section live, history;
	uint32_t pool_stride;
	int column[COUNTER_COUNT]; /* where the file has our counter; -1: it has not */
	int node[READER_POOLS_MAX];
	struct reader_slabs { /* of the slab map */
		bool there;
		struct ring_section dir, map;
		uint64_t base;
		uint32_t window_units, pages;
	} slabs;
	uint32_t class_size[READER_CLASSES_MAX];
	uint32_t slab_bytes[READER_CLASSES_MAX];
};

/* Makes SIGBUS inside reader_guarded() an error; once for the process. */
void reader_guard_init(void);

/* Calls read(r, data); false: it touched a page that the file no longer has. */
bool reader_guarded(void (*read)(struct reader *r, void *data), struct reader *r, void *data);

/* Whether what the header says of the map, if there is one, is sound. */
bool reader_load_map(struct reader *r, const struct ring_header *h);

#endif
