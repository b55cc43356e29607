/* SPDX-License-Identifier: MIT */
/* Counts by key, and from there to the rows of the model; what the collectors have in common. */
#ifndef NUMASLAB_HINTS_ROWS_H
#define NUMASLAB_HINTS_ROWS_H

#include "tools/hints_bpf.h"
#include "tools/hints_internal.h"
#include "tools/hints_table.h"

struct raw_table {
	struct table keys;
	struct hints_raw *row;
	size_t room;
};

/* The row of a key, all 0 if it is new; NULL: no memory. */
struct hints_raw *raw_row(struct raw_table *t, const void *key);
void raw_free(struct raw_table *t);
void raw_add(struct hints_raw *to, const struct hints_raw *n);

/* Add to the model; false: no memory.  A class that its process does not have is damaged. */
bool rows_cell(struct hints_session *s, const struct hints_cell_key *key,
	       const struct hints_raw *n);
bool rows_slab(struct hints_session *s, const struct hints_slab_key *key, const struct hints_raw *n,
	       bool late);
/* comm as the kernel gave it, NULL: to be asked. */
bool rows_thread(struct hints_session *s, const struct hints_thread_key *key,
		 const struct hints_raw *n, const char *comm);

#endif
