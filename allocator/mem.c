/* SPDX-License-Identifier: MIT */
#include "allocator/mem.h"
#include "allocator/alone.h"
#include "allocator/observe.h"
#include "allocator/sim.h"

#include <errno.h>

#define REGRET_MS 1000u

struct mem mem;

void mem_grow(size_t bytes)
{
	size_t held = atomic_fetch_add_explicit(&mem.held, bytes, memory_order_relaxed) + bytes;
	size_t peak = atomic_load_explicit(&mem.peak, memory_order_relaxed);

	while (held > peak &&
	       !atomic_compare_exchange_weak_explicit(&mem.peak, &peak, held, memory_order_relaxed,
						      memory_order_relaxed))
		;
}

void mem_shrink(size_t bytes)
{
	count_add(&mem.held, -bytes);
}

/* The extra ends a second after the last regret: the cycle is over, or slow enough to pay. */
static size_t extra_now(void)
{
	size_t extra = atomic_load_explicit(&mem.extra, memory_order_relaxed);

	if (extra == 0)
		return 0;
	uint64_t since = os_now_ms() - atomic_load_explicit(&mem.regret_ms, memory_order_relaxed);
	return since > REGRET_MS ? 0 : extra;
}

size_t mem_allowance(void)
{
	size_t peak = atomic_load_explicit(&mem.peak, memory_order_relaxed);
	size_t allowed = max_size(RETAIN_FLOOR, peak / 128) + extra_now();
	size_t kept = atomic_load_explicit(&mem.kept, memory_order_relaxed);

	return allowed > kept ? allowed - kept : 0;
}

void mem_regret(size_t bytes)
{
	size_t extra = min_size(extra_now() + bytes, (size_t)tunables.retain);

	atomic_store_explicit(&mem.extra, extra, memory_order_relaxed);
	atomic_store_explicit(&mem.regret_ms, os_now_ms(), memory_order_relaxed);
}

void mem_learn_commit(void)
{
	char mode = 0;

	if (os_read_file("/proc/sys/vm/overcommit_memory", &mode, 1) == 1 && mode == '2')
		atomic_store_explicit(&mem.unmap, true, memory_order_relaxed);
}

bool mem_give_back(void *at, size_t bytes)
{
	return mem_unmaps() ? os_unmap(at, bytes) : os_discard(at, bytes);
}

static void touch(char *at, size_t bytes)
{
	for (size_t i = 0; i < bytes; i += os_page_size)
		*(volatile char *)(at + i) = 0;
}

/* Nobody will ask; the kernel decides on touch, and that is where it is. */
static bool landing_unknown(void)
{
	return topology.count == 1 && !topology.simulated;
}

static int landing_of(const char *at)
{
	int node = os_page_node(at);

	if (node < 0) {
		/* Refused from now on (a seccomp filter came): first touch, unverified. */
		if (node == -EPERM || node == -ENOSYS || node == -EACCES)
			topology.silent = true;
		return -1;
	}
	return node < (int)OS_NODE_BITS ? topology.home[node] : -1;
}

int mem_look_again(const void *block)
{
	if (topology.count == 1 || topology.simulated || topology.silent)
		return -1;
	return landing_of(block);
}

static int land_sim(char *at, size_t bytes, unsigned want, bool strict)
{
	int landed = sim_land(want, bytes);

	if (landed < 0 || (strict && landed != (int)want)) {
		if (landed >= 0)
			sim_leave((unsigned)landed, bytes);
		os_discard(at, bytes);
		return -1;
	}
	return landed;
}

/* Where pages just populated are; moved home, or given back, as `strict` asks. */
static int land(char *at, size_t bytes, unsigned want, bool strict)
{
	if (topology.simulated)
		return land_sim(at, bytes, want, strict);
	if (topology.silent)
		return (int)want;
	int first = landing_of(at);
	int last = bytes > os_page_size ? landing_of(at + bytes - os_page_size) : first;

	if (topology.silent || (first == (int)want && last == (int)want))
		return (int)want;
	if (topology.follow || tunables.placement == PLACEMENT_KERNEL)
		return first < 0 ? (int)want : first;
	/* Not exhaustion yet: move_pages reclaims where populating fell back (see design). */
	if (os_move_pages(at, bytes, topology.number[want]) == 0)
		return (int)want;
	if (strict) {
		os_discard(at, bytes);
		return -1;
	}
	if (first == (int)want) /* over two nodes: filed as the part that is elsewhere */
		first = last;
	return first < 0 ? (int)want : first;
}

