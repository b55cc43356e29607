/* SPDX-License-Identifier: MIT */
#include "allocator/node.h"

/*
 * Transparent huge pages for slabs.  A huge page under a slab that grows page by page would hold
 * memory that nobody asked for, and one that was partly given back gives nothing back to the
 * machine.  So a chunk of 2 MiB is mapped without, and may become one once all of it is populated,
 * unless memory of it ever went back.  (The kernel's khugepaged does it, in its own time, where the
 * system allows it.)
 *
 *	first unit of the chunk:  .chunk_full   units that are wholly resident
 *	                          .chunk_huge   NONE -> ASKED -> NEVER
 */

#define CHUNK_UNITS 32u
#define ASK_MAX	    16384u /* 32 GiB: at worst each is a mapping more, of 65,530 */

enum { HUGE_NONE, HUGE_ASKED, HUGE_NEVER };

static _Atomic unsigned asked; /* chunks, ever */

static struct slab *chunk_of(const struct slab *unit)
{
	struct slab *base = slab_of(layout.base);

	return base + ((size_t)(unit - base) & ~(size_t)(CHUNK_UNITS - 1));
}

static bool is_full(struct slab *chunk)
{
	return atomic_load_explicit(&chunk->chunk_full, memory_order_relaxed) == CHUNK_UNITS;
}

static void ask(struct slab *chunk)
{
	uint8_t was = HUGE_NONE;

	if (atomic_load_explicit(&asked, memory_order_relaxed) >= ASK_MAX ||
	    !atomic_compare_exchange_strong_explicit(&chunk->chunk_huge, &was, HUGE_ASKED,
						     memory_order_relaxed, memory_order_relaxed))
		return;
	atomic_fetch_add_explicit(&asked, 1, memory_order_relaxed);
	os_huge((void *)slab_addr(chunk), CHUNK_UNITS << UNIT_SHIFT);
	/* Memory left it meanwhile, and was told so before we asked: what comes in is not huge. */
	if (atomic_load_explicit(&chunk->chunk_huge, memory_order_seq_cst) == HUGE_NEVER)
		os_no_huge((void *)slab_addr(chunk), CHUNK_UNITS << UNIT_SHIFT);
}

/*
 * The chunk before is asked for when one is full: the kernel makes one mapping of neighbours only
 * if they were alike when they were touched first.
 */
void huge_filled(const struct slab *unit)
{
	struct slab *chunk = chunk_of(unit), *before = chunk - CHUNK_UNITS;
	unsigned n = atomic_fetch_add_explicit(&chunk->chunk_full, 1, memory_order_relaxed) + 1u;

	if (n == CHUNK_UNITS && tunables.thp == THP_AUTO &&
	    chunk != pools[layout_window_of(&layout, slab_addr(chunk))].window.first &&
	    is_full(before))
		ask(before);
}

void huge_leaves(const struct slab *unit, bool was_full)
{
	struct slab *chunk = chunk_of(unit);

	if (was_full)
		atomic_fetch_sub_explicit(&chunk->chunk_full, 1, memory_order_relaxed);
	if (atomic_load_explicit(&chunk->chunk_huge, memory_order_relaxed) != HUGE_NEVER &&
	    atomic_exchange_explicit(&chunk->chunk_huge, HUGE_NEVER, memory_order_relaxed) ==
		HUGE_ASKED)
		os_no_huge((void *)slab_addr(chunk), CHUNK_UNITS << UNIT_SHIFT);
}
