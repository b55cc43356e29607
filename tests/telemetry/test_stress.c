/* SPDX-License-Identifier: MIT */
/*
 * The ring under many readers, and the mirror under many writers, built with ThreadSanitizer too
 * (all at the same addresses, so that it sees both sides).
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "telemetry/pub.h"
#include "tests/telemetry/fake.h"
#include "tests/telemetry/tap.h"
#include "tools/reader_internal.h"

#define POOLS	2u
#define ENTRIES 64u
#define STRIDE	(sizeof(struct ring_entry) + POOLS * sizeof(struct ring_totals))
#define READERS 6
#define ADDERS	4

static struct ring_header header;
static char history[ENTRIES * STRIDE] cache_aligned;
static struct ring_pin pins[RING_PINS];
static struct ring_writer writer;
static _Atomic bool done;
static _Atomic unsigned long bad, points, overtaken, unordered;

/* Every word of an entry is its time. */
static void fill(struct ring_entry *e, void *data)
{
	uint64_t n = *(uint64_t *)data;

	for (unsigned i = 0; i < POOLS; i++)
		for (uint64_t *w = (uint64_t *)&e->pool[i]; w < (uint64_t *)&e->pool[i + 1]; w++)
			ring_store(w, n);
}

static void *write_ring(void *arg)
{
	for (uint64_t now = 1; now < (uint64_t)(uintptr_t)arg; now++)
		ring_write(&writer, now, fill, &now);
	atomic_store(&done, true);
	return NULL;
}

static void check(const struct reader_point *p)
{
	for (unsigned i = 0; i < POOLS; i++) {
		const struct reader_counts *c = &p->pool[i].sum;
		bool good = c->used_bytes == p->time_ms && c->cached_bytes == p->time_ms;

		for (unsigned k = 0; k < COUNTER_COUNT; k++)
			good &= c->counter[k] == p->time_ms;
		bad += !good;
	}
}

static void make_reader(struct reader *r, int slot)
{
	memset(r, 0, sizeof *r);
	r->fd = r->pins_fd = -1;
	r->map = (char *)&header;
	r->history = (struct ring_section){
	    .offset = (uint64_t)(history - (char *)&header), .stride = STRIDE, .count = ENTRIES};
	r->pool_stride = sizeof(struct ring_totals);
	r->info.pools = POOLS;
	r->pins = slot < 0 ? NULL : pins;
	r->pin_slot = slot;
	for (unsigned i = 0; i < COUNTER_COUNT; i++)
		r->column[i] = (int)i;
}

/* Odd readers have no pin. */
static void *read_ring(void *arg)
{
	int me = (int)(uintptr_t)arg;
	struct reader r;
	struct reader_history h = {0};

	make_reader(&r, me % 2 ? -1 : me);
	while (!atomic_load(&done)) {
		uint64_t last = 0;

		reader_history(&r, 0, ENTRIES, &h);
		for (size_t i = 0; i < h.count; i++) {
			check(&h.point[i]);
			unordered += h.point[i].entry <= last;
			last = h.point[i].entry;
		}
		points += h.count;
		overtaken += me % 2 ? 0 : h.overtaken;
	}
	reader_history_free(&h);
	return NULL;
}

static void stress_ring(uint64_t writes)
{
	pthread_t w, t[READERS];

	pins->touched = 1;
	writer = (struct ring_writer){.file = &header,
				      .history = history,
				      .pins = pins,
				      .pin_count = RING_PINS,
				      .entries = ENTRIES,
				      .stride = STRIDE,
				      .populated = sizeof history};
	for (int i = 0; i < READERS; i++)
		pthread_create(&t[i], NULL, read_ring, (void *)(uintptr_t)i);
	pthread_create(&w, NULL, write_ring, (void *)(uintptr_t)writes);
	pthread_join(w, NULL);
	for (int i = 0; i < READERS; i++)
		pthread_join(t[i], NULL);
	ok(bad == 0, "no entry was read in pieces (%lu read)", (unsigned long)points);
	ok(points > 1000, "entries were read while they were written");
	ok(unordered == 0, "entries come in order");
	/* Where the writer lost its CPU between b and d, the reader sees 0 for longer than it
	 * looks. */
	ok(overtaken <= points / 1000, "hardly an entry with a pin was given up (%lu of %lu)",
	   (unsigned long)overtaken, (unsigned long)points);
	ok(header.skipped > 0, "the writer passed over pinned slots (%lu)",
	   (unsigned long)header.skipped);
}

static pthread_barrier_t barrier;
static unsigned long rounds;

static void *add_counts(void *arg)
{
	int64_t step = (int64_t)(uintptr_t)arg;

	for (unsigned long i = 0; i < rounds; i++) {
		pthread_barrier_wait(&barrier);
		fake_add(0, 5, COUNT_used, step);
		pthread_barrier_wait(&barrier);
	}
	return NULL;
}

/* After each round nobody stores any more: the mirror must be the truth, with no tick. */
static void stress_mirror(const char *dir)
{
	pthread_t t[ADDERS];
	unsigned long wrong = 0;

	fake_init(1, dir);
	telemetry_tick(1000);
	uint64_t *live = atomic_load(&telemetry_words->live);
	if (!ok(live != NULL, "it publishes"))
		return;
	pthread_barrier_init(&barrier, NULL, ADDERS + 1);
	for (uintptr_t i = 0; i < ADDERS; i++)
		pthread_create(&t[i], NULL, add_counts, (void *)(i + 1));
	for (unsigned long i = 0; i < rounds; i++) {
		pthread_barrier_wait(&barrier);
		pthread_barrier_wait(&barrier);
		wrong += ring_load(&live[5 * RING_ROW_WORDS + COUNT_used]) !=
			 atomic_load(&pools[0].count[5][COUNT_used]);
	}
	for (int i = 0; i < ADDERS; i++)
		pthread_join(t[i], NULL);
	if (!ok(wrong == 0, "after each of %lu races the mirror is exact", rounds))
		printf("# wrong %lu times\n", wrong);
}

int main(int argc, char **argv)
{
	char dir[] = "/tmp/numaslab-stress-XXXXXX", sub[64];

	if (!mkdtemp(dir))
		return 1;
	snprintf(sub, sizeof sub, "%s/files", dir);
	stress_ring(argc > 1 ? strtoul(argv[1], NULL, 0) : 200000);
	rounds = argc > 2 ? strtoul(argv[2], NULL, 0) : 20000;
	stress_mirror(sub);
	int status = tap_end();
	fflush(stdout);
	if (fork() == 0)
		execlp("rm", "rm", "-r", dir, NULL);
	return status;
}
