/* SPDX-License-Identifier: MIT */
#include "telemetry/pub.h"

#include <sys/auxv.h>
#include <sys/resource.h>

#include "allocator/node.h"
#include "allocator/observe.h"

/*
 *	telemetry_words
 *	zeros (never wiped)  --first tick-->  a page that fork wipes, .started_ms set
 *	.started_ms != 0     --publish_after_ms, or 16 MiB held-->  .live set, the file shown
 *	anything             --what is needed is not there-->  .next_ms = NEVER, for good (in a
 *	                                                       child: until it is wiped)
 */

#define NEVER		    UINT64_MAX
#define PUBLISH_HELD	    ((size_t)16 << 20)
#define LEASE_SLACK_MS	    100u /* our clock is coarse */
#define AGED_ENOUGH(s, now) ((now) - (s)->started_ms >= tunables.publish_after_ms)

struct state {
	struct telemetry_words words;
	_Atomic uint32_t busy;
	uint64_t started_ms;
	struct ring_writer ring;
	struct map_writer map;
	struct pub_files files;
};

_Static_assert(sizeof(struct state) <= 4096, "one page");
_Static_assert(TELEMETRY_ROW_WORDS == RING_ROW_WORDS, "publish.h does without ring.h");

static struct telemetry_words nothing;
struct telemetry_words *_Atomic telemetry_words = &nothing;
static _Atomic uint32_t starting;

/* --- The mirror. --- */

/* Two who changed one may store in either order; who is last to look again mends it. */
void telemetry_store(uint64_t *to, const _Atomic uint64_t *truth)
{
	uint64_t value = atomic_load_explicit(truth, memory_order_relaxed), stored;

	do {
		stored = value;
		ring_store(to, stored);
		if (!alone())
			cmm_smp_mb();
		value = atomic_load_explicit(truth, memory_order_relaxed);
	} while (unlikely(value != stored));
}

void telemetry_store_two(uint64_t *row, const _Atomic uint64_t *truth, enum counter a,
			 enum counter b)
{
	uint64_t x, y;

	do {
		x = atomic_load_explicit(&truth[a], memory_order_relaxed);
		y = atomic_load_explicit(&truth[b], memory_order_relaxed);
		ring_store(&row[a], x);
		ring_store(&row[b], y);
		if (!alone())
			cmm_smp_mb();
	} while (unlikely(atomic_load_explicit(&truth[a], memory_order_relaxed) != x ||
			  atomic_load_explicit(&truth[b], memory_order_relaxed) != y));
}

inline_ void store_four(uint64_t *row, const _Atomic uint64_t *truth, enum counter a,
			enum counter b, enum counter c, enum counter d)
{
	uint64_t v, x, y, z;

	do {
		v = atomic_load_explicit(&truth[a], memory_order_relaxed);
		x = atomic_load_explicit(&truth[b], memory_order_relaxed);
		y = atomic_load_explicit(&truth[c], memory_order_relaxed);
		z = atomic_load_explicit(&truth[d], memory_order_relaxed);
		ring_store(&row[a], v);
		ring_store(&row[b], x);
		ring_store(&row[c], y);
		ring_store(&row[d], z);
		if (!alone())
			cmm_smp_mb();
	} while (unlikely(atomic_load_explicit(&truth[a], memory_order_relaxed) != v ||
			  atomic_load_explicit(&truth[b], memory_order_relaxed) != x ||
			  atomic_load_explicit(&truth[c], memory_order_relaxed) != y ||
			  atomic_load_explicit(&truth[d], memory_order_relaxed) != z));
}

/* Of three, one twice. */
void telemetry_store_four(uint64_t *row, const _Atomic uint64_t *truth, enum counter a,
			  enum counter b, enum counter c, enum counter d)
{
	store_four(row, truth, a, b, c, d);
}

void telemetry_store_state(uint64_t *row, const _Atomic uint64_t *truth)
{
	store_four(row, truth, COUNT_active, COUNT_partial, COUNT_full, COUNT_used);
}

