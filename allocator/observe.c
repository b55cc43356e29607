/* SPDX-License-Identifier: MIT */
#include "allocator/observed.h"

#include <errno.h>
#include <numaif.h>

#define POLICY_MANY (5 /* MPOL_PREFERRED_MANY */ | 1 << 13 /* MPOL_F_NUMA_BALANCING */)
#define POLICY_BIND (MPOL_BIND | 1 << 13)

#define STEP_MS	  100u	 /* between two steps, or NUMASLAB_TICK_MS if that is less */
#define PASS_MS	  1000u	 /* between two passes over all chunks, when nothing is new */
#define ROTATE_MS 60000u /* after which the permanent sample is another one */
#define RUNS_MAX  8192u	 /* two mappings each, of the 65530 that a process may have by default */

/* What one step may do. */
#define SETS_MAX   64
#define DROPS_MAX  256
#define LOOKS_MAX  256
#define VISITS_MAX 16384

struct budget {
	int sets, drops, looks, visits;
};

/* --- Which chunks. --- */

/* The finalizer of splitmix64 (Steele, Lea, Flood, OOPSLA 2014). */
static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

static bool is_chosen(uint64_t request, unsigned i, size_t chunk)
{
	uint64_t number = (((uint64_t)i << layout.window_shift) / OBSERVE_CHUNK) + chunk;
	uint64_t salt = mix((uint32_t)request + 0x9e3779b97f4a7c15u);

	return mix(salt ^ number) % (request >> 32) == 0;
}

#define peek(p) __atomic_load_n(p, __ATOMIC_RELAXED)

/* It has memory, of this node alone: what lies elsewhere would be moved home. */
static bool chunk_is_fit(unsigned i, size_t chunk)
{
	const struct slab *s = pools[i].window.first + chunk * CHUNK_UNITS;
	bool some = false;

	for (size_t u = 0; u < CHUNK_UNITS; u++, s++) {
		if (!peek(&s->resident))
			continue;
		if (slab_node(s) != i)
			return false;
		some = true;
	}
	return some;
}

/* Chunks whose double is free on the node, above a margin for the kernel's watermarks. */
static size_t room_of(unsigned i)
{
	struct observed *o = &observed[i];
	uint64_t total, free;

	if (!o->room_known) {
		bool told = topology_memory(i, &total, &free) && free > total / 32;

		o->room = told ? (free - total / 32 - 1) / (2 * OBSERVE_CHUNK) : 0;
		o->room_known = true;
	}
	return o->room;
}

/* --- A step. --- */

/* Which of both the kernel takes, tried on a page of its own. */
static void find_how(void)
{
	void *page = os_map(os_page_size);
	int node = pools[0].window.node, r;

	if (!page)
		return;
	r = os_set_policy(page, os_page_size, POLICY_MANY, node);
	if (r == 0)
		observe_put(how, OBSERVE_PREFERRED);
	else if (r == -EINVAL && os_set_policy(page, os_page_size, POLICY_BIND, node) == 0)
		observe_put(how, OBSERVE_BIND);
	os_unmap(page, os_page_size);
}

static void observe_chunk(unsigned i, size_t chunk, struct budget *b)
{
	bool bound = observe_get(how) == OBSERVE_BIND;

	if (observed_joined(i, chunk) > 0 && observe_state.runs >= RUNS_MAX)
		return;
	if (bound && observed[i].count >= room_of(i)) {
		observe_put(no_room, true);
		return;
	}
	observed_set(i, chunk);
	/* Who changes something from now on sees the bit; the look before it does not count. */
	if ((bound && !observed_is_quiet(i)) || !chunk_is_fit(i, chunk)) {
		observed_clear(i, chunk);
		return;
	}
	b->sets--;
	int r = os_set_policy((void *)observed_addr(i, chunk), OBSERVE_CHUNK,
			      bound ? POLICY_BIND : POLICY_MANY, pools[i].window.node);
	if (r == 0)
		return;
	observed_clear(i, chunk);
	if (r != -EFAULT) /* a hole, where memory is unmapped */
		observe_put(refused, true);
}

static void visit(unsigned i, size_t chunk, struct budget *b)
{
	uint64_t request = observe_get(refused) ? 0 : observe_get(request);
	bool want = request && is_chosen(request, i, chunk), has = observed_has(i, chunk);

	b->visits--;
	if (want) {
		b->looks--;
		want = chunk_is_fit(i, chunk);
	}
	if (want && !has)
		observe_chunk(i, chunk, b);
	else if (!want && has)
		b->drops -= (int)observed_drop(i, chunk, chunk + 1);
}

