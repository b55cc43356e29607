/* SPDX-License-Identifier: MIT */
#include "allocator/node.h"
#include "allocator/observe.h"

#include <numaif.h>

/* How pools, windows and the allocator's own memory are laid out at start. */

#define WINDOW_SHIFT_MAX 40u /* 1 TiB */
#define WINDOW_SHIFT_MIN 26u /* 64 MiB */
#define ALL_WINDOWS_MAX	 ((uint64_t)1 << 45)
#define WINDOWS_LOWEST	 ((uint64_t)32 << 40)
#define WINDOWS_HIGHEST	 ((uint64_t)80 << 40)
#define PLACE_STEP	 ((uint64_t)1 << 30)
#define PLACE_TRIES	 64
#define HUGE_SIZE	 ((size_t)2 << 20)
#define META_CHUNK	 ((size_t)256 << 10)

struct layout layout;
struct pool *pools;

static struct {
	struct lock lock;
	char *at, *end;
} meta;

void *meta_alloc(size_t bytes)
{
	void *p = NULL;

	bytes = round_up(bytes, CACHE_LINE);
	if (bytes >= META_CHUNK / 4)
		return os_map(round_up(bytes, os_page_size));
	lock_take(&meta.lock);
	if ((size_t)(meta.end - meta.at) < bytes) {
		char *chunk = os_map(META_CHUNK);

		if (chunk) {
			meta.at = chunk;
			meta.end = chunk + META_CHUNK;
		}
	}
	if ((size_t)(meta.end - meta.at) >= bytes) {
		p = meta.at;
		meta.at += bytes;
	}
	lock_release(&meta.lock);
	return p;
}

void meta_fork_prepare(void)
{
	lock_take(&meta.lock);
}

void meta_fork_parent(void)
{
	lock_release(&meta.lock);
}

void meta_fork_child(void)
{
	lock_reset(&meta.lock);
}

/* --- Windows. --- */

/*
 * Nothing is reserved: a window is a range of addresses where the kernel places nothing by itself
 * (above what JVMs and Go ask for, below programs and the top-down mappings), and memory is mapped
 * there as the window grows.  So the process looks no larger than it is: limits on address space,
 * mlockall() and core dumps see only what is used.
 */
static void place_windows(unsigned windows, uint64_t random, bool look)
{
	unsigned shift = tunables.window ? log2_floor(tunables.window) : WINDOW_SHIFT_MAX;

	while (shift > WINDOW_SHIFT_MIN && ((uint64_t)windows << shift) > ALL_WINDOWS_MAX)
		shift--;
	size_t span = (size_t)windows << shift;
	size_t table = round_up((span >> UNIT_SHIFT) << SLAB_DESC_SHIFT, HUGE_SIZE);
	uint64_t places = (WINDOWS_HIGHEST - WINDOWS_LOWEST - span - table) / PLACE_STEP;

	for (unsigned tries = 0; tries < PLACE_TRIES; tries++) {
		random = random * 6364136223846793005u + 1442695040888963407u;
		layout.table = WINDOWS_LOWEST + (random >> 33) % places * PLACE_STEP;
		if (!look || os_range_is_free(layout.table, table + span))
			break;
	}
	layout.base = layout.table + table;
	layout.span = span;
	layout.fast_span = tunables.check ? 0 : span;
	layout.window_shift = shift;
	layout.window_count = windows;
}

static void window_init(struct pool *p)
{
	struct window *w = &p->window;
	bool large = p == pool_large();

	w->first = slab_of(layout.base + ((uintptr_t)p->index << layout.window_shift));
	w->units = ((size_t)1 << layout.window_shift) >> UNIT_SHIFT;
	w->no_huge = large ? tunables.thp == THP_NEVER : tunables.thp != THP_ALWAYS;
	w->policy = -1;
	w->node = -1;
	if (!topology.guarded || topology.simulated || topology.follow || topology.silent ||
	    tunables.placement == PLACEMENT_KERNEL)
		return;
	w->policy = large ? MPOL_LOCAL : MPOL_PREFERRED;
	w->node = large ? -1 : topology.number[p->index];
}

cold bool pools_init(uint64_t random, bool look)
{
	static struct pool small[2]; /* one node: no mapping of its own */
	unsigned n = topology.count + 1;

	pools = n <= 2 ? small : os_map(round_up(n * sizeof(struct pool), os_page_size));
	if (!pools)
		return false;
	place_windows(n, random, look);
	for (unsigned i = 0; i < n; i++) {
		pools[i].index = i;
		window_init(&pools[i]);
	}
	observe_init();
	return true;
}

bool pools_reach(uintptr_t addr)
{
	const struct window *w = &pools[layout_window_of(&layout, addr)].window;

	return (size_t)(slab_of(addr) - w->first) <
	       atomic_load_explicit(&w->top, memory_order_acquire);
}
