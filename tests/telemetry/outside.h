/* SPDX-License-Identifier: MIT */
#ifndef TESTS_TELEMETRY_OUTSIDE_H
#define TESTS_TELEMETRY_OUTSIDE_H

/*
 * A stopped process's heap, walked from outside through /proc/PID/mem: the library's variables are
 * found by its symbol table, the descriptors and the blocks' lists are read.  Nothing of what the
 * process publishes is looked at.
 */
#include "allocator/heap.h"

#define OUTSIDE_POOLS 9

struct outside {
	int pid, memory;
	uintptr_t bias; /* of the library */
	struct layout layout;
	unsigned nodes;
	uint64_t link_inv;
	struct pool pool[OUTSIDE_POOLS];
	uintptr_t first[OUTSIDE_POOLS]; /* address of a window's first descriptor */
	size_t top[OUTSIDE_POOLS];
	struct slab *slab[OUTSIDE_POOLS]; /* copies of [top] descriptors */
	uintptr_t kept;			  /* descriptor of the large block kept aside, or 0 */
	/* What the walk found; of the lists, of blocks that are really out. */
	int64_t count[OUTSIDE_POOLS][CLASS_COUNT][COUNTER_COUNT];
	uint64_t out[CLASS_COUNT], ready[CLASS_COUNT]; /* to the program; in heaps' bins */
	uint64_t behind[CLASS_COUNT]; /* frees that the counters have not seen yet */
	uint64_t large_units;
	unsigned long torn;   /* lists that do not end, equations that do not hold */
	unsigned long astray; /* slabs whose use is further off than counters.h says */
	unsigned long lately; /* those that have no more than their past to say for it */
};

/* False: *why says what could not be read.  The process is stopped. */
bool outside_open(struct outside *o, int pid, const char *library, const char **why);
void outside_close(struct outside *o);

/* lists: blocks' lists too, which are whole only if no thread was inside the allocator. */
void outside_walk(struct outside *o, bool lists);

/* What the map should say of the unit: the word without the generation. */
uint64_t outside_word(const struct outside *o, unsigned pool, size_t unit);

/* Resident and swapped bytes of a window by smaps, pages by numa_maps (-1: there is none). */
struct outside_pages {
	int64_t rss, swapped, numa;
};
struct outside_pages outside_pages(const struct outside *o, unsigned pool);

/* Says which units of a window have other pages than their descriptors know (a few of them). */
void outside_say_pages(const struct outside *o, unsigned pool);

#endif
