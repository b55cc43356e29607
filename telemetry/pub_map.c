/* SPDX-License-Identifier: MIT */
#include "telemetry/pub.h"

#include "allocator/node.h"

/*
 * The slab map.  The truth is the descriptors; a word is what they say of a unit.  Its place comes
 * from a private directory: what other processes can write decides no address of ours.
 *
 * A place is given to 512 units at once, a page of the map, when the first of them has anything
 * to say.  Threads may ask for the same place: the directory's entry is set by one of them, and
 * the other's page waits in .spare.  Nobody waits for anybody.
 */

#define MAP_LOST      UINT32_MAX /* there was no room or memory: not asked again */
#define MAP_PAGES_MAX 65536u	 /* 2 TiB of slabs; a file of 256 MiB, sparse */
#define HINT_GAP      ((uintptr_t)1 << 30)

/* Twice the words that all memory as slabs would need: windows have holes. */
size_t map_pages_wanted(uint64_t ram)
{
	size_t pages =
	    round_up((ram >> UNIT_SHIFT) * 2 / RING_MAP_UNITS, MAP_STEP / MAP_PAGE_BYTES);

	return min_size(max_size(pages, MAP_PAGES_MIN), MAP_PAGES_MAX);
}

/* --- The word. --- */

#define read_field(field) __atomic_load_n(&(field), __ATOMIC_RELAXED)

/* RING_MAP_ACTIVE, _FULL, _PARTIAL for SLAB_OWNED, _FULL, _LISTED: a nibble each. */
#define STATES (RING_MAP_ACTIVE | RING_MAP_FULL << 4 | RING_MAP_PARTIAL << 8)

