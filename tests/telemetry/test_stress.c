/* SPDX-License-Identifier: MIT */
/*
 * The ring under many readers, the mirror and the slab map under many writers, built with
 * ThreadSanitizer too
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
#include "tests/telemetry/folder.h"
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

/* --- The slab map. --- */

#define UNITS_SHARED 4u
#define STEP	     2u

static struct slab *shared[UNITS_SHARED];

/* Blocks are pushed, their links with them, onto slabs that have no memory: the words alone. */
static void push(struct slab *s)
{
	uint64_t w = atomic_load(&s->remote);

	do {
		if (remote_state(w) != SLAB_LISTED || remote_count(w) >= remote_used(w))
			return;
	} while (!atomic_compare_exchange_weak(&s->remote, &w, remote_push(w, 1)));
	if ((remote_count(w) + 1) % STEP == 0)
		tally_pushed(0, 5, s, STEP);
}

/* Its only owner, which lists it, takes it again, lets it die and be born. */
static void turn(struct slab *s, unsigned long i)
{
	switch (i % 4) {
	case 0:
		s->base = 99;
		s->left = 1;
		fake_slab_use(s, 100);
		slab_write(s->step, STEP);
		slab_set_listed(s);
		fake_add(0, 5, COUNT_partial, 1);
		telemetry_map(s);
		break;
	case 1:
		slab_set_owned(s);
		atomic_store(&s->remote, remote_taken(atomic_load(&s->remote)));
		fake_add(0, 5, COUNT_partial, -1);
		telemetry_map(s);
		break;
	case 2:
		fake_slab_dies(s, i & 8);
		break;
	default:
		slab_init(s, 5 + i % 3, 0);
		slab_set_part(s, UNIT_FIRST);
		telemetry_map_own(s);
		fake_slab_use(s, 7);
	}
}

static void *change_map(void *arg)
{
	unsigned me = (unsigned)(uintptr_t)arg;

	for (unsigned long i = 0; i < rounds; i++) {
		pthread_barrier_wait(&barrier);
		for (unsigned k = 0; k < UNITS_SHARED; k++) {
			if (me == k)
				turn(shared[k], i);
			else
				push(shared[k]);
		}
		/* A page for each stretch of 32 MiB, asked for by all. */
		struct slab *far = pools[0].window.first + i % 31 * RING_MAP_UNITS;
		slab_write(far[1 + me].part, UNIT_KEPT);
		telemetry_map(&far[1 + me]);
		pthread_barrier_wait(&barrier);
	}
	return NULL;
}

/* The walk of a process that begins to publish, beside the changes. */
static void *walk_map(void *arg)
{
	struct map_writer *m = arg;

	for (unsigned long i = 0; i < rounds; i++) {
		pthread_barrier_wait(&barrier);
		map_walk(m);
		pthread_barrier_wait(&barrier);
	}
	return NULL;
}

static void stress_map(void)
{
	struct map_writer *m = atomic_load(&telemetry_words->map);
	pthread_t t[UNITS_SHARED + 1];
	unsigned long wrong = 0;

	if (!ok(m != NULL, "it has a map"))
		return;
	pools[0].window.top = 64;
	for (unsigned k = 0; k < UNITS_SHARED; k++)
		shared[k] = fake_slab_born(0, 5, 3);
	pthread_barrier_destroy(&barrier);
	pthread_barrier_init(&barrier, NULL, UNITS_SHARED + 2);
	for (uintptr_t i = 0; i < UNITS_SHARED; i++)
		pthread_create(&t[i], NULL, change_map, (void *)i);
	pthread_create(&t[UNITS_SHARED], NULL, walk_map, m);
	for (unsigned long i = 0; i < rounds; i++) {
		pthread_barrier_wait(&barrier);
		pthread_barrier_wait(&barrier);
		struct slab *far = pools[0].window.first + i % 31 * RING_MAP_UNITS;
		for (unsigned k = 0; k < UNITS_SHARED; k++)
			wrong += fake_map_word(shared[k]) != fake_map_truth(shared[k]) ||
				 fake_map_word(&far[1 + k]) != fake_map_truth(&far[1 + k]);
	}
	for (unsigned i = 0; i <= UNITS_SHARED; i++)
		pthread_join(t[i], NULL);
	if (!ok(wrong == 0, "after each of %lu races the map is exact", rounds))
		printf("# wrong %lu times\n", wrong);
	ok(atomic_load(&m->given) >= 31 && atomic_load(&m->given) <= 31 + 8 * UNITS_SHARED,
	   "a page for each place (%u for 31)", (unsigned)atomic_load(&m->given));
}

int main(int argc, char **argv)
{
	const char *dir;
	char sub[80];

	if (!(dir = folder_make("/tmp/numaslab-stress-XXXXXX")))
		return 1;
	snprintf(sub, sizeof sub, "%s/files", dir);
	stress_ring(argc > 1 ? strtoul(argv[1], NULL, 0) : 200000);
	rounds = argc > 2 ? strtoul(argv[2], NULL, 0) : 20000;
	stress_mirror(sub);
	stress_map();
	int status = tap_end();
	folder_remove();
	return status;
}
