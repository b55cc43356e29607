/* SPDX-License-Identifier: MIT */
#ifndef TEST_HEAP_USER_H
#define TEST_HEAP_USER_H

/* The malloc family of preload/preload.c under the names that rename.h gives it. */

#include <stddef.h>

void *ns_malloc(size_t size);
void ns_free(void *p);
void *ns_calloc(size_t n, size_t size);
void *ns_realloc(void *p, size_t size);
int ns_posix_memalign(void **out, size_t align, size_t size);
void *ns_aligned_alloc(size_t align, size_t size);
void *ns_memalign(size_t align, size_t size);
size_t ns_malloc_usable_size(void *p);
int ns_malloc_trim(size_t pad);

#endif
