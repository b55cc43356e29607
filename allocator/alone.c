/* SPDX-License-Identifier: MIT */
#include "allocator/alone.h"

#include <sys/single_threaded.h>

#pragma weak __libc_single_threaded /* glibc 2.32 */

static const char not_alone;

const char *_Atomic alone_word = &not_alone;

void alone_init(void)
{
	if (&__libc_single_threaded)
		atomic_store_explicit(&alone_word, &__libc_single_threaded, memory_order_relaxed);
}

void alone_never(void)
{
	atomic_store_explicit(&alone_word, &not_alone, memory_order_relaxed);
}