static int bring_range(char *at, size_t bytes, unsigned want, bool strict)
{
	int r = os_populate(at, bytes);

	if (r == -ENOMEM || r == -EFAULT || r == -EHWPOISON) {
		os_discard(at, bytes); /* the kernel leaves what it had brought */
		return -1;
	}
	if (r < 0)
		touch(at, bytes);
	return landing_unknown() ? (int)want : land(at, bytes, want, strict);
}

/* The low bits of a unit's mask for its first `bytes`. */
static uint16_t prefix_mask(size_t bytes)
{
	size_t page = max_size(GRANULE, os_page_size);
	size_t n = round_up(min_size(bytes, UNIT_SIZE), page) / GRANULE;

	return (uint16_t)((1u << n) - 1);
}

int mem_bring_mask(struct slab *s, uint16_t mask, unsigned want, bool strict)
{
	char *addr = (char *)slab_addr(s);
	int landed = s->resident ? s->node : -1;

	mask &= (uint16_t)~s->resident;
	while (mask) {
		unsigned lo = (unsigned)__builtin_ctz(mask);
		unsigned n = (unsigned)__builtin_ctz(~((unsigned)mask >> lo));
		uint16_t run = (uint16_t)(((1u << n) - 1) << lo);
		observe_enter(addr, UNIT_SIZE);
		int there = bring_range(addr + lo * GRANULE, n * GRANULE, want, strict);

		if (there >= 0)
			slab_write(s->resident, (uint16_t)(s->resident | run));
		if (there >= 0 && s->resident == UINT16_MAX)
			huge_filled(s);
		observe_leave(addr);
		if (there < 0)
			return -1;
		mask &= (uint16_t)~run;
		landed = there;
		mem_grow(n * GRANULE);
	}
	return landed < 0 ? (int)want : landed;
}

int mem_bring(struct slab *s, size_t bytes, unsigned want, bool strict)
{
	int landed = (int)want;

	for (unsigned i = 0; i < s->units && ((size_t)i << UNIT_SHIFT) < bytes; i++) {
		struct slab *unit = s + i;
		bool empty = unit->resident == 0;
		int r = mem_bring_mask(unit, prefix_mask(bytes - ((size_t)i << UNIT_SHIFT)), want,
				       strict);

		if (r < 0)
			return -1;
		if (i > 0 && empty)
			slab_set_node(unit, (unsigned)r);
		landed = r;
	}
	return landed;
}

size_t mem_resident(const struct slab *s)
{
	size_t granules = 0;

	for (unsigned i = 0; i < s->units; i++)
		granules += (size_t)__builtin_popcount(s[i].resident);
	return granules * GRANULE;
}

/* Granules of one unit, which lay where the unit was brought in. */
static void account_gone(const struct slab *unit, size_t bytes)
{
	mem_shrink(bytes);
	/* Large blocks are first-touch: the simulation has no say in them. */
	if (topology.simulated && layout_window_of(&layout, slab_addr(unit)) < topology.count)
		sim_leave(slab_node(unit), bytes);
}

/* The large window counts what it cannot know as resident; its pages are the system's affair. */
static void huge_leave(const struct slab *s)
{
	if (layout_window_of(&layout, slab_addr(s)) == topology.count)
		return;
	for (unsigned i = 0; i < s->units; i++)
		if (s[i].resident)
			huge_leaves(&s[i], s[i].resident == UINT16_MAX);
}

size_t mem_discard(struct slab *s)
{
	size_t bytes = mem_resident(s);
	void *at = (void *)slab_addr(s);

	if (bytes == 0)
		return 0;
	huge_leave(s);
	observe_enter(at, slab_bytes(s));
	bool gone = mem_give_back(at, slab_bytes(s));
	for (unsigned i = 0; i < s->units && gone; i++) {
		account_gone(&s[i], (size_t)__builtin_popcount(s[i].resident) * GRANULE);
		slab_write(s[i].resident, (uint16_t)0);
	}
	observe_leave(at);
	return gone ? bytes : 0;
}

size_t mem_discard_mask(struct slab *s, uint16_t mask)
{
	void *at = (void *)slab_addr(s);
	size_t bytes = 0;

	mask &= s->resident;
	if (mask)
		huge_leaves(s, s->resident == UINT16_MAX);
	observe_enter(at, UNIT_SIZE);
	while (mask) {
		unsigned lo = (unsigned)__builtin_ctz(mask);
		unsigned n = (unsigned)__builtin_ctz(~((unsigned)mask >> lo));
		uint16_t run = (uint16_t)(((1u << n) - 1) << lo);

		if (!os_discard((char *)at + lo * GRANULE, n * GRANULE))
			break;
		slab_write(s->resident, (uint16_t)(s->resident & ~run));
		mask &= (uint16_t)~run;
		bytes += n * GRANULE;
	}
	account_gone(s, bytes);
	observe_leave(at);
	return bytes;
}
