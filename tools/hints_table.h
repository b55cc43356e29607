/* SPDX-License-Identifier: MIT */
/* Keys of one size, each with a dense index from 0 on: what parallel arrays are indexed by. */
#ifndef NUMASLAB_HINTS_TABLE_H
#define NUMASLAB_HINTS_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct table {
	size_t key_size; /* without padding, as keys are compared by their bytes */
	size_t count;
	/* private */
	size_t room;	/* of keys */
	size_t buckets; /* a power of two, at least twice count */
	unsigned char *keys;
	uint32_t *bucket; /* index + 1; 0: free */
};

#define TABLE_FULL ((size_t)-1)

/* The index of key, which is added if it is new (*fresh); TABLE_FULL: no memory. */
size_t table_get(struct table *t, const void *key, bool *fresh);
/* The index, or TABLE_FULL: it is not there. */
size_t table_find(const struct table *t, const void *key);
const void *table_key(const struct table *t, size_t index);
void table_clear(struct table *t);
void table_free(struct table *t);

/* Room for one more in an array of count elements, grown by doubling; false: no memory. */
bool array_fit(void **array, size_t *room, size_t count, size_t size);

#endif
