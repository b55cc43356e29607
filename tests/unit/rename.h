/* SPDX-License-Identifier: MIT */
#ifndef TEST_RENAME_H
#define TEST_RENAME_H

/*
 * The library's functions beside libc's own, in one test program: preload/ *.c are compiled with
 * this (-include), so that malloc here is ns_malloc.  Alters the declarations of libc's headers
 * too.
 */

#define malloc		   ns_malloc
#define free		   ns_free
#define cfree		   ns_cfree
#define calloc		   ns_calloc
#define realloc		   ns_realloc
#define reallocarray	   ns_reallocarray
#define posix_memalign	   ns_posix_memalign
#define aligned_alloc	   ns_aligned_alloc
#define memalign	   ns_memalign
#define valloc		   ns_valloc
#define pvalloc		   ns_pvalloc
#define malloc_usable_size ns_malloc_usable_size
#define malloc_trim	   ns_malloc_trim
#define mallopt		   ns_mallopt

#endif
