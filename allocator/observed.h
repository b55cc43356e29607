/* SPDX-License-Identifier: MIT */
#ifndef NUMASLAB_OBSERVED_H
#define NUMASLAB_OBSERVED_H

/* Inside observation: which chunks have the policy (observed.c); who gives it to them is observe.c.
 */

#include "allocator/node.h"
#include "allocator/observe.h"

/*
 * Of each node's window.  A change of memory counts itself in .entered, then looks at the chunk's
 * bit; a step sets the bit, then looks whether .entered equals .left.  So either the change sees
 * the bit and ends the observation first (waiting for the lock, under which the policy is set), or
 * the step sees that a change is under way and refrains.
 */
struct observed {
	_Atomic uint64_t entered, left;
	_Atomic uint64_t
	    *_Atomic map; /* a bit for each chunk that has the policy; NULL: none yet */
	/* Under the lock. */
	size_t count;	 /* bits set */
	size_t room;	 /* BIND: chunks that the node has room for */
	bool room_known; /* in this step */
} cache_aligned;

struct observe_state {
	struct lock lock; /* the last of all that are taken; held for mbind, and to ask for room */
	_Atomic uint64_t asked, end_ms; /* by another process */
	_Atomic uint64_t request;	/* carried out: sample << 32 | seed; 0: none */
	_Atomic bool leased;		/* it is that other process's */
	_Atomic uint32_t how;		/* NONE: not yet tried; else for good */
	_Atomic bool refused;		/* this request */
	_Atomic bool no_room;		/* for some chunk of this pass */
	_Atomic bool barred;
	_Atomic size_t chunks;
	size_t runs; /* of neighbours under observation: two mappings each */
	unsigned at_window;
	size_t at_chunk; /* where the pass goes on */
	uint64_t pass_ms;
};

extern hidden_ struct observed observed[NODE_MAX];
extern hidden_ struct observe_state observe_state;

#define observe_get(field) atomic_load_explicit(&observe_state.field, memory_order_relaxed)
#define observe_put(field, value)                                                                  \
	atomic_store_explicit(&observe_state.field, value, memory_order_relaxed)

#define CHUNK_UNITS ((size_t)(OBSERVE_CHUNK >> UNIT_SHIFT))

/* Chunks of a window that were ever used; where one lies. */
size_t observed_chunks(unsigned i);
uintptr_t observed_addr(unsigned i, size_t chunk);

bool observed_has(unsigned i, size_t chunk);

/* All below under the lock.  False: no memory for the window's bits. */
bool observed_ready(unsigned i);

/* Mappings more, halved, when the chunk joins its neighbours. */
int observed_joined(unsigned i, size_t chunk);
void observed_set(unsigned i, size_t chunk);
void observed_clear(unsigned i, size_t chunk);

/* No change of memory in the window is under way, and the next one will see the bits. */
bool observed_is_quiet(unsigned i);

/* Chunks from .. to - 1 have the window's own policy again; how many calls it took. */
size_t observed_drop(unsigned i, size_t from, size_t to);
void observed_drop_window(unsigned i);
void observed_drop_all(void);

#endif
