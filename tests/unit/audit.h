/* SPDX-License-Identifier: MIT */
#ifndef TEST_AUDIT_H
#define TEST_AUDIT_H

/*
 * The conservation equations of slab.h, span.h, mem.h and counters.h, by walking every descriptor.
 * The allocator must be at rest (no other thread inside).  Ends the process (child.h) at the
 * first that does not hold.
 */

#include "allocator/alloc.h"

/* Every block that is out to the program; what else is in use is an error.  NULL: not known. */
struct audit_live {
	void *const *block;
	size_t count;
};

/* truth: the fake machine's pages are compared with what the counters say is held. */
void audit(const struct audit_live *live, bool truth);

/* Sum over the classes. */
int64_t audit_counter(unsigned index, enum counter c);

/* Slabs, dirty spans and what they hold: all back where it came from. */
void audit_all_returned(void);

#endif
