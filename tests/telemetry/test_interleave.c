/* SPDX-License-Identifier: MIT */
/*
 * Two sides interleaved at each instruction: one is run with the trap flag set, and at its k-th
 * instruction the other runs as a whole, for each k.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "telemetry/pub.h"
#include "tests/telemetry/fake.h"
#include "tests/telemetry/folder.h"
#include "tests/telemetry/tap.h"
#include "tools/reader_internal.h"

#if !defined(__x86_64__)
int main(void)
{
	puts("1..0 # SKIP the trap flag is known on x86-64 only");
	return 0;
}
#else

#define TRAP_FLAG 0x100
#define STRIDE_K  7 /* instructions between two places; prime, so that loops are hit everywhere */
#define ENTRIES	  8u
#define STRIDE	  (sizeof(struct ring_entry) + sizeof(struct ring_totals))

static unsigned long at, trap_at;
static bool happened;
static void (*other)(void);

static void on_trap(int number, siginfo_t *info, void *context)
{
	greg_t *flags = &((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL];

	(void)number, (void)info;
	if (at++ != trap_at)
		return;
	*flags &= ~(greg_t)TRAP_FLAG;
	happened = true;
	other();
}

/* Runs one() with two() inside at instruction k; false: one() is shorter. */
static bool interleave(void (*one)(void), void (*two)(void), unsigned long k)
{
	at = 0;
	trap_at = k;
	happened = false;
	other = two;
	__asm__ volatile("pushfq; orq $0x100, (%%rsp); popfq" ::: "memory", "cc");
	one();
	__asm__ volatile("pushfq; andq $~0x100, (%%rsp); popfq" ::: "memory", "cc");
	return happened;
}

/* --- The mirror. --- */

static void add_one(void)
{
	fake_add(0, 5, COUNT_used, 1);
}

static void add_two(void)
{
	fake_add(0, 5, COUNT_used, 2);
}

static void mirror(void)
{
	uint64_t *live = atomic_load(&telemetry_words->live);
	unsigned long k = 0, wrong = 0;

	if (!ok(live != NULL, "it publishes"))
		return;
	for (; interleave(add_one, add_two, k); k++)
		wrong += ring_load(&live[5 * RING_ROW_WORDS + COUNT_used]) !=
			 atomic_load(&pools[0].count[5][COUNT_used]);
	ok(k > 20, "a change inside a change, at each of %lu instructions", k);
	ok_equal((long long)wrong, 0, "the mirror is exact afterwards");
}

/* --- The slab map. --- */

static struct slab *slab, *fresh;
static unsigned used;

static void use_more(void)
{
	fake_slab_use(slab, ++used);
}

/* What may become of a unit, by its one owner, while one that let go of it still stores its word.
 */
static void live_on(void)
{
	fake_slab_dies(slab, used % 2);
	slab_init(slab, 1 + used % 9, 0);
	slab_set_part(slab, UNIT_FIRST);
	telemetry_map_own(slab);
	used = used * 7 % 300;
	fake_slab_use(slab, used);
}

static void map_again(void)
{
	telemetry_map(slab);
}

static void map_fresh(void)
{
	telemetry_map(fresh);
}

static void map_beside(void)
{
	telemetry_map(fresh + 1);
}

static void map(void)
{
	unsigned long k = 0, wrong = 0, pages;

	slab = fake_slab_born(0, 5, 1);
	for (; interleave(map_again, live_on, k); k++)
		wrong += fake_map_word(slab) != fake_map_truth(slab);
	ok(k > 20, "a slab dies and is born inside a store, at each of %lu instructions", k);
	ok_equal((long long)wrong, 0, "the word is of the last one");
	wrong = 0;
	for (k = 0; interleave(live_on, map_again, k); k++)
		wrong += fake_map_word(slab) != fake_map_truth(slab);
	ok(k > 100, "a store inside its death and birth, at each of %lu instructions", k);
	ok_equal((long long)wrong, 0, "the word is of the last one, too");
	wrong = 0;
	for (k = 0; interleave(use_more, map_again, k); k++)
		wrong += fake_map_word(slab) != fake_map_truth(slab);
	ok_equal((long long)wrong, 0, "and where its use changed");
	wrong = 0;
	for (k = 0, fresh = pools[0].window.first; k < 31; k++) {
		fresh += RING_MAP_UNITS;
		slab_write(fresh[0].part, UNIT_KEPT);
		slab_write(fresh[1].part, UNIT_KEPT);
		/* The same stretch is asked for twice: places in a page's giving. */
		pages = 3 * k;
		interleave(map_fresh, map_beside, pages);
		wrong += fake_map_word(&fresh[0]) != fake_map_truth(&fresh[0]) ||
			 fake_map_word(&fresh[1]) != fake_map_truth(&fresh[1]);
	}
	ok_equal((long long)wrong, 0, "two ask for the same page, and both are on it");
}

/* --- Pushes. --- */

static bool push(struct slab *s)
{
	uint64_t w = atomic_load(&s->remote);

	if (remote_state(w) != SLAB_LISTED || remote_count(w) >= remote_used(w))
		return false;
	return atomic_compare_exchange_strong(&s->remote, &w, remote_push(w, 1));
}

static void push_one(void)
{
	if (push(slab))
		tally_pushed(0, slab->cls, slab);
}

static void push_two(void)
{
	push_one();
	push_one();
}

static void list_it(void)
{
	slab_set_listed(slab);
	tally_row(0, slab->cls, {COUNT_active, -1}, {COUNT_partial, 1});
	telemetry_map(slab);
}

static void own_it(void)
{
	slab_set_owned(slab);
	tally_row(0, slab->cls, {COUNT_partial, -1}, {COUNT_active, 1});
	telemetry_map_own(slab);
}

/* Owned, with something out, some of it pushed before. */
static void make_owned(void)
{
	if (remote_state(atomic_load(&slab->remote)) == SLAB_LISTED)
		own_it();
	atomic_store(&slab->remote, remote_push(remote_taken(atomic_load(&slab->remote)), 1));
	slab->base = 99;
	slab->left = 1;
	fake_slab_use(slab, 100);
}

static void make_listed(void)
{
	make_owned();
	list_it();
}

/* It is taken, dies, and is born as another one. */
static void take_and_live_on(void)
{
	if (remote_state(atomic_load(&slab->remote)) == SLAB_LISTED)
		own_it();
	live_on();
}

static bool is_exact(void)
{
	uint64_t *live = atomic_load(&telemetry_words->live);
	bool exact = fake_map_word(slab) == fake_map_truth(slab);

	for (unsigned cls = 0; cls < 12; cls++)
		for (unsigned c = 0; c < COUNTER_COUNT; c++)
			exact &= ring_load(&live[cls * RING_ROW_WORDS + c]) ==
				 atomic_load(&pools[0].count[cls][c]);
	return exact;
}

static void pushes(void)
{
	static const struct {
		const char *name;
		void (*prepare)(void), (*one)(void), (*two)(void);
	} pairs[] = {
	    {"pushes inside a push", make_listed, push_one, push_two},
	    {"pushes inside its listing", make_owned, list_it, push_two},
	    {"pushes as it is taken", make_listed, own_it, push_two},
	    {"it is taken inside a push", make_listed, push_one, own_it},
	    {"it is taken, dies and is born inside a push", make_listed, push_one,
	     take_and_live_on},
	    {"it is taken, fills and is listed again inside a push", make_listed, push_one,
	     make_listed},
	    {"pushes as it is taken, dies and is born", make_listed, take_and_live_on, push_two},
	};

	for (unsigned i = 0; i < sizeof pairs / sizeof *pairs; i++) {
		unsigned long k = 0, wrong = 0;
		bool more = true;

		for (; more; k++) {
			slab = k % 50 ? slab : fake_slab_born(0, 5, 1);
			pairs[i].prepare();
			more = interleave(pairs[i].one, pairs[i].two, k);
			wrong += !is_exact();
		}
		ok(wrong == 0 && k > 30,
		   "%s, at each of %lu instructions: map and counters are exact", pairs[i].name, k);
	}
}

/* --- The ring. --- */

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
	const char *dir;
	char sub[80];
	struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};

	if (!(dir = folder_make("/tmp/numaslab-inter-XXXXXX")))
		return 1;
	snprintf(sub, sizeof sub, "%s/files", dir);
	sigaction(SIGTRAP, &action, NULL);
	fake_init(1, sub);
	telemetry_tick(1000);
	mirror();
	map();
	pushes();
	lap_in_reader(false);
	lap_in_reader(true);
	read_in_writer(false);
	read_in_writer(true);
	cut_in_writer();
	int status = tap_end();
	folder_remove();
	return status;
}
#endif
