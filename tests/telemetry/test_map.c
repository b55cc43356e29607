/* SPDX-License-Identifier: MIT */
/* The slab map, writer and reader in one process: every state, pages given and lost, damage. */
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "telemetry/pub.h"
#include "tests/telemetry/fake.h"
#include "tests/telemetry/folder.h"
#include "tests/telemetry/tap.h"
#include "tools/reader.h"

static char path[600];

static bool find_file(const char *dir)
{
	struct dirent *e;
	DIR *d = opendir(dir);

	*path = 0;
	while (d && (e = readdir(d)))
		if (e->d_name[0] >= '0' && e->d_name[0] <= '9' && !strchr(e->d_name, '.'))
			snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
	if (d)
		closedir(d);
	return *path;
}

static struct reader *open_reader(void)
{
	char why[READER_WHY_SIZE];
	struct reader *r;

	if (reader_open(&r, path, why) != READER_OK) {
		printf("# %s\n", why);
		return NULL;
	}
	return r;
}

/* --- What the reader says against the descriptors. --- */

static bool unit_is_right(const struct reader_unit *u)
{
	const struct slab *s = (const struct slab *)layout.table + u->unit;
	uint64_t w = fake_map_truth(s);

	if (u->state == READER_UNIT_FREE || u->state == READER_UNIT_EMPTY) {
		for (unsigned i = 0; i < u->units; i++)
			if ((fake_map_truth(s + i) & 7) != u->state)
				return false;
		return true;
	}
	if (u->units != s->units || (w & 7) != u->state)
		return false;
	return u->state == READER_UNIT_LARGE ||
	       (u->cls == (w >> 8 & 255) && u->pool == (w >> 16 & 255) &&
		u->used == (w >> 32 & 0xffff) && u->generation == w >> 48 &&
		u->misplaced == (w >> 3 & 1));
}

/* How many units the descriptors have in the states that the reader lists. */
static uint64_t truth_units(void)
{
	uint64_t n = 0;

	for (unsigned i = 0; i <= topology.count; i++)
		for (size_t u = 0; u < pools[i].window.top; u++) {
			const struct slab *s = pools[i].window.first + u;
			uint64_t w = fake_map_truth(s);

			n += (w & 7) == 6 ? s->units : i < topology.count && w != 0;
		}
	return n;
}

static bool map_is_right(struct reader *r, struct reader_map *m)
{
	uint64_t units = 0, wrong = 0;
	uint32_t last = 0;

	if (reader_map(r, m) != READER_OK || !m->there || m->base != layout.base)
		return false;
	for (size_t i = 0; i < m->count; i++) {
		wrong += !unit_is_right(&m->unit[i]) || m->unit[i].unit < last;
		last = m->unit[i].unit + m->unit[i].units;
		units += m->unit[i].units;
	}
	if (wrong || units != truth_units() || m->odd || m->lost || m->left_out)
		printf("# %lu wrong of %zu, %lu units, want %lu; odd %lu, lost %lu\n",
		       (unsigned long)wrong, m->count, (unsigned long)units,
		       (unsigned long)truth_units(), (unsigned long)m->odd, (unsigned long)m->lost);
	return wrong == 0 && units == truth_units() && m->odd == 0 && m->lost == 0;
}

static void each_state(struct reader *r)
{
	struct reader_map m = {0};
	struct slab *full = fake_slab_born(0, 9, 400), *listed = fake_slab_born(0, 9, 100);

	full->base = listed->base = 99; /* as slab_set_used() */
	full->left = listed->left = 1;
	ok(slab_set_full(full, false), "a slab becomes full");
	fake_slab_use(full, class_slab_units(9) * UNIT_SIZE / class_size(9));
	telemetry_map(full);
	slab_set_listed(listed);
	telemetry_map(listed);
	fake_slab_born(1, CLASS_WIDE_FIRST + 3, 7);
	fake_slab_dies(fake_slab_born(1, CLASS_COUNT - 1, 2), true);
	fake_slab_dies(fake_slab_born(1, 3, 2), false);
	fake_large(700);
	fake_large(1);
	ok(map_is_right(r, &m), "the reader has what the descriptors have, state by state");
	ok_equal((long long)m.pool[0].state[READER_UNIT_FULL], 1, "a full slab on node 0");
	ok_equal((long long)m.pool[0].state[READER_UNIT_PARTIAL], 1, "a partial one");
	ok_equal((long long)m.pool[1].state[READER_UNIT_EMPTY], 8, "eight units kept on node 2");
	ok_equal((long long)m.pool[1].state[READER_UNIT_FREE], 1, "one given back");
	ok_equal((long long)m.pool[2].state[READER_UNIT_LARGE], 2, "two large blocks");
	ok_equal((long long)m.pool[2].large_units, 701, "of 701 units");
	fake_slab_dies(full, true);
	ok(map_is_right(r, &m), "and after a death, without a tick");
	reader_map_free(&m);
}

