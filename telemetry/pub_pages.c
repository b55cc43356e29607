/* SPDX-License-Identifier: MIT */
#include "telemetry/pub.h"

#include "allocator/node.h"

/*
 * The pages of the slab map.  A place is given to 512 units at once, a page of the map, when the
 * first of them has anything to say.  Threads may ask for the same place: the directory's entry is
 * set by one of them, and the other's page waits in .spare.  Nobody waits for anybody.
 */

#define MAP_PAGES_MAX 65536u /* 2 TiB of slabs; a file of 256 MiB, sparse */
#define HINT_GAP      ((uintptr_t)1 << 30)
#define GROW_TRIES    64u /* steps that other threads may have grown the mapping meanwhile */

/* Twice the words that all memory as slabs would need: windows have holes. */
size_t map_pages_wanted(uint64_t ram)
{
	size_t pages =
	    round_up((ram >> UNIT_SHIFT) * 2 / RING_MAP_UNITS, MAP_STEP / MAP_PAGE_BYTES);

	return min_size(max_size(pages, MAP_PAGES_MIN), MAP_PAGES_MAX);
}

static void note_lost(struct map_writer *m)
{
	atomic_fetch_add_explicit(&m->lost, 1, memory_order_relaxed);
	telemetry_store(&m->file->map_lost, &m->lost);
}

/*
 * A mapping, `before` bytes and then *length that are known to be there, reaches `end`; false: it
 * does not.  What stands there already may be another thread's growth, not yet known, or somebody
 * else's mapping, in which nothing may be stored: only growth that succeeds tells.  So a thread
 * that comes too late grows it once more, from where it ends by now.
 */
static bool grow(const struct map_writer *m, char *at, size_t before, _Atomic size_t *length,
		 size_t end)
{
	size_t known = atomic_load_explicit(length, memory_order_relaxed), from = known;
	size_t all = m->pages * MAP_PAGE_BYTES, to = round_up(end, MAP_STEP);

	if (end <= known)
		return true;
	for (unsigned tries = 0; tries < GROW_TRIES && from < all; tries++, from += MAP_STEP) {
		size_t until = max_size(to, from + MAP_STEP);

		if (!pub_map_grow(at, before + from, before + until))
			continue;
		while (known < until &&
		       !atomic_compare_exchange_weak_explicit(
			   length, &known, until, memory_order_relaxed, memory_order_relaxed))
			;
		return true;
	}
	return end <= atomic_load_explicit(length, memory_order_relaxed);
}

/* Whether the words up to `end`, and their view, are mapped. */
static bool reach(struct map_writer *m, size_t end)
{
	return grow(m, m->words, 0, &m->mapped, end) &&
	       (!m->view || grow(m, m->view, m->dir_bytes, &m->viewed, end));
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
	if (!reach(m, page * MAP_PAGE_BYTES))
		return 0;
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

cold uint64_t *map_give_page(struct map_writer *m, size_t place)
{
	uint64_t *words = MAP_LOST, *stands = NULL;
	uint32_t page = 0;

	if (pub_populate(&m->shown[place], sizeof *m->shown) == 0)
		page = new_page(m);
	if (page)
		words = (uint64_t *)(m->words + (page - 1) * MAP_PAGE_BYTES);
	if (!atomic_compare_exchange_strong_explicit(&m->dir[place], &stands, words,
						     memory_order_acq_rel, memory_order_acquire)) {
		if (page)
			atomic_store_explicit(&m->spare, page, memory_order_relaxed);
		return stands;
	}
	if (!page) {
		note_lost(m);
		return words;
	}
	ring_store(&m->shown[place], page);
	show_page(m, place, page);
	return words;
}

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
	m->viewed = bytes - m->dir_bytes;
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
