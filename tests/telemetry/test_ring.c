/* SPDX-License-Identifier: MIT */
/* Writer and reader of the ring in one process: pins, the stuck reader, wrap, exactness. */
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/telemetry/fake.h"
#include "tests/telemetry/folder.h"
#include "tests/telemetry/tap.h"
#include "tools/reader.h"

#define ENTRIES 2048

static char path[600];
static struct ring_pin *pins;
static uint64_t now = 1000;

static void find_file(const char *dir)
{
	struct dirent *e;
	DIR *d = opendir(dir);

	while (d && (e = readdir(d)))
		if (!strchr(e->d_name, '.'))
			snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
	closedir(d);
}

static void map_pins(void)
{
	char name[620];

	snprintf(name, sizeof name, "%s.pins", path);
	int fd = open(name, O_RDWR);
	pins = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
}

static void ticks(unsigned n)
{
	while (n--)
		telemetry_tick(now++);
}

static struct reader *open_reader(void)
{
	char why[READER_WHY_SIZE];
	struct reader *r;
	enum reader_result result = reader_open(&r, path, why);

	if (!ok(result == READER_OK, "the reader opens the file"))
		printf("# %s\n", why);
	return r;
}

static bool has_entry(struct reader *r, uint64_t n)
{
	struct reader_history h = {0};
	bool found = false;

	reader_history(r, 0, ENTRIES, &h);
	for (size_t i = 0; i < h.count; i++)
		found |= h.point[i].entry == n;
	reader_history_free(&h);
	return found;
}

static uint64_t newest(struct reader *r)
{
	struct reader_history h = {0};

	reader_history(r, 0, 1, &h);
	uint64_t n = h.count ? h.point[0].entry : 0;
	reader_history_free(&h);
	return n;
}

static void live_is_exact(struct reader *r)
{
	struct reader_snapshot s = {0};

	struct slab *slab = fake_slab_born(0, 7, 33);
	ok(reader_snapshot(r, &s) == READER_OK, "a snapshot is read");
	ok_equal((long long)s.pool[0].sum.counter[COUNT_used], 43,
		 "live counters are exact without a tick");
	ok_equal((long long)s.pool[0].sum.used_bytes, 10 * 80 + 33 * 112, "and their bytes");
	fake_slab_dies(slab, false);
	reader_snapshot(r, &s);
	ok_equal((long long)s.pool[0].sum.counter[COUNT_used], 10, "after the slab's death, too");
	ok_equal((long long)s.count[0].counter[COUNT_released], 65536, "and what was returned");
	ok_equal(s.pool[2].node, -1, "the last pool is the large blocks'");
	ok(s.live, "the process lives");
	reader_snapshot_free(&s);
}

static void history_wraps(struct reader *r)
{
	struct reader_history h = {0};
	bool rising = true;

	ticks(3 * ENTRIES);
	reader_history(r, 0, ENTRIES, &h);
	for (size_t i = 1; i < h.count; i++)
		rising &= h.point[i].entry == h.point[i - 1].entry + 1 &&
			  h.point[i].time_ms > h.point[i - 1].time_ms;
	ok(h.count == ENTRIES - 1, "after the wrap all entries but the next to go are read");
	ok(rising, "they are in order");
	ok(h.count && h.point[h.count - 1].entry == newest(r), "the last is the newest");
	reader_history_free(&h);
	reader_history(r, newest(r) - 5, ENTRIES, &h);
	ok_equal((long long)h.count, 5, "only those after a number are read");
	reader_history_free(&h);
}

/* A reader in an entry: it stays until the pin goes, or 60 s of the writer's time. */
static void pin_is_honoured(struct reader *r)
{
	uint64_t n = newest(r) - 100;

	pins[7].entry = n;
	ticks(ENTRIES + 50);
	ok(newest(r) > n + ENTRIES, "the writer went on past a pinned entry");
	int fd = open(path, O_RDONLY);
	struct ring_header h;
	uint64_t generation = 0;
	if (pread(fd, &h, sizeof h, 0) != sizeof h ||
	    pread(fd, &generation, 8,
		  (off_t)(h.sections[RING_HISTORY - 1].offset +
			  n % ENTRIES * h.sections[RING_HISTORY - 1].stride)) != 8)
		generation = 1;
	ok_equal((long long)generation, (long long)n, "a pinned entry is not overwritten");
	ok(h.skipped >= 1, "its slot was passed over, and counted");
	ticks(ENTRIES);
	now += RING_STUCK_MS;
	ticks(ENTRIES);
	if (pread(fd, &generation, 8,
		  (off_t)(h.sections[RING_HISTORY - 1].offset +
			  n % ENTRIES * h.sections[RING_HISTORY - 1].stride)) != 8)
		generation = n;
	ok(generation > n, "a pin unchanged for 60 s is overtaken, and the generation tells");
	pins[7].entry = 0;
	close(fd);
}

