/* SPDX-License-Identifier: MIT */
#ifndef NUMASLAB_OBSERVE_H
#define NUMASLAB_OBSERVE_H

/*
 * Observation: a sample of the populated chunks (2 MiB) of slab memory gets a policy that wants the
 * same node as before but is visible to NUMA balancing.  The kernel reports remote access there by
 * hint faults and, as no other node is asked for, moves nothing.
 *
 *	PREFERRED_MANY | NUMA_BALANCING	where the kernel takes it (6.12, not 6.1)
 *	BIND | NUMA_BALANCING		else.  Where the node is full, a page that has to come in
 *					under it kills the process or a bystander.  So no page
 *					does: it ends before pages of the chunk come in or go
 *					(observe_enter), and before fork.  And it lasts only while
 *					the node has more than twice to spare of what is observed
 *					there, for what we are not told of (a raw fork, swap).
 *
 * NUMASLAB_PLACEMENT=observe asks for a sample for good, another process for a while (struct
 * ring_control); the latter holds alone while it lasts.  Policies change in observe_step() alone,
 * a bounded number at a time, but for those that have to go at once.
 */

#include "allocator/topology.h"

enum observe_how { OBSERVE_NONE, OBSERVE_PREFERRED, OBSERVE_BIND, OBSERVE_REFUSED };

#define OBSERVE_CHUNK	   ((size_t)2 << 20)
#define OBSERVE_SAMPLE_MAX 65536u

struct observe {
	bool possible;		  /* several nodes, and a policy of ours on each; set at start */
	_Atomic uint64_t next_ms; /* no step is due before */
};

extern hidden_ struct observe observe;

/* The pools are laid out. */
void observe_init(void);

void observe_step(uint64_t now_ms);
void observe_enter_slow(uintptr_t at, size_t bytes);
void observe_leave_slow(uintptr_t at);
void observe_evict_slow(uintptr_t at, size_t bytes);

/* From slow paths of any thread, no lock held. */
inline_ void observe_tick(uint64_t now_ms)
{
	if (unlikely(now_ms >= atomic_load_explicit(&observe.next_ms, memory_order_relaxed)))
		observe_step(now_ms);
}

/*
 * Around each change of what is populated or mapped of a window: pages come in, or go, and are
 * accounted for (slab.resident).  A pool's lock may be held.
 */
inline_ void observe_enter(const void *at, size_t bytes)
{
	if (unlikely(observe.possible))
		observe_enter_slow((uintptr_t)at, bytes);
}

inline_ void observe_leave(const void *at)
{
	if (unlikely(observe.possible))
		observe_leave_slow((uintptr_t)at);
}

/* The range's memory lies elsewhere now: observed, it would be moved home. */
inline_ void observe_evict(const void *at, size_t bytes)
{
	if (unlikely(observe.possible))
		observe_evict_slow((uintptr_t)at, bytes);
}

/*
 * What another process asks for, sample << 32 | seed with a sample of 1 to OBSERVE_SAMPLE_MAX,
 * until end_ms; 0: nothing.  Any number is safe.  No lock held.
 */
void observe_ask(uint64_t request, uint64_t end_ms);

struct observe_report {
	uint64_t request; /* being carried out for another process; 0: none */
	uint64_t bytes;	  /* of the chunks under observation, populated or not */
	enum observe_how how;
};

void observe_look(struct observe_report *to);

/* The program gives slab memory a policy of its own: nothing is observed any more. */
void observe_bar(const void *at);

/* No policy can be set any more (a seccomp filter is about to come). */
void observe_end(void);

/* All pools' locks are held, and stay so until either of the others. */
void observe_fork_prepare(void);
void observe_fork_parent(void);
void observe_fork_child(void);

#endif
