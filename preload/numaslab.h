/* SPDX-License-Identifier: MIT */
#ifndef NUMASLAB_H
#define NUMASLAB_H

/*
 * The optional public API.  Every function is declared weak, so that one binary runs with and
 * without the library: test the address before calling.
 *
 *	if (numaslab_malloc_node)
 *		p = numaslab_malloc_node(size, node, 0);
 */

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define NUMASLAB_WEAK __attribute__((weak))

/* Insist on the node: NULL with ENOMEM rather than memory of another one. */
#define NUMASLAB_THISNODE 1u

/* The refill ladder; the order of numaslab_node_stats.refill[]. */
enum numaslab_step {
	NUMASLAB_OWN,
	NUMASLAB_NODE_PARTIAL,
	NUMASLAB_NODE_NEW,
	NUMASLAB_ANY_PARTIAL,
	NUMASLAB_ANY_NEW,
	NUMASLAB_STEPS
};

/*
 * One node's slabs.  slabs = active + partial + full + empty; objects counts what is out to the
 * program plus what thread heaps hold ready (cached_bytes); used_bytes = objects x class size.
 */
struct numaslab_node_stats {
	int32_t node; /* the machine's number; -1: the large blocks, which are first-touch */
	uint32_t reserved;
	uint64_t slabs, active, partial, full, empty;
	uint64_t objects, slots;
	uint64_t capacity_bytes, used_bytes, cached_bytes, held_bytes;
	uint64_t refill[NUMASLAB_STEPS];
	uint64_t remote_frees_in, remote_frees_out;
	uint64_t misplaced_slabs, released_bytes;
	uint64_t large_count, large_bytes;
};

/*
 * size bytes on the given node, 16-byte aligned; node -1 means the caller's.  Without
 * NUMASLAB_THISNODE the node is a preference (ladder steps 1-5), with it a demand (steps 1-3).
 * NULL with errno ENOMEM, or EINVAL for a node that has no memory or unknown flags.
 */
NUMASLAB_WEAK void *numaslab_malloc_node(size_t size, int node, unsigned flags);

/*
 * The node on which ptr's memory lies (where its slab was found to be, or for a large block the
 * node of its first page); -1 for a pointer that is not ours or whose page is not there yet.
 */
NUMASLAB_WEAK int numaslab_node_of(const void *ptr);

/*
 * Fills up to max entries, one per node that has memory and a last one with node -1 for large
 * blocks; returns how many there are.  Safe from any thread; not from a signal handler.
 */
NUMASLAB_WEAK int numaslab_stats(struct numaslab_node_stats *stats, int max);

/*
 * Simulated topologies only (NUMASLAB_TOPOLOGY): the calling thread "runs" on cpu from here on;
 * -1 ends it.  0, or -1 with errno EINVAL (no such cpu, or a real topology).
 */
NUMASLAB_WEAK int numaslab_set_cpu(int cpu);

#ifdef __cplusplus
}
#endif

#endif