static void generations(void)
{
	struct slab *s = fake_slab_born(0, 5, 1);

	for (unsigned i = 1; i < 65536; i++) {
		fake_slab_dies(s, i % 2);
		slab_init(s, 1 + i % 64, 0);
		slab_set_part(s, UNIT_FIRST);
	}
	telemetry_map(s);
	ok_equal((long long)(fake_map_word(s) >> 48), 0, "the generation counts modulo 65536");
	ok(fake_map_word(s) == fake_map_truth(s), "and the rest of the word is not touched by it");
}

/* Lives and deaths at random over many pages of the map. */
static void at_random(struct reader *r)
{
	struct slab *slab[600] = {NULL};
	struct reader_map m = {0};
	uint64_t state = 88172645463325252;
	unsigned good = 0;

	for (unsigned i = 0; i < 20000; i++) {
		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
		struct slab **at = &slab[state % 600];
		unsigned cls = 1 + (state >> 20) % (CLASS_COUNT - 1);

		if (!*at)
			*at = fake_slab_born(state >> 40 & 1, (state >> 50) % 8 ? 30 : cls, 1);
		else if (state >> 60 & 3)
			fake_slab_use(*at, (unsigned)(state >> 30) % (*at)->capacity);
		else {
			fake_slab_dies(*at, state >> 58 & 1);
			*at = NULL;
		}
		if (i % 1000 == 999)
			good += map_is_right(r, &m);
	}
	ok_equal(good, 20, "20 times in a random life the map is right");
	ok(pools[0].window.top > 4 * RING_MAP_UNITS, "which went over several pages");
	reader_map_free(&m);
}

/* --- Pages that are not to be had. --- */

/* The last unit of a page's stretch; whether it is on the map. */
static bool keep_last(struct pool *p, unsigned page)
{
	struct slab *s = p->window.first + (page + 1) * RING_MAP_UNITS - 1;

	slab_write(s->part, UNIT_KEPT);
	telemetry_map(s);
	return fake_map_word(s) == fake_map_truth(s);
}

#define WALL (1u << 20) /* bytes: more than the map would grow by */

