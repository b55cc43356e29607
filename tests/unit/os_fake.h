/* SPDX-License-Identifier: MIT */
#ifndef TEST_OS_FAKE_H
#define TEST_OS_FAKE_H

/*
 * A machine to order behind allocator/os.h: nodes with so many pages, some of them page cache,
 * and a script of failures.  Memory is real (mmap), its place is invented.  Thread-safe.
 */

#include "allocator/os.h"

#define FAKE_NODES 8u

/* clang-format off */
#define FAKE_CALLS(X)                                                                              \
	X(range_is_free) X(map_at) X(map) X(unmap) X(populate) X(discard) X(remap_fresh)           \
	X(move_range) X(no_huge) X(huge) X(set_policy) X(task_policy) X(mems_allowed) X(page_node)         \
	X(move_pages) X(getcpu) X(read_file)
/* clang-format on */

enum fake_call {
#define X(name) FAKE_##name,
	FAKE_CALLS(X)
#undef X
	    FAKE_CALL_COUNT
};

struct fake_node {
	int number;
	long pages; /* 0: memoryless */
	long cache; /* of them, page cache: populating does not take them, move_pages does */
	long used;
};

struct fake_call_state {
	long calls;		/* so far */
	long fail_from, fail_n; /* calls fail_from .. fail_from + fail_n - 1 fail (from 1 on) */
	int error;		/* positive errno */
	bool partial;		/* half the range is done before it fails */
	long failed;
};

extern struct fake {
	unsigned count;
	struct fake_node node[FAKE_NODES];
	uint8_t distance[FAKE_NODES][FAKE_NODES];
	struct fake_call_state call[FAKE_CALL_COUNT];
	uint64_t now_ms;
	int task_policy;
	bool seccomp;
	int overcommit;		       /* vm.overcommit_memory */
	bool refuse_many, refuse_bind; /* policies with NUMA balancing: EINVAL, as old kernels */
	long bound; /* pages that came in or went under BIND: on a full node, that kills */
	char *const *envp;
	uint64_t random;
} fake;

extern const char *const fake_call_name[FAKE_CALL_COUNT];

/* The node number where the calling thread "runs"; layout.where_offset is to point at it. */
extern __thread int32_t fake_here;

/* n nodes of so many MiB each, ring distances 10, 20; nothing fails. */
void fake_machine(unsigned n, unsigned mib);
void fake_fail(enum fake_call call, long from, long n, int error, bool partial);
void fake_heal(void);

/* Pages that lie on the node, of all reserved ranges, and of one range. */
long fake_used(unsigned node);
long fake_used_in(const void *at, size_t bytes, int node);

/* The policy of the page at `at`: its mode, and node if it prefers or is bound to one, else -1. */
int fake_policy(const void *at, int *node);

/* Its mapping exists. */
bool fake_mapped(const void *at);

#endif