/* What the word of an OWNED, FULL or LISTED slab is, whose .remote was this. */
inline_ uint64_t slab_word(const struct slab *s, uint64_t remote)
{
	uint64_t w = read_field(s->births);
	uint16_t used = read_field(s->tallied);

	/* Each push onto a LISTED slab was counted as it came (release.c). */
	if (remote_state(remote) == SLAB_LISTED)
		used = (uint16_t)(used - remote_count(remote) + read_field(s->listed));
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

/* --- Pages. --- */

static void note_lost(struct map_writer *m)
{
	atomic_fetch_add_explicit(&m->lost, 1, memory_order_relaxed);
	telemetry_store(&m->file->map_lost, &m->lost);
}

/*
 * The mapping reaches `end`, as far as it can.  Another thread may grow it at the same time: then
 * ours fails, at a length that is not its own any more, and whether the page is there is told by
 * populating it.
 */
static void grow_to(struct map_writer *m, size_t end)
{
	size_t to = round_up(end, MAP_STEP);
	size_t from = atomic_load_explicit(&m->mapped, memory_order_relaxed), known = from;
	size_t seen = from;

	while (m->view && seen < to &&
	       !pub_map_grow(m->view, m->dir_bytes + seen, m->dir_bytes + to))
		seen += MAP_STEP;
	while (from < to && !pub_map_grow(m->words, from, to))
		from += MAP_STEP;
	while (known < to &&
	       !atomic_compare_exchange_weak_explicit(&m->mapped, &known, to, memory_order_relaxed,
						      memory_order_relaxed))
		;
}

/* Number of a page that is nobody's, with memory under it; 0: there is none. */
static uint32_t new_page(struct map_writer *m)
{
	uint32_t page = atomic_exchange_explicit(&m->spare, 0, memory_order_relaxed);

	if (page)
		return page;
	if (atomic_load_explicit(&m->given, memory_order_relaxed) >= m->pages)
		return 0;
	page = atomic_fetch_add_explicit(&m->given, 1, memory_order_relaxed) + 1;
	if (page > m->pages)
		return 0;
	if (page * MAP_PAGE_BYTES > atomic_load_explicit(&m->mapped, memory_order_relaxed))
		grow_to(m, page * MAP_PAGE_BYTES);
	char *at = m->words + (page - 1) * MAP_PAGE_BYTES;
	return pub_populate(at, MAP_PAGE_BYTES) < 0 ? 0 : page;
}

/*
 * Programs in the kernel (eBPF) cannot wait for a page that is not there, and NUMA balancing makes
 * pages of writable mappings inaccessible (6.12 does, 6.1 does not [X]).  Read-only mappings of
 * files it leaves alone, so there is one for them.
 */
static void show_page(const struct map_writer *m, size_t place, uint32_t page)
{
	if (!m->view)
		return;
	pub_populate_view(m->view + place * sizeof *m->shown, sizeof *m->shown);
	pub_populate_view(m->view + m->dir_bytes + (page - 1) * MAP_PAGE_BYTES, MAP_PAGE_BYTES);
}

/* Returns what stands in the directory then. */
cold static uint32_t give_page(struct map_writer *m, size_t place)
{
	uint32_t page = 0, stands = 0;

	if (pub_populate(&m->shown[place], sizeof *m->shown) == 0)
		page = new_page(m);
	if (!page)
		page = MAP_LOST;
	if (!atomic_compare_exchange_strong_explicit(&m->dir[place], &stands, page,
						     memory_order_acq_rel, memory_order_acquire)) {
		if (page != MAP_LOST)
			atomic_store_explicit(&m->spare, page, memory_order_relaxed);
		return stands;
	}
	if (page == MAP_LOST) {
		note_lost(m);
		return page;
	}
	ring_store(&m->shown[place], page);
	show_page(m, place, page);
	return page;
}

/* The unit's word in a page that is one. */
inline_ uint64_t *word_at(const struct map_writer *m, uint32_t page, size_t unit)
{
	return (uint64_t *)(m->words + (page - 1) * MAP_PAGE_BYTES) + unit % RING_MAP_UNITS;
}

inline_ bool is_page(uint32_t page)
{
	return page - 1 < MAP_LOST - 1; /* not 0, nor MAP_LOST */
}

/* NULL: the page is none. */
inline_ uint64_t *word_in(const struct map_writer *m, uint32_t page, size_t unit)
{
	return likely(is_page(page)) ? word_at(m, page, unit) : NULL;
}

cold static uint64_t *new_place(struct map_writer *m, size_t unit, uint32_t page)
{
	return page == 0 ? word_in(m, give_page(m, unit / RING_MAP_UNITS), unit) : NULL;
}

inline_ size_t unit_of(const struct slab *s)
{
	return ((uintptr_t)s - layout.table) >> SLAB_DESC_SHIFT;
}

/* Where the unit is in the map: a page, 0 (none yet) or MAP_LOST. */
inline_ uint32_t page_of(const struct map_writer *m, size_t unit)
{
	return atomic_load_explicit(&m->dir[unit / RING_MAP_UNITS], memory_order_acquire);
}

/* Where the unit's word is, given a place if it is not 0; NULL: nowhere. */
inline_ uint64_t *word_place(struct map_writer *m, size_t unit, bool zero)
{
	uint32_t page = page_of(m, unit);
	uint64_t *to = word_in(m, page, unit);

	return likely(to != NULL) ? to : zero ? NULL : new_place(m, unit, page);
}

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
	uint32_t page = page_of(m, unit);
	uint64_t remote = read_remote(s);

	if (likely(remote_state(remote) != SLAB_OWNED && read_field(s->part) == UNIT_FIRST &&
		   unit < m->large_from && is_page(page))) {
		ring_store(word_at(m, page, unit), slab_word(s, remote));
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
	uint32_t page = likely(m != NULL) ? page_of(m, unit) : 0;
	uint64_t remote = read_remote(s);

	if (likely(remote_state(remote) == SLAB_LISTED && read_field(s->part) == UNIT_FIRST &&
		   is_page(page))) {
		uint64_t used = atomic_load_explicit(&truth[COUNT_used], memory_order_relaxed);

		ring_store(&row[COUNT_used], used);
		ring_store(word_at(m, page, unit), slab_word(s, remote));
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
noinline_ void telemetry_store_used(uint64_t *row, const _Atomic uint64_t *truth,
				    const struct slab *s)
{
	struct map_writer *m = telemetry_mapped();
	size_t unit = unit_of(s);
	uint32_t page = likely(m != NULL) ? page_of(m, unit) : 0;

	if (likely(is_page(page))) {
		uint64_t used = atomic_load_explicit(&truth[COUNT_used], memory_order_relaxed);
		uint64_t cached = atomic_load_explicit(&truth[COUNT_cached], memory_order_relaxed);

		store_used(word_at(m, page, unit), s->tallied);
		ring_store(&row[COUNT_used], used);
		ring_store(&row[COUNT_cached], cached);
		if (!alone())
			cmm_smp_mb();
		if (likely(atomic_load_explicit(&truth[COUNT_used], memory_order_relaxed) == used &&
			   atomic_load_explicit(&truth[COUNT_cached], memory_order_relaxed) ==
			       cached))
			return;
	}
	store_used_slowly(row, truth, s);
}

/* --- Beginning. --- */

bool map_prepare(struct map_writer *m)
{
	size_t count = (layout.span >> UNIT_SHIFT) / RING_MAP_UNITS;
	size_t bytes = round_up(count * sizeof *m->dir, os_page_size);
	void *at = pub_map_private(bytes);

	if (!at)
		return false;
	if (pub_dont_fork(at, bytes) < 0) {
		pub_unmap(at, bytes);
		return false;
	}
	m->dir = at;
	m->dir_count = count;
	m->large_from = (size_t)topology.count << (layout.window_shift - UNIT_SHIFT);
	return true;
}

/* Behind the windows is room to grow; where there is none, all of it is mapped at once. */
static char *map_growing(void *map(int, uint64_t, size_t, uintptr_t), int fd, uint64_t offset,
			 size_t *bytes, size_t most, uintptr_t hint)
{
	char *at = map(fd, offset, *bytes, hint);

	if (at && (uintptr_t)at != hint) {
		pub_unmap(at, *bytes);
		*bytes = most;
		at = map(fd, offset, most, 0);
	}
	if (at && pub_dont_fork(at, *bytes) < 0) {
		pub_unmap(at, *bytes);
		at = NULL;
	}
	return at;
}

void map_attach(struct map_writer *m, int fd, uint64_t dir, uint64_t map, size_t pages)
{
	uintptr_t hint = round_down(layout.base + layout.span + HINT_GAP, HINT_GAP);
	size_t bytes = MAP_STEP, all = pages * MAP_PAGE_BYTES;

	m->words = map_growing(pub_map_part, fd, map, &bytes, all, hint);
	m->mapped = bytes;
	m->pages = pages;
	m->dir_bytes = map - dir;
	bytes += m->dir_bytes;
	m->view = m->words ? map_growing(pub_map_view, fd, dir, &bytes, m->dir_bytes + all,
					 hint + HINT_GAP)
			   : NULL;
}

void map_show(struct map_writer *m, struct ring_header *h, uint64_t dir)
{
	m->file = h;
	m->shown = (uint32_t *)((char *)h + dir);
	h->base = layout.base;
	h->span = layout.span;
	h->map_at = (uintptr_t)(m->view ? m->view + m->dir_bytes : m->words);
	h->dir_at = (uintptr_t)(m->view ? (void *)m->view : m->shown);
	h->window_shift = layout.window_shift;
	h->window_count = layout.window_count;
}

void map_drop(struct map_writer *m)
{
	if (m->dir)
		pub_unmap((void *)m->dir, round_up(m->dir_count * sizeof *m->dir, os_page_size));
	m->dir = NULL;
}

void map_walk(struct map_writer *m)
{
	for (unsigned i = 0; i <= topology.count; i++) {
		const struct window *w = &pools[i].window;
		size_t top = atomic_load_explicit(&w->top, memory_order_acquire);

		for (size_t u = 0; u < top; u++)
			telemetry_map_store(m, w->first + u);
	}
}
