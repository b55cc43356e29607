/* SPDX-License-Identifier: MIT */
#ifndef TEST_SLAB_WORLD_H
#define TEST_SLAB_WORLD_H

/* A table of descriptors and the memory that they stand for, without a window. */

#include "tests/unit/child.h"
#include "allocator/slab.h"

#include <sys/mman.h>

struct layout layout;

#define WORLD_UNITS 16u

static struct slab *table;

static int world_set_up(void **state)
{
	size_t bytes = WORLD_UNITS * UNIT_SIZE;
	char *at = mmap(NULL, bytes + UNIT_SIZE, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	if (at == MAP_FAILED)
		return -1;
	table = aligned_alloc(CACHE_LINE, WORLD_UNITS * sizeof *table);
	memset(table, 0, WORLD_UNITS * sizeof *table);
	layout.base = round_up((uintptr_t)at, UNIT_SIZE);
	layout.span = bytes;
	layout.table = (uintptr_t)table;
	layout.window_shift = 26;
	link_init(4711);
	return 0;
}

static inline void set_used(struct slab *s, unsigned used)
{
	s->left = 1;
	s->base = used - 1;
}

/* How long a list is; each link is a block, and it ends where it should. */
static inline unsigned list_walk(const struct slab *s, uintptr_t first)
{
	unsigned n = 0;

	for (; slab_has(s, first); first = link_read((void *)first), n++)
		assert_int_equal((first - slab_addr(s)) % s->size, 0);
	assert_int_equal(first, slab_end(s));
	return n;
}

#endif
