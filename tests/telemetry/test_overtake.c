/* SPDX-License-Identifier: MIT */
/* The ring's writer and a reader, interleaved at each instruction. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "telemetry/pub.h"
#include "tests/telemetry/fake.h"
#include "tests/telemetry/tap.h"
#include "tools/reader_internal.h"

#if !defined(__x86_64__)
int main(void)
{
	puts("1..0 # SKIP the trap flag is known on x86-64 only");
	return 0;
}
#else

#include "tests/telemetry/interleave.h"

#define STRIDE_K 7 /* instructions between two places; prime, so that loops are hit everywhere */
#define ENTRIES	 8u
#define STRIDE	 (sizeof(struct ring_entry) + sizeof(struct ring_totals))

static struct {
	struct ring_header header;
	char history[ENTRIES * STRIDE] cache_aligned;
	struct ring_pin pins[RING_PINS];
} ring;
static struct ring_writer writer;
static struct reader reader;
static struct reader_history got;
static uint64_t now;

static void fill(struct ring_entry *e, void *data)
{
	(void)data;
	for (uint64_t *w = (uint64_t *)e->pool; w < (uint64_t *)(e->pool + 1); w++)
		ring_store(w, now);
}

static void write_entry(void)
{
	now++;
	ring_write(&writer, now, fill, NULL);
}

static void write_lap(void)
{
	for (unsigned i = 0; i < 2 * ENTRIES; i++)
		write_entry();
}

static void read_newest(void)
{
	reader_history(&reader, 0, 1, &got);
}

static void make_ring(bool pinned)
{
	memset(&ring, 0, sizeof ring);
	ring.pins->touched = pinned;
	writer = (struct ring_writer){.file = &ring.header,
				      .history = ring.history,
				      .pins = ring.pins,
				      .pin_count = RING_PINS,
				      .entries = ENTRIES,
				      .stride = STRIDE,
				      .populated = sizeof ring.history};
	memset(&reader, 0, sizeof reader);
	reader.fd = reader.pins_fd = -1;
	reader.map = (char *)&ring.header;
	reader.history = (struct ring_section){
	    .offset = (uint64_t)(ring.history - (char *)&ring), .stride = STRIDE, .count = ENTRIES};
	reader.pool_stride = sizeof(struct ring_totals);
	reader.info.pools = 1;
	reader.pins = pinned ? ring.pins : NULL;
	for (unsigned i = 0; i < COUNTER_COUNT; i++)
		reader.column[i] = (int)i;
	now = 0;
	write_lap();
}

static bool is_whole(const struct reader_point *p)
{
	bool good = p->pool[0].sum.used_bytes == p->time_ms;

	for (unsigned i = 0; i < COUNTER_COUNT; i++)
		good &= p->pool[0].sum.counter[i] == p->time_ms;
	return good;
}

/* The writer goes round while a reader is in an entry. */
static void lap_in_reader(bool pinned)
{
	unsigned long k = 0, pieces = 0, lost = 0;
	bool first_kept = false;

	make_ring(pinned);
	for (; interleave(read_newest, write_lap, k); k += STRIDE_K) {
		for (size_t i = 0; i < got.count; i++)
			pieces += !is_whole(&got.point[i]);
		lost += got.overtaken;
		first_kept |= got.count == 1 && got.point[0].time_ms != now;
	}
	ok(k > 200, "%s pin: the writer goes round at places in %lu instructions of a reader",
	   pinned ? "with a" : "without", k);
	ok_equal((long long)pieces, 0, "what was returned is whole");
	if (pinned) {
		ok_equal((long long)lost, 0, "and nothing that it had pinned was overtaken");
		ok(first_kept, "an entry was kept for it while the writer went on");
	} else {
		ok(lost > 10, "and what was overtaken was noticed (%lu times)", lost);
	}
}

/* A reader comes and goes while the writer is at an entry; whole or nothing. */
static void read_in_writer(bool pinned)
{
	unsigned long k = 0, pieces = 0;

	make_ring(pinned);
	for (; interleave(write_entry, read_newest, k); k += STRIDE_K)
		for (size_t i = 0; i < got.count; i++)
			pieces += !is_whole(&got.point[i]);
	ok(k > 100, "%s pin: a reader at places in %lu instructions of the writer",
	   pinned ? "with a" : "without", k);
	ok_equal((long long)pieces, 0, "sees whole entries");
}

/* Its user cuts the file of pins while the writer is at an entry: it is read by calls alone. */
static int pins_fd;

static void cut_pins(void)
{
	if (ftruncate(pins_fd, 0) < 0)
		abort();
}

static void cut_in_writer(void)
{
	unsigned long k = 0, pinned = 0;
	size_t size = sizeof ring.pins;

	make_ring(true);
	pins_fd = memfd_create("pins", MFD_CLOEXEC);
	if (ftruncate(pins_fd, (off_t)size) < 0)
		abort();
	struct ring_pin *pins = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, pins_fd, 0);
	writer.pins = pins;
	do {
		if (ftruncate(pins_fd, (off_t)size) < 0)
			abort();
		pins->touched = 1;
		pins[9].entry = ring.header.head.entry + 1; /* the slot that is next */
		uint64_t skipped = ring.header.skipped;
		interleave(write_entry, cut_pins, k++);
		pinned += ring.header.skipped > skipped;
	} while (happened);
	ok(k > 100, "the file of pins is cut at each of %lu instructions of the writer", k);
	ok(pinned > 10 && pinned < k, "before or after it was looked at (%lu)", pinned);
	close(pins_fd);
}

int main(void)
{
	interleave_start();
	lap_in_reader(false);
	lap_in_reader(true);
	read_in_writer(false);
	read_in_writer(true);
	cut_in_writer();
	return tap_end();
}
#endif
