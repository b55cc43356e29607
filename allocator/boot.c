/* SPDX-License-Identifier: MIT */
#include "allocator/alloc.h"
#include "allocator/link.h"
/*
 * The first call.  It may come before any constructor, from ld.so or from another preloaded
 * library; nothing here calls what could allocate, and the thread that is at it may come back.
 */

enum { BOOT_NEVER, BOOT_DONE, BOOT_FAILED };

static _Atomic int boot_state;
static struct lock boot_lock;

extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned int __rseq_size __attribute__((weak));

#define RSEQ_CPU_ID  4
#define RSEQ_NODE_ID 20

/* Where a thread can read where it runs: a node number if the kernel fills it in, else a CPU. */
static void find_where(unsigned rseq_feature_size)
{
	const char *tp = __builtin_thread_pointer();

	/* One node: a word that never changes. */
	layout.where_offset = (const char *)&thread_state.sim_cpu - tp;
	if (!topology.guarded)
		return;
	if (!&__rseq_size || __rseq_size == 0) {
		topology.where_unknown = true;
		return;
	}
	bool node = rseq_feature_size >= RSEQ_NODE_ID + 4 && !topology.simulated;

	layout.where_offset = __rseq_offset + (node ? RSEQ_NODE_ID : RSEQ_CPU_ID);
}

static bool boot(void)
{
	struct os_start start;

	os_init(&start);
	alone_init();
	tunables_parse(start.envp, start.secure);
	alloc_checked = tunables.check;
	topology_init(tunables.topology);
	find_where(start.rseq_feature_size);
	link_init(start.random);
	mem_learn_commit();
	if (!pools_init(start.random, !start.valgrind))
		return false;
	return true;
}

cold static bool boot_slow(void)
{
	bool first = false;

	lock_take(&boot_lock);
	if (boot_state == BOOT_NEVER) {
		boot_state = boot() ? BOOT_DONE : BOOT_FAILED;
		first = boot_state == BOOT_DONE;
	}
	lock_release(&boot_lock);
	if (first) {
		/* May come back here: another library wraps what they call. */
		heaps_init();
		fork_init();
	}
	return boot_state == BOOT_DONE;
}

void alloc_open_fast_paths(void)
{
	layout.medium_limit = CLASS_LINEAR_MAX;
	if (!topology.guarded && !alloc_checked)
		layout.small_limit = CLASS_LINEAR_MAX;
}

bool alloc_boot(void)
{
	if (likely(atomic_load_explicit(&boot_state, memory_order_acquire) == BOOT_DONE))
		return true;
	return boot_slow();
}