static void mirror_all(uint64_t *live)
{
	for (unsigned i = 0; i <= topology.count; i++)
		for (unsigned cls = 0; cls < CLASS_COUNT; cls++)
			for (unsigned c = 0; c < COUNTER_COUNT; c++) {
				uint64_t *to = live + (i * CLASS_COUNT + cls) * RING_ROW_WORDS + c;
				const _Atomic uint64_t *truth = &pools[i].count[cls][c];

				/* The file is zeros; a store of ours would only touch more lines.
				 */
				if (atomic_load_explicit(truth, memory_order_relaxed))
					telemetry_store(to, truth);
			}
}

/* --- The history. --- */

static void fill_pool(struct ring_totals *to, unsigned index)
{
	uint64_t sum[COUNTER_COUNT] = {0}, used = 0, capacity = 0, cached = 0;

	for (unsigned cls = 0; cls < CLASS_COUNT; cls++) {
		const _Atomic uint64_t *row = pools[index].count[cls];
		uint64_t size = cls ? class_size(cls) : 0, n[COUNTER_COUNT];

		for (unsigned c = 0; c < COUNTER_COUNT; c++) {
			n[c] = atomic_load_explicit(&row[c], memory_order_relaxed);
			sum[c] += n[c];
		}
		used += n[COUNT_used] * size;
		capacity += n[COUNT_slots] * size;
		cached += n[COUNT_cached] * size;
	}
	ring_store(&to->used_bytes, used);
	ring_store(&to->capacity_bytes, capacity);
	ring_store(&to->cached_bytes, cached);
	for (unsigned c = 0; c < COUNTER_COUNT; c++)
		ring_store(&to->counter[c], sum[c]);
}

static void fill_entry(struct ring_entry *e, void *data)
{
	(void)data;
	for (unsigned i = 0; i <= topology.count; i++)
		fill_pool(&e->pool[i], i);
}

/* --- Beginning to publish. --- */

static void fill_pools(const struct pub_layout *l, struct ring_header *h)
{
	struct ring_pool *pool = (struct ring_pool *)((char *)h + l->pools);

	for (unsigned i = 0; i < topology.count; i++)
		pool[i].node = topology.number[i];
	pool[topology.count].node = -1;
	pool[topology.count].flags = RING_POOL_LARGE;
	if (topology.simulated)
		h->flags |= RING_FLAG_SIMULATED;
}

/* False: the file system, a limit or the kernel does not allow it; nothing stays of it. */
static bool publish(struct state *s, uint64_t now_ms)
{
	struct pub_layout l;

	if (pub_has_filter())
		return false;
	size_t dir_count = map_prepare(&s->map) ? s->map.dir_count : 0;
	if (!pub_layout_plan(&l, topology.count + 1, dir_count, map_pages_wanted(pub_ram()),
			     os_rlimit(RLIMIT_FSIZE)) ||
	    !pub_files_make(&s->files, &l, &s->ring, &s->map, now_ms)) {
		map_drop(&s->map);
		return false;
	}
	uint64_t *live = (uint64_t *)((char *)s->ring.file + l.live);

	fill_pools(&l, s->ring.file);
	/* From now on every change is mirrored: what was before is copied after. */
	atomic_store_explicit(&s->words.live, live, memory_order_release);
	if (s->map.words)
		atomic_store_explicit(&s->words.map, &s->map, memory_order_release);
	atomic_thread_fence(memory_order_seq_cst); /* with that of telemetry_row(), or its lock */
	mirror_all(live);
	if (s->map.words)
		map_walk(&s->map);
	else
		map_drop(&s->map);
	ring_write(&s->ring, now_ms, fill_entry, NULL);
	if (!pub_files_show(&s->files)) {
		/* Others may be storing: the mapping stays, nameless. */
		atomic_store_explicit(&s->words.live, NULL, memory_order_relaxed);
		atomic_store_explicit(&s->words.map, NULL, memory_order_relaxed);
		s->files.pid = 0;
		return false;
	}
	pub_files_cap(s->files.dir);
	return true;
}

/* --- Observation. --- */

_Static_assert((int)OBSERVE_PREFERRED == RING_OBSERVE_PREFERRED &&
		   (int)OBSERVE_BIND == RING_OBSERVE_BIND &&
		   (int)OBSERVE_REFUSED == RING_OBSERVE_REFUSED &&
		   OBSERVE_SAMPLE_MAX == RING_SAMPLE_MAX,
	       "observe.h does without ring.h");

