/* SPDX-License-Identifier: MIT */
#include "telemetry/pub.h"

#include "allocator/node.h"

/*
 * The words of the slab map.  The truth is the descriptors; a word is what they say of a unit.  Its
 * place (pub_pages.c) comes from a private directory: what other processes can write decides no
 * address of ours.
 */

/* --- The word. --- */

#define read_field(field) __atomic_load_n(&(field), __ATOMIC_RELAXED)

/* RING_MAP_ACTIVE, _FULL, _PARTIAL for SLAB_OWNED, _FULL, _LISTED: a nibble each. */
#define STATES (RING_MAP_ACTIVE | RING_MAP_FULL << 4 | RING_MAP_PARTIAL << 8)

/* What the word of an OWNED, FULL or LISTED slab is, whose .remote was this. */
inline_ uint64_t slab_word(const struct slab *s, uint64_t remote)
{
	uint64_t w = read_field(s->births);
	uint16_t used = read_field(s->tallied);

	if (remote_state(remote) == SLAB_LISTED)
		used = (uint16_t)(used - slab_told(s, remote));
	w = w << 16 | used; /* one after the other: fewer instructions */
	w = w << 16 | slab_node(s);
	w = w << 8 | read_field(s->cls);
	return w << 8 | read_field(s->misplaced) << 3 | (STATES >> 4 * remote_state(remote) & 7);
}

/* What was stored before its state (slab.c) is seen with it. */
inline_ uint64_t read_remote(const struct slab *s)
{
	return atomic_load_explicit(&s->remote, memory_order_acquire);
}

static uint64_t other_word(const struct map_writer *m, const struct slab *s, size_t unit)
{
	unsigned part = read_field(s->part), pool = layout_window_of(&layout, slab_addr(s));
	uint64_t births = (uint64_t)read_field(s->births) << 48;

	if (unit >= m->large_from)
		return part == UNIT_FIRST ? (uint64_t)read_field(s->units) << 32 |
						(uint64_t)pool << 16 | RING_MAP_LARGE
					  : 0;
	if (part == UNIT_FIRST) /* by now */
		return slab_word(s, read_remote(s));
	if (part >= UNIT_INNER)
		return births | (uint64_t)(part - UNIT_INNER) << 32 | RING_MAP_INNER;
	return births | (part == UNIT_KEPT ? (uint64_t)pool << 16 | RING_MAP_EMPTY : RING_MAP_FREE);
}

inline_ uint64_t map_word(const struct map_writer *m, const struct slab *s, size_t unit)
{
	return likely(read_field(s->part) == UNIT_FIRST && unit < m->large_from)
		   ? slab_word(s, read_remote(s))
		   : other_word(m, s, unit);
}

/* --- Its place. --- */

inline_ size_t unit_of(const struct slab *s)
{
	return ((uintptr_t)s - layout.table) >> SLAB_DESC_SHIFT;
}

/* The words of the unit's page; NULL: it has none yet; MAP_LOST: none was to be had. */
inline_ uint64_t *page_of(const struct map_writer *m, size_t unit)
{
	return atomic_load_explicit(&m->dir[unit / RING_MAP_UNITS], memory_order_acquire);
}

inline_ bool is_page(const uint64_t *page)
{
	return (uintptr_t)page > (uintptr_t)MAP_LOST;
}

/* Where the unit's word is, given a place if it is not 0; NULL: nowhere. */
inline_ uint64_t *word_place(struct map_writer *m, size_t unit, bool zero)
{
	uint64_t *page = page_of(m, unit);

	if (unlikely(!page && !zero))
		page = map_give_page(m, unit / RING_MAP_UNITS);
	return likely(is_page(page)) ? page + unit % RING_MAP_UNITS : NULL;
}

/* --- Stores. --- */

cold static void store_any(struct map_writer *m, const struct slab *s)
{
	size_t unit = unit_of(s);
	uint64_t word = map_word(m, s, unit), stored;
	uint64_t *to = word_place(m, unit, word == 0);

	if (unlikely(!to))
		return;
	/* As telemetry_store(). */
	do {
		stored = word;
		ring_store(to, stored);
		if (!alone())
			cmm_smp_mb();
		word = map_word(m, s, unit);
	} while (unlikely(word != stored));
}

/*
 * A slab that is FULL or LISTED, as .remote says: as long as .remote is that, its word is.  Whoever
 * changes anything of it changes .remote first, and stores after that (and after a locked
 * instruction).  So looking at .remote again is enough.
 */