/* All pins in a row: the writer tries a bounded number of slots and goes on. */
static void hostile_pins_do_not_stop(struct reader *r)
{
	uint64_t n = newest(r);

	for (unsigned i = 0; i < RING_PINS; i++)
		pins[i].entry = n + 1 + i + ENTRIES;
	ticks(1);
	ok_equal((long long)newest(r), (long long)(n + 1 + RING_PINS),
		 "64 slots pinned in a row are passed over in one tick");
	memset(pins, 0xff, RING_PINS * sizeof *pins);
	ticks(ENTRIES);
	ok(newest(r) > n + ENTRIES / 2, "whatever stands in the pins, the history goes on");
	memset(pins, 0, RING_PINS * sizeof *pins);
	pins->touched = 1;
}

static void reader_sets_its_pin(struct reader *r)
{
	ok(reader_info(r)->has_pins, "the reader has a pin");
	struct reader *other = open_reader();
	ok(reader_info(other)->has_pins, "and so has a second reader");
	reader_close(other);
	ok(has_entry(r, newest(r)), "the newest entry is read through it");
	bool clear = true;
	for (unsigned i = 0; i < RING_PINS; i++)
		clear &= pins[i].entry == 0;
	ok(clear, "no pin stays set");
}

/* A reader maps the pins: only then they count. */
static void untouched_pins_are_empty(struct reader *r)
{
	uint64_t n = newest(r), next = n + 1;

	pins->touched = 0;
	pins[3].entry = next + ENTRIES;
	ticks(1);
	ok_equal((long long)newest(r), (long long)next,
		 "pins that nobody touched are not looked at");
	pins->touched = 1;
	pins[3].entry = next + 1 + ENTRIES;
	ticks(1);
	ok_equal((long long)newest(r), (long long)next + 2, "and touched they are");
	pins[3].entry = 0;
}

static void identity_is_of_the_file(const struct reader *r)
{
	const struct reader_info *info = reader_info(r);
	struct reader *again = open_reader();
	struct reader_info next = *info;

	ok(again && reader_id(reader_info(again)) == reader_id(info),
	   "a file opened again has its identity");
	reader_close(again);
	next.publish_ms++;
	ok(reader_id(&next) != reader_id(info), "the next file with that inode has its own");
	next = *info;
	next.inode++;
	ok(reader_id(&next) != reader_id(info), "so has another file of that time");
}

static void file_is_cut(struct reader *r)
{
	struct reader_snapshot s = {0};
	struct reader_history h = {0};

	if (truncate(path, 4096) < 0)
		puts("# truncate failed");
	ok(reader_snapshot(r, &s) == READER_DAMAGED,
	   "a file cut while open is an error, no signal");
	ok(reader_history(r, 0, 10, &h) == READER_DAMAGED, "its history, too");
	reader_snapshot_free(&s);
	reader_history_free(&h);
	char why[READER_WHY_SIZE];
	struct reader *again;
	ok(reader_open(&again, path, why) == READER_DAMAGED, "it does not open again");
	printf("# %s\n", why);
}

int main(void)
{
	const char *dir;
	char sub[80];

	if (!(dir = folder_make("/tmp/numaslab-ring-XXXXXX")))
		return 1;
	snprintf(sub, sizeof sub, "%s/files", dir);
	fake_init(2, sub);
	fake_slab_born(0, 5, 10);
	ticks(1);
	find_file(sub);
	struct reader *r = open_reader();
	if (!r)
		return tap_end();
	map_pins();
	live_is_exact(r);
	history_wraps(r);
	pin_is_honoured(r);
	hostile_pins_do_not_stop(r);
	reader_sets_its_pin(r);
	untouched_pins_are_empty(r);
	identity_is_of_the_file(r);
	file_is_cut(r);
	reader_close(r);
	int status = tap_end();
	folder_remove();
	_exit(status);
}
