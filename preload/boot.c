/* SPDX-License-Identifier: MIT */
#include "allocator/allocator.h"

/*
 * Registered as early as a library can, so that other libraries' fork handlers, registered later,
 * have run before ours take the locks.
 */
__attribute__((constructor(101))) static void library_start(void)
{
	if (!alloc_boot())
		return;
	alloc_open_fast_paths();
	fork_init();
}
