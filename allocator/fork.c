/* SPDX-License-Identifier: MIT */
#include "allocator/alloc.h"
#include "allocator/observe.h"

#include <pthread.h>

/*
 * All locks are taken before fork, so that the child finds what they guard in one piece.  The
 * forking thread passes its own locks (lock_forking): handlers of other libraries, which may
 * allocate, run between ours.  In the child the other threads' heaps are marked, and no slab is
 * touched (salvage.c).
 */

static void lock_all(void)
{
	if (lock_forking || !alloc_boot())
		return;
	for (unsigned i = 0; i <= topology.count; i++)
		lock_take(&pools[i].lock);
	observe_fork_prepare();
	direct_fork_prepare();
	meta_fork_prepare();
	lock_forking = true;
}

static void unlock_in_parent(void)
{
	if (!lock_forking)
		return;
	lock_forking = false;
	meta_fork_parent();
	direct_fork_parent();
	observe_fork_parent();
	for (unsigned i = topology.count + 1; i-- > 0;)
		lock_release(&pools[i].lock);
}

static void reset_in_child(void)
{
	if (!lock_forking)
		return;
	lock_forking = false;
	alloc_forked |= heaps_fork_child();
	meta_fork_child();
	direct_fork_child();
	telemetry_fork_child();
	observe_fork_child();
	for (unsigned i = 0; i <= topology.count; i++)
		lock_reset(&pools[i].lock);
}

void fork_init(void)
{
	pthread_atfork(lock_all, unlock_in_parent, reset_in_child);
}