/* What another process asks for, if it is anything; and what became of it. */
static void look_at_control(struct state *s, uint64_t now_ms)
{
	const struct ring_control *control = s->files.control;
	struct ring_control c = {.request = 0};
	struct observe_report report;

	if (!control || pub_word_is(&control->lease_ms, 0) != 0 ||
	    !pub_copy(&c, control, sizeof c) || c.lease_ms <= now_ms ||
	    c.lease_ms - now_ms > RING_LEASE_MS + LEASE_SLACK_MS)
		c.request = 0;
	observe_ask(c.request, c.lease_ms);
	observe_tick(now_ms);
	observe_look(&report);
	ring_store(&s->ring.file->observe_how, report.how);
	ring_store(&s->ring.file->observed_bytes, report.bytes);
	ring_store(&s->ring.file->observe_request, report.request);
}

static void set_next(struct telemetry_words *w, uint64_t ms)
{
	atomic_store_explicit(&w->next_ms, ms, memory_order_relaxed);
}

static void tick(struct state *s, uint64_t now_ms)
{
	if (s->started_ms == 0)
		s->started_ms = now_ms ? now_ms : 1;
	if (atomic_load_explicit(&s->words.live, memory_order_relaxed)) {
		if (topology.filtered) {
			/* Calls that the filter may kill for. */
			s->ring.pins = NULL;
			s->files.control = NULL;
		}
		ring_write(&s->ring, now_ms, fill_entry, NULL);
		look_at_control(s, now_ms);
	} else if (AGED_ENOUGH(s, now_ms) ||
		   atomic_load_explicit(&mem.held, memory_order_relaxed) >= PUBLISH_HELD) {
		if (!publish(s, now_ms)) {
			set_next(&s->words, NEVER);
			return;
		}
	}
	set_next(&s->words, now_ms + tunables.tick_ms);
}

/* The first tick of all: the page, or never. */
cold static struct state *start(void)
{
	struct state *s = NULL;

	if (atomic_exchange_explicit(&starting, 1, memory_order_acquire))
		return NULL;
	if (tunables.telemetry && !topology.filtered && !getauxval(AT_SECURE)) {
		s = pub_map_private(os_page_size);
		if (s && pub_wipe_on_fork(s, os_page_size) < 0) {
			pub_unmap(s, os_page_size);
			s = NULL;
		}
	}
	if (s)
		atomic_store_explicit(&telemetry_words, &s->words, memory_order_release);
	else
		set_next(&nothing, NEVER);
	return s;
}

cold void telemetry_tick_due(uint64_t now_ms)
{
	/* Between fork's handlers: in a child what is begun now would end with them. */
	if (lock_forking)
		return;
	struct telemetry_words *w = atomic_load_explicit(&telemetry_words, memory_order_acquire);
	struct state *s = w == &nothing ? start() : (struct state *)w;

	if (!s || atomic_exchange_explicit(&s->busy, 1, memory_order_acquire))
		return;
	if (topology.filtered && !atomic_load_explicit(&s->words.live, memory_order_relaxed))
		set_next(&s->words, NEVER); /* a file's calls may be killed now */
	/* Another thread may have ticked between the look and the lock. */
	if (now_ms >= atomic_load_explicit(&s->words.next_ms, memory_order_relaxed))
		tick(s, now_ms);
	atomic_store_explicit(&s->busy, 0, memory_order_release);
}

/* --- Ends. --- */

void telemetry_fork_child(void)
{
	struct telemetry_words *w = atomic_load_explicit(&telemetry_words, memory_order_acquire);

	if (w != &nothing)
		__builtin_memset((void *)w, 0, sizeof(struct state));
	else /* who was at it may be a thread that is no more */
		atomic_store_explicit(&starting, 0, memory_order_relaxed);
}

/*
 * A normal end leaves no file.  The mapping, and with it the lock, stays: other threads may be
 * allocating, and so may destructors after this one.  A vfork child that calls exit() is not us.
 */
__attribute__((destructor)) static void telemetry_exit(void)
{
	struct telemetry_words *w = atomic_load_explicit(&telemetry_words, memory_order_acquire);
	struct state *s = (struct state *)w;

	if (w == &nothing || topology.filtered ||
	    atomic_load_explicit(&w->live, memory_order_relaxed) == NULL ||
	    s->files.pid != pub_pid())
		return;
	set_next(w, NEVER);
	pub_files_remove(&s->files);
}
