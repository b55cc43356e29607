/* SPDX-License-Identifier: MIT */
/*
 * Faults whose word of the slab map could not be read when they happened (its page was not there):
 * looked up in the file afterwards, once for each fault.
 */
#ifndef NUMASLAB_HINTS_LATE_H
#define NUMASLAB_HINTS_LATE_H

#include "tools/hints_rows.h"

struct late {
	struct raw_table seen;	/* by struct hints_slab_key: what was looked up already */
	struct raw_table found; /* the same, with what the file said */
};

void late_init(struct late *l);
/* The totals of a key of kind RAW_UNREAD; false: no memory. */
bool late_see(struct late *l, const struct follow *f, const struct hints_slab_key *key,
	      const struct hints_raw *total);
void late_free(struct late *l);

/* What lies at key->unit of that process now: fills the rest of the key, or leaves RAW_UNREAD. */
void late_look_up(const struct follow *f, struct hints_slab_key *key);

#endif
