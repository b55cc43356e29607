/* SPDX-License-Identifier: MIT */
#include "allocator/slab.h"
#include "allocator/alone.h"

/*
 * Barriers: a push releases the block's link and whatever the program wrote; taking the list
 * acquires it.  OWNED -> LISTED releases the owner's plain fields (.free, .left, .extended) to the
 * next owner, who acquires them with LISTED -> OWNED; the node lock would do too, but a FULL slab
 * passes from its last owner to who frees enough, or adopts it, by this word alone.  A pusher reads
 * .node after it has acquired a word, and while that is LISTED nobody files the slab elsewhere: if
 * it is still the word when the push succeeds, that is where its counters are.
 */

static unsigned block_step(const struct slab *s, uintptr_t block)
{
	return (unsigned)((block - slab_addr(s)) >> 4);
}

static uintptr_t step_block(const struct slab *s, unsigned step)
{
	return slab_addr(s) + ((uintptr_t)step << 4);
}

void slab_init(struct slab *s, unsigned cls, unsigned node)
{
	uint64_t word = atomic_load_explicit(&s->remote, memory_order_relaxed);

	slab_write(s->cls, (uint8_t)cls);
	s->size = (uint32_t)class_size(cls);
	s->units = class_slab_units(cls);
	s->capacity = (uint16_t)(slab_bytes(s) / s->size);
	slab_write(s->step, (uint16_t)slab_step(s->capacity));
	s->extended = 0;
	s->left = s->base = 0;
	slab_write(s->tallied, 0);
	s->late = 0;
	s->hidden = 0;
	s->free = slab_end(s);
	slab_set_node(s, node);
	slab_write(s->misplaced, 0);
	s->patience = 0;
	s->idle = 0;
	s->spent = false;
	slab_write(s->last, 0);
	slab_set_state(s, SPAN_SLAB);
	s->next = s->prev = NULL;
	word = remote_turn(remote_taken(word), SLAB_OWNED, 0);
	atomic_store_explicit(&s->remote, word, memory_order_release);
}

uintptr_t slab_take_free(struct slab *s, unsigned *count)
{
	uintptr_t first = s->free;

	if (link_is_end(first))
		return 0;
	*count = s->extended - slab_used(s);
	if (s->hidden)
		*count -= (unsigned)__builtin_popcountll(s->hidden);
	s->free = slab_end(s);
	return first;
}

uintptr_t slab_take_remote(struct slab *s, unsigned *count)
{
	uint64_t w = atomic_load_explicit(&s->remote, memory_order_relaxed);

	do {
		if (remote_count(w) == 0)
			return 0;
	} while (!word_change(&s->remote, &w, remote_taken(w)));
	*count = remote_count(w);
	return step_block(s, remote_first(w));
}

uintptr_t slab_extend(struct slab *s, size_t bytes, unsigned *count)
{
	unsigned until = (unsigned)min_size(bytes / s->size, s->capacity);
	unsigned from = s->extended;

	if (until <= from)
		return 0;
	s->extended = (uint16_t)until;
	*count = until - from;
	return slab_addr(s) + (size_t)from * s->size;
}

void slab_thread(const struct slab *s, uintptr_t first, unsigned count)
{
	uintptr_t at = first;

	for (unsigned i = 1; i < count; i++, at += s->size)
		link_write((void *)at, at + s->size);
	link_write((void *)at, slab_end(s));
}

bool slab_set_full(struct slab *s, bool scarce)
{
	uint64_t w = atomic_load_explicit(&s->remote, memory_order_relaxed);
	/* Few may ever have been out of it: their last one is then enough. */
	unsigned enough = scarce ? 1 : (unsigned)min_size(slab_few(s), slab_used(s));

	while (remote_count(w) < enough)
		if (word_change(&s->remote, &w, remote_turn(w, SLAB_FULL, enough)))
			return true;
	return false;
}

bool slab_claim_full(struct slab *s)
{
	uint64_t w = atomic_load_explicit(&s->remote, memory_order_relaxed);

	while (remote_state(w) == SLAB_FULL)
		if (word_change(&s->remote, &w, remote_turn(w, SLAB_OWNED, 0)))
			return true;
	return false;
}

unsigned slab_push_remote(struct slab *s, void *block, bool scarce, unsigned *node)
{
	unsigned step = block_step(s, (uintptr_t)block);
	unsigned mask = s->step - 1u; /* now: after the push it may be another slab */
	uint64_t w = atomic_load_explicit(&s->remote, memory_order_acquire), to;

	do {
		unsigned first = remote_first(w);

		*node = slab_node(s);

		link_write(block, first == REMOTE_NONE ? slab_end(s) : step_block(s, first));
		to = remote_push(w, step);
		if (remote_state(w) == SLAB_FULL && (scarce || remote_count(to) >= remote_used(w)))
			to = remote_turn(to, SLAB_OWNED, 0);
	} while (!word_change(&s->remote, &w, to));
	if (remote_state(w) != SLAB_LISTED)
		return remote_state(w) != remote_state(to) ? PUSHED_ENOUGH : 0;
	return (remote_count(to) & mask ? 0 : PUSHED_STEP) |
	       (remote_is_empty(to) ? PUSHED_LAST : 0);
}

uint64_t slab_set_listed(struct slab *s)
{
	uint64_t w = atomic_load_explicit(&s->remote, memory_order_relaxed), to;

	do {
		to = remote_turn(w, SLAB_LISTED, slab_used(s));
	} while (!word_change(&s->remote, &w, to));
	return to;
}

void slab_set_owned(struct slab *s)
{
	uint64_t w = atomic_load_explicit(&s->remote, memory_order_relaxed);

	while (!word_change(&s->remote, &w, remote_turn(w, SLAB_OWNED, 0)))
		;
	if (remote_state(w) == SLAB_LISTED)
		slab_write(s->tallied, (uint16_t)(s->tallied - slab_told(s, w)));
}

unsigned slab_list_length(const struct slab *s, uintptr_t first)
{
	unsigned n = 0;

	while (slab_has(s, first) && n < s->extended) {
		n++;
		first = link_read((const void *)first);
	}
	return n;
}

/* Cycles by Brent's way: a mark that is moved on after 1, 2, 4, ... steps. */
bool slab_list_is_sound(const struct slab *s, unsigned expect)
{
	uintptr_t at = s->free, mark = 0;

	for (unsigned n = 0; n < SLAB_LOOK; n++) {
		if (!slab_has(s, at))
			return n == expect && at == slab_end(s);
		if (at == mark || n == expect)
			return false;
		if ((n & (n - 1)) == 0)
			mark = at;
		at = link_read((const void *)at);
	}
	return true;
}
