/* SPDX-License-Identifier: MIT */
#include "allocator/observed.h"

#define QUIET_TRIES 64

struct observe observe = {.next_ms = UINT64_MAX};
struct observed observed[NODE_MAX];
struct observe_state observe_state;

/* --- The bits. --- */

size_t observed_chunks(unsigned i)
{
	size_t top = atomic_load_explicit(&pools[i].window.top, memory_order_acquire);

	return (top + CHUNK_UNITS - 1) / CHUNK_UNITS;
}

uintptr_t observed_addr(unsigned i, size_t chunk)
{
	return layout.base + ((uintptr_t)i << layout.window_shift) + chunk * OBSERVE_CHUNK;
}

/* Of a whole window. */
static size_t chunks_max(void)
{
	return ((size_t)1 << layout.window_shift) / OBSERVE_CHUNK;
}

static _Atomic uint64_t *map_of(unsigned i)
{
	return atomic_load_explicit(&observed[i].map, memory_order_acquire);
}

bool observed_ready(unsigned i)
{
	if (!map_of(i))
		atomic_store_explicit(&observed[i].map,
				      os_map(round_up((chunks_max() + 7) / 8, os_page_size)),
				      memory_order_release);
	return map_of(i) != NULL;
}

bool observed_has(unsigned i, size_t chunk)
{
	_Atomic uint64_t *map = map_of(i);

	return map && atomic_load(&map[chunk / 64]) >> chunk % 64 & 1;
}

int observed_joined(unsigned i, size_t chunk)
{
	bool before = chunk > 0 && observed_has(i, chunk - 1);
	bool after = chunk + 1 < chunks_max() && observed_has(i, chunk + 1);

	return 1 - before - after;
}

void observed_set(unsigned i, size_t chunk)
{
	observe_state.runs += (size_t)observed_joined(i, chunk);
	observed[i].count++;
	observe_put(chunks, observe_get(chunks) + 1);
	atomic_fetch_or(&map_of(i)[chunk / 64], (uint64_t)1 << chunk % 64);
}

void observed_clear(unsigned i, size_t chunk)
{
	atomic_fetch_and(&map_of(i)[chunk / 64], ~((uint64_t)1 << chunk % 64));
	observe_put(chunks, observe_get(chunks) - 1);
	observed[i].count--;
	observe_state.runs -= (size_t)observed_joined(i, chunk);
}

/* --- Ending it. --- */

/* The window's own policy, of a range that may have holes (mem.unmap). */
static void reset_policy(const struct window *w, uintptr_t at, size_t bytes)
{
	if (os_set_policy((void *)at, bytes, w->policy, w->node) == 0)
		return;
	for (size_t i = 0; i < bytes; i += UNIT_SIZE)
		os_set_policy((void *)(at + i), UNIT_SIZE, w->policy, w->node);
}

size_t observed_drop(unsigned i, size_t from, size_t to)
{
	size_t calls = 0;

	for (size_t at = from; at < to && observed[i].count; at++) {
		size_t first = at;

		while (at < to && observed_has(i, at))
			at++;
		if (at == first)
			continue;
		if (!topology.silent)
			reset_policy(&pools[i].window, observed_addr(i, first),
				     (at - first) * OBSERVE_CHUNK);
		while (first < at)
			observed_clear(i, first++);
		calls++;
	}
	return calls;
}

void observed_drop_window(unsigned i)
{
	observed_drop(i, 0, observed_chunks(i));
}

void observed_drop_all(void)
{
	for (unsigned i = 0; i < topology.count; i++)
		observed_drop_window(i);
}

/* --- Changes of memory. --- */

static bool has_any(unsigned i, size_t from, size_t to)
{
	while (from < to && !observed_has(i, from))
		from++;
	return from < to;
}

/* The chunks that a range of addresses touches. */
static void drop_touched(unsigned i, uintptr_t at, size_t bytes)
{
	uintptr_t offset = at - observed_addr(i, 0);
	size_t from = offset / OBSERVE_CHUNK;
	size_t to = (offset + bytes + OBSERVE_CHUNK - 1) / OBSERVE_CHUNK;

	if (!map_of(i) || !has_any(i, from, to))
		return;
	lock_take(&observe_state.lock);
	observed_drop(i, from, to);
	lock_release(&observe_state.lock);
}

void observe_enter_slow(uintptr_t at, size_t bytes)
{
	unsigned i = layout_window_of(&layout, at);

	if (i >= topology.count)
		return;
	atomic_fetch_add(&observed[i].entered, 1);
	/* Under PREFERRED_MANY pages may come and go; what is unmapped loses any policy. */
	if (observe_get(how) != OBSERVE_PREFERRED || mem_unmaps())
		drop_touched(i, at, bytes);
}

void observe_leave_slow(uintptr_t at)
{
	unsigned i = layout_window_of(&layout, at);

	if (i < topology.count)
		atomic_fetch_add(&observed[i].left, 1);
}

void observe_evict_slow(uintptr_t at, size_t bytes)
{
	unsigned i = layout_window_of(&layout, at);

	atomic_thread_fence(
	    memory_order_seq_cst); /* slab.node before the bit, as observe_enter() */
	if (i < topology.count)
		drop_touched(i, at, bytes);
}

bool observed_is_quiet(unsigned i)
{
	for (int tries = QUIET_TRIES; tries > 0; tries--) {
		uint64_t left = atomic_load(&observed[i].left);

		if (atomic_load(&observed[i].entered) == left)
			return true;
	}
	return false;
}

/* --- Ends of it. --- */

static void bar(void)
{
	lock_take(&observe_state.lock);
	observe_put(barred, true);
	observe_put(refused, true);
	observed_drop_all();
	lock_release(&observe_state.lock);
}

void observe_bar(const void *at)
{
	if (observe.possible && layout_owns(&layout, (uintptr_t)at) &&
	    layout_window_of(&layout, (uintptr_t)at) < topology.count)
		bar();
}

void observe_end(void)
{
	if (observe.possible)
		bar();
}

/* A child shares its pages with us until one of both writes: pages come in. */
void observe_fork_prepare(void)
{
	lock_take(&observe_state.lock);
	if (observe_get(how) == OBSERVE_BIND)
		observed_drop_all();
}

void observe_fork_parent(void)
{
	lock_release(&observe_state.lock);
}

/* Policies are inherited, and so are the bits; who asked has no say in the child. */
void observe_fork_child(void)
{
	lock_reset(&observe_state.lock);
	observe_put(asked, 0);
	if (observe_get(request))
		atomic_store_explicit(&observe.next_ms, 0, memory_order_relaxed);
	for (unsigned i = 0; i < topology.count; i++)
		atomic_store(&observed[i].left, atomic_load(&observed[i].entered));
}
