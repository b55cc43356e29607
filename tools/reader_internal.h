/* SPDX-License-Identifier: MIT */
/* Inside the reader: reader.c opens and validates, reader_data.c reads. */
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
	uint32_t class_size[READER_CLASSES_MAX];
};

/* Makes SIGBUS inside reader_data.c's reading an error; once for the process. */
void reader_guard_init(void);

#endif
