/* SPDX-License-Identifier: MIT */
#include "allocator/node.h"

/*
 * FULL slabs wait for a few frees of others before they are listed (slab.h).  Where memory has run
 * out what waits is wanted: each of them goes to its node's list.
 *
 * They are on no list, so all units are looked at: once a node has run out, and then not again for
 * a while, as what is freed from there on does not wait (pools_are_scarce()).
 */

#define GATHER_MS 1000u

static _Atomic uint64_t next_ms;

/*
 * Whatever the unit is by now: .remote is FULL only of a slab, that nobody owns, and who turns it
 * OWNED has it.  Acquires what its last owner left, as any claim does.
 */
static bool gather_slab(struct slab *s)
{
	uint64_t word = atomic_load_explicit(&s->remote, memory_order_relaxed);

	if (remote_state(word) != SLAB_FULL || remote_count(word) == 0 || !slab_claim_full(s))
		return false;
	pool_list_slab(s, COUNT_full);
	return true;
}

bool pools_gather(void)
{
	bool any = false;

	for (unsigned i = 0; i < topology.count; i++) {
		const struct window *w = &pools[i].window;
		size_t top = atomic_load_explicit(&w->top, memory_order_acquire);

		for (size_t u = 0; u < top; u++)
			any |= gather_slab(w->first + u);
	}
	return any;
}

bool pools_gather_due(void)
{
	uint64_t now = os_now_ms(), next = atomic_load_explicit(&next_ms, memory_order_relaxed);

	return pools_are_scarce() && now >= next &&
	       atomic_compare_exchange_strong_explicit(
		   &next_ms, &next, now + GATHER_MS, memory_order_relaxed, memory_order_relaxed) &&
	       pools_gather();
}
