/* SPDX-License-Identifier: MIT */
#include "telemetry/pub.h"

/* The writer's side of the protocol in ring.h; its letters are at the lines below. */

#define POPULATE_STEP ((size_t)64 << 10)

/* What the pins are now. */
struct pins {
	unsigned count; /* 0: none is set, or they cannot be read */
	struct ring_pin pin[RING_PINS];
};

static void load_pins(const struct ring_writer *w, struct pins *to)
{
	to->count = 0;
	if (w->pins && pub_word_is(&w->pins->touched, 0) == 0 &&
	    pub_copy(to->pin, w->pins, w->pin_count * sizeof *to->pin))
		to->count = w->pin_count;
}

/* Notes since when each pin has been what it is. */
static void look_at_pins(struct ring_writer *w, const struct pins *now, uint64_t now_ms)
{
	for (unsigned i = 0; i < now->count; i++)
		if (now->pin[i].entry != w->seen[i].entry) {
			w->seen[i].entry = now->pin[i].entry;
			w->seen[i].since_ms = now_ms;
		}
}

/* Whether a reader is in the slot of entry n, as far as a pin is honoured. */
static bool slot_is_pinned(const struct ring_writer *w, const struct pins *now, uint64_t n,
			   uint64_t now_ms)
{
	for (unsigned i = 0; i < now->count; i++) {
		uint64_t entry = now->pin[i].entry;

		if (entry == 0 || entry % w->entries != n % w->entries)
			continue;
		if (entry != w->seen[i].entry || now_ms - w->seen[i].since_ms < RING_STUCK_MS)
			return true;
	}
	return false;
}

/* The memory up to the slot's end is there (a full file system must not become SIGBUS). */
static bool slot_has_memory(struct ring_writer *w, size_t end)
{
	size_t whole = w->entries * w->stride;

	if (likely(end <= w->populated))
		return true;
	size_t to = min_size(max_size(round_up(end, POPULATE_STEP), end), whole);
	if (pub_populate(w->history + w->populated, to - w->populated) < 0) {
		w->entries = 0;
		return false;
	}
	w->populated = to;
	return true;
}

/* pins: as they were a moment ago; then as they are. */
static bool try_entry(struct ring_writer *w, uint64_t n, struct pins *pins, uint64_t now_ms,
		      ring_fill *fill, void *data)
{
	size_t at = n % w->entries * w->stride;
	struct ring_entry *e = (struct ring_entry *)(w->history + at);

	if (slot_is_pinned(w, pins, n, now_ms)) /* a */
		return false;
	uint64_t before = ring_load(&e->generation); /* handed back to readers, never used */
	ring_store(&e->generation, 0);		     /* b */
	cmm_smp_mb();				     /* c, with the reader's 2 */
	load_pins(w, pins);
	if (slot_is_pinned(w, pins, n, now_ms)) { /* d */
		ring_store(&e->generation, before);
		return false;
	}
	ring_store(&e->time_ms, now_ms); /* e */
	fill(e, data);
	cmm_smp_wmb();		       /* with the reader's barrier before 4 */
	ring_store(&e->generation, n); /* f */
	ring_publish(w->file->head.token, (void *)(uintptr_t)n);
	return true;
}

bool ring_write(struct ring_writer *w, uint64_t now_ms, ring_fill *fill, void *data)
{
	struct pins pins;

	ring_store(&w->file->last_ms, now_ms);
	if (w->entries == 0)
		return false;
	load_pins(w, &pins);
	look_at_pins(w, &pins, now_ms);
	for (unsigned tries = 0; tries <= RING_PINS && w->entries != 0; tries++) {
		uint64_t n = ++w->entry;

		if (!slot_has_memory(w, (n % w->entries + 1) * w->stride))
			return false;
		if (try_entry(w, n, &pins, now_ms, fill, data))
			return true;
		ring_store(&w->file->skipped, w->file->skipped + 1);
	}
	return false;
}
