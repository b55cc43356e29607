/* SPDX-License-Identifier: MIT */
#ifndef TESTS_VM_TRACE_H
#define TESTS_VM_TRACE_H

/*
 * Hint faults on given pages: the check's script has a kprobe on mpol_misplaced, whose third
 * argument is the address, and its trace is read here.
 */

#include <stdint.h>

/* The range that pages are marked in; none is, yet. */
void trace_pages(uintptr_t from, uintptr_t to);
void trace_mark(const void *page);

/* Forgets what was traced, and begins again. */
void trace_restart(void);

/* Stops; hint faults on marked pages since the beginning.  *seen: on all pages. */
long trace_count(long *seen);

#endif