static void lost_pages(struct reader *r)
{
	struct map_writer *w = atomic_load(&telemetry_words->map);
	struct reader_map m = {0};
	size_t pages = w->pages, far = 20 * RING_MAP_UNITS;

	w->pages = w->given;
	pools[0].window.top = far;
	struct slab *s = fake_slab_born(0, 5, 3);
	fake_slab_use(s, 4);
	ok(reader_map(r, &m) == READER_OK && m.lost == 1, "where no page is left, one is lost");
	ok(fake_map_word(s) == 0 && m.odd == 0, "and that stretch is not on the map");
	w->pages = pages;
	fake_slab_use(s, 5);
	pools[0].window.top = far + RING_MAP_UNITS;
	struct slab *next = fake_slab_born(0, 5, 3);
	ok(fake_map_word(s) == 0, "it is not asked for again");
	ok(fake_map_word(next) == fake_map_truth(next), "the next one is");
	/* Another thread has grown the mapping, and not said so yet. */
	unsigned i = 0;
	for (; i < 64 && w->given < 32; i++)
		keep_last(&pools[i / 32], i % 32);
	w->mapped = MAP_STEP;
	ok(keep_last(&pools[i / 32], i % 32) && w->given == 33,
	   "where another thread grows the mapping, ours is there all the same (%u)",
	   (unsigned)w->given);
	ok(!w->view || msync(w->view + w->dir_bytes, w->mapped, MS_ASYNC) == 0, "and in the view");
	/* Somebody else's mapping where the map would grow. */
	size_t end = w->mapped;
	char *wall = mmap(w->words + end, WALL, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	unsigned lost = 0, spoilt = 0;
	for (i = 0; i < 32; i++)
		lost += !keep_last(&pools[1], i);
	ok(wall != MAP_FAILED && lost > 0,
	   "a mapping in its way stops the map there (%u of 32 places lost)", lost);
	for (i = 0; wall != MAP_FAILED && i < WALL; i++)
		spoilt += wall[i] != 0;
	ok_equal(spoilt, 0, "and nothing is stored in it");
	reader_map(r, &m);
	ok_equal((long long)m.lost, lost + 1, "each is counted");
	munmap(wall, WALL);
	reader_map_free(&m);
}

/* A limit on the file's size: a shorter history, then no map; in a process of its own. */
static void be_limited(const char *dir, uint64_t kib)
{
	struct rlimit limit = {kib << 10, kib << 10};

	setrlimit(RLIMIT_FSIZE, &limit);
	fake_init(2, dir);
	fake_slab_born(0, 5, 10);
	telemetry_tick(1000);
	_exit(0);
}

static void limited(const char *parent, uint64_t kib, bool want)
{
	struct reader_map m = {0};
	struct reader *r = NULL;
	char dir[80];
	int status;

	snprintf(dir, sizeof dir, "%s/limit-%u", parent, (unsigned)kib);
	pid_t child = fork();
	if (child == 0)
		be_limited(dir, kib);
	waitpid(child, &status, 0);
	ok(status == 0 && find_file(dir) && (r = open_reader()), "a file of at most %u KiB",
	   (unsigned)kib);
	ok(r && reader_map(r, &m) == READER_OK && m.there == want, "with%s a map",
	   want ? "" : "out");
	reader_map_free(&m);
	reader_close(r);
}

/* --- Damage. --- */

static struct ring_header header;
static int damaged_fd;

static uint64_t swap(uint64_t at, uint64_t value, size_t size)
{
	uint64_t old = 0;

	if (pread(damaged_fd, &old, size, (off_t)at) != (ssize_t)size ||
	    pwrite(damaged_fd, &value, size, (off_t)at) != (ssize_t)size)
		puts("# the file cannot be changed");
	return old;
}

static uint64_t dir_at(unsigned place)
{
	return header.sections[RING_SLAB_DIR - 1].offset + place * sizeof(uint32_t);
}

static uint64_t word_at(unsigned unit)
{
	uint32_t page = 0;

	if (pread(damaged_fd, &page, 4, (off_t)dir_at(unit / 512)) != 4 || page == 0)
		return 0;
	return header.sections[RING_SLAB_MAP - 1].offset + (page - 1) * 4096ul + unit % 512 * 8;
}

/* One word changed: the map is read all the same, and some of it left out. */
static void damage(struct reader *r, uint64_t at, uint64_t value, size_t size, const char *what)
{
	struct reader_map m = {0};
	uint64_t old = swap(at, value, size);
	enum reader_result result = reader_map(r, &m);
	uint32_t end = 0;
	bool good = result == READER_OK && m.odd > 0;

	for (size_t i = 0; i < m.count; i++) {
		good &= m.unit[i].unit >= end && m.unit[i].units > 0 && m.unit[i].pool < 3;
		end = m.unit[i].unit + m.unit[i].units;
	}
	ok(good && end <= 3 * 16384, "%s: left out", what);
	swap(at, old, size);
	reader_map_free(&m);
}

static void refused(uint64_t at, uint64_t value, size_t size, const char *what)
{
	char why[READER_WHY_SIZE];
	uint64_t old = swap(at, value, size);
	struct reader *r;
	enum reader_result result = reader_open(&r, path, why);

	ok(result == READER_DAMAGED && strstr(why, "slab map"), "%s: refused (%s)", what, why);
	if (result == READER_OK)
		reader_close(r);
	swap(at, old, size);
}

static void damages(void)
{
	struct reader *r = open_reader();
	unsigned wide = 0, large = 2 * 16384;

	damaged_fd = open(path, O_RDWR);
	if (!r || pread(damaged_fd, &header, sizeof header, 0) != sizeof header)
		return;
	damage(r, dir_at(0), UINT32_MAX, 4, "a page beyond the map");
	damage(r, dir_at(7), 1, 4, "a page of two places");
	damage(r, word_at(wide), 7, 8, "no state at all");
	damage(r, word_at(wide), 0xff01, 8, "a class that is none");
	damage(r, word_at(wide), 0x0001, 8, "the class of nothing");
	damage(r, word_at(wide), 0xff0501, 8, "a pool that is none");
	damage(r, word_at(wide), 0x020501, 8, "a slab on the large blocks' pool");
	damage(r, word_at(wide + 2), 0x501, 8, "a slab inside a wide one");
	damage(r, word_at(wide + 1), 0x300000005, 8, "an inner unit that leads elsewhere");
	damage(r, word_at(wide + 3), 0x000000005, 8, "one that leads to itself");
	damage(r, word_at(wide + 20), 0xffff00000005, 8, "one that leads before the beginning");
	damage(r, word_at(wide), 0x100000006, 8, "a large block among slabs");
	damage(r, word_at(large), 0x501, 8, "a slab among large blocks");
	damage(r, word_at(large), 0x6, 8, "a large block of nothing");
	damage(r, word_at(large), 0xffffffff00000006, 8, "a large block beyond everything");
	damage(r, word_at(large), 0x400000006, 8, "a large block over the next one");
	refused(368, 24, 4, "a window shorter than a page of the map");
	refused(368, 63, 4, "a window longer than everything");
	refused(372, 4, 4, "more windows than pools");
	refused(344, (uint64_t)4 << 30, 8, "a span that is not the windows'");
	refused(336, UINT64_MAX - 65535, 8, "a base at the end");
	refused(144 + 24 * 6 + 16, 97, 8, "a directory longer than the span");
	refused(144 + 24 * 6 + 4, 8, 4, "entries that are too long");
	refused(144 + 24 * 5 + 8, UINT64_MAX - 7, 8, "a map outside the file");
	refused(144 + 24 * 5 + 16, UINT64_MAX / 8, 8, "a map longer than the file");
	struct reader_map m = {0};
	ok(truncate(path, 8192) == 0 && reader_map(r, &m) == READER_DAMAGED,
	   "a file cut while open is an error, no signal");
	reader_map_free(&m);
	reader_close(r);
	close(damaged_fd);
}

/* A small map of a process that ended. */
static void be_damaged(const char *dir)
{
	fake_init(2, dir);
	fake_slab_born(0, CLASS_WIDE_FIRST, 3);
	for (unsigned i = 0; i < 20; i++)
		fake_slab_born(0, 5 + i, 10);
	fake_large(3);
	fake_large(3);
	telemetry_tick(1000);
	_exit(0);
}

int main(void)
{
	const char *dir;
	char sub[80];
	int status;

	if (!(dir = folder_make("/tmp/numaslab-map-XXXXXX")))
		return 1;
	snprintf(sub, sizeof sub, "%s/damaged", dir);
	pid_t child = fork();
	if (child == 0)
		be_damaged(sub);
	waitpid(child, &status, 0);
	if (ok(find_file(sub), "a file to damage"))
		damages();
	limited(dir, 300, false);
	limited(dir, 700, true);
	snprintf(sub, sizeof sub, "%s/files", dir);
	fake_init(2, sub);
	fake_slab_born(0, 5, 10);
	telemetry_tick(1000);
	struct reader *r = find_file(sub) ? open_reader() : NULL;
	if (ok(r != NULL, "a process with a map")) {
		each_state(r);
		generations();
		at_random(r);
		lost_pages(r);
	}
	reader_close(r);
	status = tap_end();
	folder_remove();
	_exit(status);
}
