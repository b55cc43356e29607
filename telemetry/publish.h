/* SPDX-License-Identifier: MIT */
#ifndef NUMASLAB_PUBLISH_H
#define NUMASLAB_PUBLISH_H

/*
 * The writer of the telemetry file, as the allocator sees it.  Private memory (pools[].count) is
 * the truth and the file its mirror, write-only.  Nothing here waits, allocates from the heap,
 * or takes what governs it from shared memory.
 *
 * All state lies in one page that fork wipes (MADV_WIPEONFORK): a child, of a raw fork too, has no
 * mirror, and begins anew at its first tick.
 */

#include "allocator/sizeclass.h"
#include "telemetry/counters.h"

#define TELEMETRY_ROW_WORDS ((COUNTER_COUNT + 7u) & ~7u)

struct slab;
struct map_writer;

struct telemetry_words {
	_Atomic(uint64_t *) live; /* the file's rows of counters; NULL: nothing is published */
	_Atomic(struct map_writer *) map; /* NULL: no map is */
	_Atomic uint64_t next_ms;	  /* no tick is due before */
};

/* Never NULL; zeros until the first tick. */
extern hidden_ struct telemetry_words *_Atomic telemetry_words;

void telemetry_tick_due(uint64_t now_ms);
void telemetry_store(uint64_t *to, const _Atomic uint64_t *truth);
void telemetry_map_store(struct map_writer *m, const struct slab *s);
void telemetry_map_store_own(struct map_writer *m, const struct slab *s);
void telemetry_store_two(uint64_t *row, const _Atomic uint64_t *truth, enum counter a,
			 enum counter b);
void telemetry_store_state(uint64_t *row, const _Atomic uint64_t *truth);
void telemetry_store_four(uint64_t *row, const _Atomic uint64_t *truth, enum counter a,
			  enum counter b, enum counter c, enum counter d);

/*
 * Counters of a row (truth) and the map's word with one barrier.  After .tallied of an OWNED slab
 * changed, its owner calling, and `used`; and `cached` too.  After a push onto a LISTED slab, which
 * may be anything by now, and `used` of the row where it was.
 */
void telemetry_store_used(uint64_t *row, const _Atomic uint64_t *truth, const struct slab *s);
void telemetry_store_bin(uint64_t *row, const _Atomic uint64_t *truth, const struct slab *s);
void telemetry_store_pushed(uint64_t *row, const _Atomic uint64_t *truth, const struct slab *s);

/*
 * From slow paths of any thread, with no lock held and before or after main: begins to publish
 * when it is time, and adds to the history at most every NUMASLAB_TICK_MS.  Who finds another
 * thread at it returns at once.
 */
inline_ void telemetry_tick(uint64_t now_ms)
{
	struct telemetry_words *w = atomic_load_explicit(&telemetry_words, memory_order_acquire);

	if (unlikely(now_ms >= atomic_load_explicit(&w->next_ms, memory_order_relaxed)))
		telemetry_tick_due(now_ms);
}

/* Where the row of a pool and a class is mirrored; NULL: nowhere. */
inline_ uint64_t *telemetry_row(unsigned index, unsigned cls)
{
#if !defined(__x86_64__)
	/* The change before the look at .live: pairs with publish() in pub_tick.c.  x86: it was
	 * locked, or nobody else can be publishing (allocator/alone.h). */
	atomic_thread_fence(memory_order_seq_cst);
#endif
	struct telemetry_words *w = atomic_load_explicit(&telemetry_words, memory_order_acquire);
	uint64_t *live = atomic_load_explicit(&w->live, memory_order_acquire);

	return unlikely(live) ? live + (index * CLASS_COUNT + cls) * TELEMETRY_ROW_WORDS : NULL;
}

/* After *truth, a counter of a pool and a class, changed.  A lock may be held. */
inline_ void telemetry_mirror(unsigned index, unsigned cls, enum counter c,
			      const _Atomic uint64_t *truth)
{
	uint64_t *row = telemetry_row(index, cls);

	if (row)
		telemetry_store(row + c, truth);
}

/* The map, if there is one. */
inline_ struct map_writer *telemetry_mapped(void)
{
#if !defined(__x86_64__)
	/* As in telemetry_row(). */
	atomic_thread_fence(memory_order_seq_cst);
#endif
	struct telemetry_words *w = atomic_load_explicit(&telemetry_words, memory_order_acquire);

	return atomic_load_explicit(&w->map, memory_order_acquire);
}

/*
 * After a field of the unit's descriptor changed that its word of the map is made of (cls, node,
 * misplaced, tallied, step, remote, births, part, units of a large block), and after a locked
 * instruction that followed the change: a tally (not locked where one is alone, and need not be).
 * No lock is needed, and whatever the unit is by then may be another thread's: who stores looks
 * again, so that the last word is the last truth.
 */
inline_ void telemetry_map(const struct slab *s)
{
	struct map_writer *map = telemetry_mapped();

	if (unlikely(map))
		telemetry_map_store(map, s);
}

/*
 * The same by the only thread that changes the fields now: the owner of an OWNED slab, the holder
 * of a span that is free.  One store will do: those who still look again see what was stored before
 * it.
 */
inline_ void telemetry_map_own(const struct slab *s)
{
	struct map_writer *map = telemetry_mapped();

	if (unlikely(map))
		telemetry_map_store_own(map, s);
}

/* In the child of a fork; a raw fork that does not call it is as safe. */
void telemetry_fork_child(void);

#endif
