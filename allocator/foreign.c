/* SPDX-License-Identifier: MIT */
#include "allocator/alloc.h"

#include <dlfcn.h>
#include <string.h>

/*
 * Pointers outside the windows: our own direct mappings, else libc's (handed out before a late
 * dlopen of this library, or inside a library bound to libc by RTLD_DEEPBIND).  They go to libc.
 */

extern void __libc_free(void *p);
extern void *__libc_realloc(void *p, size_t size);

cold void free_foreign(void *p)
{
	if (direct_free(p))
		return;
	if (alloc_checked && !foreign_is_libc(p))
		die("free of a foreign pointer", p);
	__libc_free(p);
}

cold size_t usable_foreign(void *p)
{
	size_t bytes = direct_usable(p);
	static size_t (*libc_usable)(void *);

	if (bytes)
		return bytes;
	if (!libc_usable)
		libc_usable = (size_t(*)(void *))dlsym(RTLD_NEXT, "malloc_usable_size");
	return libc_usable ? libc_usable(p) : 0;
}

cold void *realloc_foreign(void *p, size_t size)
{
	size_t have = direct_usable(p);

	if (!have) {
		if (alloc_checked && !foreign_is_libc(p))
			die("realloc of a foreign pointer", p);
		return __libc_realloc(p, size);
	}
	void *to = alloc_slow(size);
	if (!to)
		return NULL;
	memcpy(to, p, min_size(have, size));
	direct_free(p);
	return to;
}

/*
 * Whether the address lies in a mapping that libc's malloc may have made: the brk heap, or an
 * anonymous private one that is not a stack.  Reads /proc/self/maps; without it, and where a filter
 * may kill for that: yes.
 */
static bool hex(const char **at, const char *end, uintptr_t *out)
{
	const char *from = *at;

	for (*out = 0; *at < end; (*at)++) {
		char c = **at;

		if (c >= '0' && c <= '9')
			*out = *out << 4 | (uintptr_t)(c - '0');
		else if (c >= 'a' && c <= 'f')
			*out = *out << 4 | (uintptr_t)(c - 'a' + 10);
		else
			break;
	}
	return *at > from;
}

struct mapping {
	uintptr_t lo, hi;
	bool writable, named, heap;
};

/* One line of maps, "lo-hi rwxp off dev inode  name". */
static bool parse_mapping(const char *line, const char *end, struct mapping *m)
{
	const char *at = line, *name = end;

	if (!hex(&at, end, &m->lo) || at++ >= end || !hex(&at, end, &m->hi))
		return false;
	m->writable = end - at > 4 && at[1] == 'r' && at[2] == 'w' && at[4] == 'p';
	while (name > at && name[-1] != ' ')
		name--;
	m->named = name < end;
	m->heap = end - name == 6 && memcmp(name, "[heap]", 6) == 0;
	return true;
}

/* Before a block of libc's stands its chunk's size, which keeps inside the mapping. */
static bool has_chunk(const void *p, const struct mapping *m)
{
	uintptr_t at = (uintptr_t)p;

	if (at % 16 || at - m->lo < 16)
		return false;
	size_t size = ((const size_t *)p)[-1] & ~(size_t)7;

	return size >= 32 && size <= m->hi - at + 16;
}

cold bool foreign_is_libc(const void *p)
{
	size_t room = (size_t)4 << 20;
	char *text = topology.filtered ? NULL : os_map(room);
	long n = text ? os_read_file("/proc/self/maps", text, room) : -1;
	bool libc = n <= 0; /* cannot tell */
	struct mapping m = {0}, before;

	for (const char *at = text, *end = text + (n > 0 ? n : 0); at < end;) {
		const char *eol = memchr(at, '\n', (size_t)(end - at));

		before = m;
		if (!eol)
			eol = end;
		if (parse_mapping(at, eol, &m) && (uintptr_t)p >= m.lo && (uintptr_t)p < m.hi) {
			/* Anonymous right behind a file's mapping: the zeroed part of its data. */
			bool bss = before.named && !before.heap && before.hi == m.lo;

			libc = m.writable && (m.heap || (!m.named && !bss)) && has_chunk(p, &m);
			break;
		}
		at = eol + 1;
	}
	if (text)
		os_unmap(text, room);
	return libc;
}
