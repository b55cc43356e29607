/* SPDX-License-Identifier: MIT */
/* What top shows, without saying how: rows, rates, order.  Pure but for the set it reads. */
#ifndef NUMASLAB_SCREEN_ROWS_H
#define NUMASLAB_SCREEN_ROWS_H

#include "tools/reader_set.h"

enum rate {
	RATE_OWN,
	RATE_NODE_PARTIAL,
	RATE_NODE_NEW,
	RATE_ANY_PARTIAL,
	RATE_ANY_NEW,
	RATE_REMOTE_IN,
	RATE_REMOTE_OUT,
	RATE_COUNT
};

extern const enum counter rate_counter[RATE_COUNT];

struct feed_row;

/* A line about a process, a node of it, or a class of a node. */
struct row {
	const struct process *process;
	int node; /* -1: all, or large blocks */
	unsigned pool;
	uint32_t size; /* of the class; 0: not about one */
	uint64_t large_count, large_bytes;
	struct reader_counts counts;
	double rate[RATE_COUNT];      /* per second */
	const struct feed_row *hints; /* the screen's; NULL: not known */
};

struct rows {
	size_t count, room;
	struct row *row;
};

/* Slabs in all states. */
uint64_t counts_slabs(const struct reader_counts *c);

/* Per second since the look before; of a process seen for the first time, since it publishes. */
void rates_of(const struct process *p, const struct reader_counts *now,
	      const struct reader_counts *before, double rate[RATE_COUNT]);

/* One row for each process (its nodes summed), for each node of each process, for each class. */
bool rows_processes(struct rows *rows, const struct process_set *set);
bool rows_nodes(struct rows *rows, const struct process *p);
bool rows_classes(struct rows *rows, const struct process *p, int node); /* node -1: all */
void rows_free(struct rows *rows);

#endif