noinline_ void telemetry_map_store(struct map_writer *m, const struct slab *s)
{
	size_t unit = unit_of(s);
	uint64_t *page = page_of(m, unit);
	uint64_t remote = read_remote(s);

	if (likely(remote_state(remote) != SLAB_OWNED && read_field(s->part) == UNIT_FIRST &&
		   unit < m->large_from && is_page(page))) {
		ring_store(page + unit % RING_MAP_UNITS, slab_word(s, remote));
		if (!alone())
			cmm_smp_mb();
		if (likely(read_remote(s) == remote))
			return;
	}
	store_any(m, s);
}

/* One after the other. */
cold static void store_pushed_slowly(uint64_t *row, const _Atomic uint64_t *truth,
				     const struct slab *s)
{
	struct map_writer *m = telemetry_mapped();

	telemetry_store(&row[COUNT_used], &truth[COUNT_used]);
	if (m)
		store_any(m, s);
}

/* As telemetry_store() and telemetry_map_store(), with one barrier. */
noinline_ void telemetry_store_pushed(uint64_t *row, const _Atomic uint64_t *truth,
				      const struct slab *s)
{
	struct map_writer *m = telemetry_mapped();
	size_t unit = unit_of(s);
	uint64_t *page = likely(m != NULL) ? page_of(m, unit) : NULL;
	uint64_t remote = read_remote(s);

	if (likely(remote_state(remote) == SLAB_LISTED && read_field(s->part) == UNIT_FIRST &&
		   is_page(page))) {
		uint64_t used = atomic_load_explicit(&truth[COUNT_used], memory_order_relaxed);

		ring_store(&row[COUNT_used], used);
		ring_store(page + unit % RING_MAP_UNITS, slab_word(s, remote));
		if (!alone())
			cmm_smp_mb();
		if (likely(atomic_load_explicit(&truth[COUNT_used], memory_order_relaxed) == used &&
			   read_remote(s) == remote))
			return;
	}
	store_pushed_slowly(row, truth, s);
}

noinline_ void telemetry_map_store_own(struct map_writer *m, const struct slab *s)
{
	size_t unit = unit_of(s);
	uint64_t word = map_word(m, s, unit);
	uint64_t *to = word_place(m, unit, word == 0);

	if (likely(to != NULL))
		ring_store(to, word);
}

/* Bits 32-47 alone: on both machines bytes 4 and 5. */
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "where .used is in a word");

inline_ void store_used(uint64_t *word, uint16_t used)
{
	ring_store((uint16_t *)word + 2, used);
}

cold static void store_used_slowly(uint64_t *row, const _Atomic uint64_t *truth,
				   const struct slab *s)
{
	struct map_writer *m = telemetry_mapped();
	uint64_t *to = m ? word_place(m, unit_of(s), false) : NULL;

	if (to)
		store_used(to, s->tallied);
	telemetry_store_two(row, truth, COUNT_used, COUNT_cached);
}

/* As telemetry_store(); the map's word is the owner's alone. */
inline_ void store_used_and(uint64_t *row, const _Atomic uint64_t *truth, const struct slab *s,
			    bool and_cached)
{
	struct map_writer *m = telemetry_mapped();
	size_t unit = unit_of(s);
	uint64_t *page = likely(m != NULL) ? page_of(m, unit) : NULL;

	if (likely(is_page(page))) {
		uint64_t used = atomic_load_explicit(&truth[COUNT_used], memory_order_relaxed);
		uint64_t cached =
		    and_cached ? atomic_load_explicit(&truth[COUNT_cached], memory_order_relaxed)
			       : 0;

		store_used(page + unit % RING_MAP_UNITS, s->tallied);
		ring_store(&row[COUNT_used], used);
		if (and_cached)
			ring_store(&row[COUNT_cached], cached);
		if (!alone())
			cmm_smp_mb();
		if (likely(atomic_load_explicit(&truth[COUNT_used], memory_order_relaxed) == used &&
			   (!and_cached || atomic_load_explicit(&truth[COUNT_cached],
								memory_order_relaxed) == cached)))
			return;
	}
	store_used_slowly(row, truth, s);
}

noinline_ void telemetry_store_used(uint64_t *row, const _Atomic uint64_t *truth,
				    const struct slab *s)
{
	store_used_and(row, truth, s, false);
}

noinline_ void telemetry_store_bin(uint64_t *row, const _Atomic uint64_t *truth,
				   const struct slab *s)
{
	store_used_and(row, truth, s, true);
}

/* --- Beginning. --- */

void map_walk(struct map_writer *m)
{
	for (unsigned i = 0; i <= topology.count; i++) {
		const struct window *w = &pools[i].window;
		size_t top = atomic_load_explicit(&w->top, memory_order_acquire);

		for (size_t u = 0; u < top; u++)
			telemetry_map_store(m, w->first + u);
	}
}
