/* SPDX-License-Identifier: MIT */
#include "allocator/allocator.h"

/*
 * Constructors of a library that is preloaded run before the program's; thread-local storage is in
 * place by then.
 */
__attribute__((constructor(101))) static void library_start(void)
{
	if (alloc_boot())
		alloc_open_fast_paths();
}