/* Goes on with the pass; true: it is done. */
static bool walk(struct observe_state *s)
{
	struct budget b = {SETS_MAX, DROPS_MAX, LOOKS_MAX, VISITS_MAX};

	for (; s->at_window < topology.count; s->at_window++, s->at_chunk = 0) {
		unsigned i = s->at_window;
		size_t n = observed_chunks(i);

		if ((!observe_get(request) || !observed_ready(i)) && !observed[i].count)
			continue;
		for (; s->at_chunk < n; s->at_chunk++) {
			if (b.sets <= 0 || b.drops <= 0 || b.looks <= 0 || b.visits <= 0)
				return false;
			visit(i, s->at_chunk, &b);
		}
	}
	s->at_window = 0;
	return true;
}

/* BIND: where others took the node's memory meanwhile, it ends at once. */
static void keep_room(void)
{
	for (unsigned i = 0; i < topology.count; i++) {
		observed[i].room_known = false;
		if (observed[i].count && observed[i].count > room_of(i))
			observed_drop_window(i);
	}
}

static uint64_t request_now(uint64_t now_ms)
{
	uint64_t asked = observe_get(asked);
	bool leased = asked && now_ms < observe_get(end_ms);

	observe_put(leased, leased);
	if (leased || tunables.placement != PLACEMENT_OBSERVE || !tunables.observe)
		return leased ? asked : 0;
	return tunables.observe << 32 | (uint32_t)(now_ms / ROTATE_MS);
}

static void begin(struct observe_state *s, uint64_t request)
{
	observe_put(request, request);
	observe_put(refused, observe_get(barred));
	observe_put(no_room, false);
	s->at_window = 0;
	s->at_chunk = 0;
	s->pass_ms = 0;
	if (!observe.possible || topology.silent || !request)
		return;
	if (observe_get(how) == OBSERVE_NONE)
		find_how();
	if (observe_get(how) == OBSERVE_NONE)
		observe_put(refused, true);
}

static uint64_t step(struct observe_state *s, uint64_t now_ms)
{
	uint64_t request = request_now(now_ms);

	if (request != observe_get(request))
		begin(s, request);
	bool first = s->at_window == 0 && s->at_chunk == 0;

	if (!observe.possible || topology.silent) {
		observe_put(refused, topology.silent);
		observed_drop_all();
		return UINT64_MAX;
	}
	if (observe_get(how) == OBSERVE_BIND)
		keep_room();
	if (!first || now_ms >= s->pass_ms || observe_get(refused)) {
		if (first)
			observe_put(no_room, false);
		if (walk(s))
			s->pass_ms = now_ms + PASS_MS;
	}
	if (!request && !observe_get(chunks))
		return UINT64_MAX;
	return now_ms + min_size(tunables.tick_ms, STEP_MS);
}

cold void observe_step(uint64_t now_ms)
{
	struct observe_state *s = &observe_state;

	if (!lock_try(&s->lock))
		return;
	if (now_ms >= atomic_load_explicit(&observe.next_ms, memory_order_relaxed))
		atomic_store_explicit(&observe.next_ms, step(s, now_ms), memory_order_relaxed);
	lock_release(&s->lock);
}

/* --- Who asks. --- */

void observe_init(void)
{
	observe.possible = topology.count > 1 && pools[0].window.policy >= 0;
	if (observe.possible && tunables.placement == PLACEMENT_OBSERVE && tunables.observe)
		atomic_store_explicit(&observe.next_ms, 0, memory_order_relaxed);
}

void observe_ask(uint64_t request, uint64_t end_ms)
{
	uint64_t sample = request >> 32;

	if (sample == 0 || sample > OBSERVE_SAMPLE_MAX)
		request = 0;
	observe_put(end_ms, end_ms);
	/* Said again each time: a step at the same time may have put off the next one for good. */
	if (atomic_exchange_explicit(&observe_state.asked, request, memory_order_relaxed) ||
	    request)
		atomic_store_explicit(&observe.next_ms, 0, memory_order_relaxed);
}

void observe_look(struct observe_report *to)
{
	uint64_t request = observe_get(request);
	size_t chunks = observe_get(chunks);

	to->request = observe_get(leased) ? request : 0;
	to->bytes = chunks * OBSERVE_CHUNK;
	to->how = !request ? OBSERVE_NONE : (enum observe_how)observe_get(how);
	if (request && (observe_get(refused) || (observe_get(no_room) && !chunks)))
		to->how = OBSERVE_REFUSED;
}
