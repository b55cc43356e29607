/* SPDX-License-Identifier: MIT */
#include "allocator/alloc.h"

/*
 * Large blocks for which the windows have no room (a small RLIMIT_AS, an alignment beyond them):
 * mappings of their own, kept in a short table.  Cold: found only after the windows were asked.
 */

#define DIRECT_MAX 4096u

static struct {
	struct lock lock;
	_Atomic unsigned count; /* entries in use are below this */
	struct {
		uintptr_t at;
		size_t bytes;
	} block[DIRECT_MAX];
} direct;

static bool remember(uintptr_t at, size_t bytes)
{
	unsigned i = 0;

	lock_take(&direct.lock);
	while (i < direct.count && direct.block[i].at)
		i++;
	if (i < DIRECT_MAX) {
		direct.block[i].at = at;
		direct.block[i].bytes = bytes;
		if (i == direct.count)
			direct.count++;
	}
	lock_release(&direct.lock);
	return i < DIRECT_MAX;
}

/* The block's bytes, 0 if it is not one; forgotten if so asked. */
static size_t look_up(uintptr_t at, bool forget)
{
	size_t bytes = 0;

	if (at == 0 || direct.count == 0)
		return 0;
	thread_count();
	lock_take(&direct.lock);
	for (unsigned i = 0; i < direct.count && bytes == 0; i++)
		if (direct.block[i].at == at) {
			bytes = direct.block[i].bytes;
			if (forget)
				direct.block[i].at = 0;
		}
	lock_release(&direct.lock);
	return bytes;
}

cold void *direct_alloc(size_t size, size_t align)
{
	size_t bytes = round_up(size, os_page_size), room = bytes;

	if (align > os_page_size)
		room += align;
	if (room < size)
		return NULL;
	char *p = os_map(room);
	if (!p)
		return NULL;
	char *at = align > os_page_size ? (char *)round_up((uintptr_t)p, align) : p;
	if (at > p)
		os_unmap(p, (size_t)(at - p));
	if (at + bytes < p + room)
		os_unmap(at + bytes, (size_t)(p + room - at - bytes));
	if (remember((uintptr_t)at, bytes))
		return at;
	os_unmap(at, bytes);
	return NULL;
}

bool direct_free(void *p)
{
	size_t bytes = look_up((uintptr_t)p, true);

	if (bytes)
		os_unmap(p, bytes);
	return bytes != 0;
}

size_t direct_usable(const void *p)
{
	return look_up((uintptr_t)p, false);
}

void direct_fork_prepare(void)
{
	lock_take(&direct.lock);
}

void direct_fork_parent(void)
{
	lock_release(&direct.lock);
}

void direct_fork_child(void)
{
	lock_reset(&direct.lock);
}
