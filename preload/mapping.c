/* SPDX-License-Identifier: MIT */
#include "allocator/allocator.h"

#include <errno.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/prctl.h>

/*
 * Calls by which a program changes what lies under its blocks, or what we may ask the kernel.
 * Each does what libc's does; we only take note.
 */

static int result(long r)
{
	if (r >= 0)
		return (int)r;
	errno = (int)-r;
	return -1;
}

exported int mprotect(void *at, size_t bytes, int prot)
{
	alloc_note_mapping(at);
	return result(os_call(OS_mprotect, (long)at, (long)bytes, prot, 0, 0, 0));
}

exported int mlock(const void *at, size_t bytes)
{
	alloc_note_mapping(at);
	return result(os_call(OS_mlock, (long)at, (long)bytes, 0, 0, 0, 0));
}

exported int mlock2(const void *at, size_t bytes, unsigned flags)
{
	alloc_note_mapping(at);
	return result(os_call(OS_mlock2, (long)at, (long)bytes, flags, 0, 0, 0));
}

exported long mbind(void *at, unsigned long bytes, int mode, const unsigned long *mask,
		    unsigned long max, unsigned flags);
exported long mbind(void *at, unsigned long bytes, int mode, const unsigned long *mask,
		    unsigned long max, unsigned flags)
{
	alloc_note_policy(at);
	return result(os_call(OS_mbind, (long)at, (long)bytes, mode, (long)mask, (long)max, flags));
}

/* Before an unprivileged filter comes PR_SET_NO_NEW_PRIVS: what it will kill is not known. */
exported int prctl(int what, ...)
{
	unsigned long arg[4];
	va_list args;

	va_start(args, what);
	for (int i = 0; i < 4; i++)
		arg[i] = va_arg(args, unsigned long);
	va_end(args);
	if (what == PR_SET_NO_NEW_PRIVS || what == PR_SET_SECCOMP)
		alloc_note_filter();
	return result(
	    os_call(OS_prctl, what, (long)arg[0], (long)arg[1], (long)arg[2], (long)arg[3], 0));
}
