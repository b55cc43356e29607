/* SPDX-License-Identifier: MIT */
#include "tools/hints_table.h"

#include <stdlib.h>
#include <string.h>

static uint64_t hash_of(const unsigned char *key, size_t size)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325); /* FNV-1a */

	for (size_t i = 0; i < size; i++)
		h = (h ^ key[i]) * UINT64_C(0x100000001b3);
	return h ^ h >> 29;
}

static size_t slot_of(const struct table *t, const void *key)
{
	size_t at = hash_of(key, t->key_size) & (t->buckets - 1);

	while (t->bucket[at] &&
	       memcmp(t->keys + (t->bucket[at] - 1) * t->key_size, key, t->key_size) != 0)
		at = (at + 1) & (t->buckets - 1);
	return at;
}

static bool grow(struct table *t)
{
	size_t buckets = t->buckets ? t->buckets * 2 : 64;
	uint32_t *bucket = calloc(buckets, sizeof *bucket);

	if (!bucket)
		return false;
	free(t->bucket);
	t->bucket = bucket;
	t->buckets = buckets;
	for (size_t i = 0; i < t->count; i++)
		t->bucket[slot_of(t, t->keys + i * t->key_size)] = (uint32_t)i + 1;
	return true;
}

size_t table_get(struct table *t, const void *key, bool *fresh)
{
	*fresh = false;
	if ((t->count + 1) * 2 > t->buckets && !grow(t))
		return TABLE_FULL;
	size_t at = slot_of(t, key);
	if (t->bucket[at])
		return t->bucket[at] - 1;
	if (t->count >= UINT32_MAX ||
	    !array_fit((void **)&t->keys, &t->room, t->count, t->key_size))
		return TABLE_FULL;
	memcpy(t->keys + t->count * t->key_size, key, t->key_size);
	t->bucket[at] = (uint32_t)++t->count;
	*fresh = true;
	return t->count - 1;
}

size_t table_find(const struct table *t, const void *key)
{
	return t->buckets ? (size_t)t->bucket[slot_of(t, key)] - 1 : TABLE_FULL;
}

const void *table_key(const struct table *t, size_t index)
{
	return t->keys + index * t->key_size;
}

void table_clear(struct table *t)
{
	if (t->count)
		memset(t->bucket, 0, t->buckets * sizeof *t->bucket);
	t->count = 0;
}

void table_free(struct table *t)
{
	size_t key_size = t->key_size;

	free(t->keys);
	free(t->bucket);
	memset(t, 0, sizeof *t);
	t->key_size = key_size;
}

bool array_fit(void **array, size_t *room, size_t count, size_t size)
{
	if (count < *room)
		return true;
	size_t wanted = *room ? *room * 2 : 16;
	void *more = realloc(*array, wanted * size);
	if (!more)
		return false;
	*array = more;
	*room = wanted;
	return true;
}
