/* SPDX-License-Identifier: MIT */
#ifndef NUMASLAB_ALLOCATOR_H
#define NUMASLAB_ALLOCATOR_H

/* The one header of this folder that preload/ includes. */

#include "allocator/alloc.h"
#include "preload/numaslab.h"

/* A node number with memory that we may use, or -1. */
bool alloc_node_is_valid(int node);

/* The program changes a mapping (protection, locks; its policy) that may be one of our blocks'. */
void alloc_note_mapping(const void *at);
void alloc_note_policy(const void *at);

/* A seccomp filter may come: no more questions about placement. */
void alloc_note_filter(void);

/* numaslab_node_of() and numaslab_stats(), as numaslab.h describes them. */
int alloc_node_of(const void *p);
int alloc_stats(struct numaslab_node_stats *stats, int max);

/* Its entry i; false: there are no more. */
bool alloc_stats_at(int i, struct numaslab_node_stats *stats);

#endif
