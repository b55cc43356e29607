/* SPDX-License-Identifier: MIT */
#ifndef NUMASLAB_ALLOC_H
#define NUMASLAB_ALLOC_H

/* What is above the heaps: large blocks, foreign pointers, checks, start and fork. */

#include "allocator/heap.h"

/* First call; false: the machine gives us no address space, every malloc fails. */
bool alloc_boot(void);

/*
 * From the constructor.  Before it a program's relocations may call malloc while thread-local
 * storage is all zero: every size goes the slow way, which copes with that.
 */
void alloc_open_fast_paths(void);
void heaps_init(void);

/* numaslab_set_cpu(): 0, or -1: no such CPU, or not a simulated topology. */
int heap_set_sim_cpu(int cpu);

/* --- alloc.c: every size, never by the fast path.  NULL: no memory. --- */
void *alloc_slow(size_t size);
void *alloc_aligned(size_t align, size_t size);
void *alloc_zeroed(size_t size);

/*
 * realloc, size > 0.  0: done, *block is the answer (NULL: no memory, or too much asked for).  Else
 * *block has so many bytes and is still to be copied to a new block, of *size bytes rather than of
 * those that were asked for.
 */
size_t alloc_resize(void **block, size_t *size);
size_t alloc_usable(void *p);
void *alloc_on_node(size_t size, int node, bool strict);
size_t alloc_trim(void);

/* --- large.c: blocks above CLASS_SIZE_MAX.  size <= PTRDIFF_MAX, align a power of two. --- */

/* *zero: the block is known to be zero. */
void *large_alloc(size_t size, size_t align, bool *zero);
void large_free(struct slab *s);
const struct slab *large_kept(void); /* the block kept aside; for audits */
void large_trim(void);		     /* no block is kept aside any more */
size_t large_usable(const struct slab *s);

void *large_on_node(size_t size, unsigned index, bool strict);

/* In place, or by moving pages; NULL: copy it.  new size > CLASS_SIZE_MAX. */
void *large_resize(struct slab *s, size_t size);

/* The last resort of large_alloc: mappings outside the windows, in a table. */
void *direct_alloc(size_t size, size_t align);
bool direct_free(void *p);
size_t direct_usable(const void *p); /* 0: not one of them */
void direct_fork_prepare(void);
void direct_fork_parent(void);
void direct_fork_child(void);

/* --- foreign.c: pointers that are not in our windows. --- */
void free_foreign(void *p);
void *realloc_foreign(void *p, size_t size);
size_t usable_foreign(void *p);
bool foreign_is_libc(const void *p); /* slow: reads the process's mappings */

/* --- check.c: NUMASLAB_CHECK=1. --- */
void check_alloc(const struct slab *s, const void *p);
void check_out(const struct slab *s, const void *p);
void check_free(const struct slab *s, const void *p); /* dies, or the block is out no more */

/* A block of a sound slab, freed by the calling thread. */
void free_block(struct slab *s, void *p);

/* --- fork.c --- */
void fork_init(void);

#endif
