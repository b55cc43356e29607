/* SPDX-License-Identifier: MIT */
/* Loads others by its own RUNPATH ($ORIGIN/inner). */
#include <dlfcn.h>

void *outer_load(const char *name, int flags);

void *outer_load(const char *name, int flags)
{
	void *handle = dlopen(name, flags);

	/* Not a tail call: the return address must lie in this object. */
	__asm__ volatile("" : "+r"(handle));
	return handle;
}
