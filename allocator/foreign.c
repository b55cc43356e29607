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
 * anonymous private one that is not a stack.  Reads /proc/self/maps; without it: yes.
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

/* One line of maps, "lo-hi rwxp off dev inode  name": whether addr is in it and it may be libc's.
 */
static bool line_is_libc(const char *line, const char *end, uintptr_t addr, bool *inside)
{
	const char *at = line;
	uintptr_t lo, hi;

	*inside = false;
	if (!hex(&at, end, &lo) || at++ >= end || !hex(&at, end, &hi))
		return false;
	*inside = addr >= lo && addr < hi;
	bool writable = end - at > 4 && at[1] == 'r' && at[2] == 'w' && at[4] == 'p';
	const char *name = end;

	while (name > at && name[-1] != ' ')
		name--;
	size_t n = (size_t)(end - name);
	return writable && (n == 0 || (n == 6 && memcmp(name, "[heap]", 6) == 0));
}

cold bool foreign_is_libc(const void *p)
{
	size_t room = (size_t)4 << 20;
	char *text = os_map(room);
	long n = text ? os_read_file("/proc/self/maps", text, room) : -1;
	bool libc = n <= 0, inside = false;

	for (const char *at = text, *end = text + (n > 0 ? n : 0); at < end && !inside;) {
		const char *eol = memchr(at, '\n', (size_t)(end - at));

		if (!eol)
			eol = end;
		libc = line_is_libc(at, eol, (uintptr_t)p, &inside);
		at = eol + 1;
	}
	if (text)
		os_unmap(text, room);
	return libc && (inside || n <= 0);
}
