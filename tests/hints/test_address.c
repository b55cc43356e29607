/* SPDX-License-Identifier: MIT */
/*
 * From an address to its slab, whatever the file says: known answers first, then files of random
 * words.  Built with the address and undefined-behaviour sanitizers.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "telemetry/ring.h"
#include "tests/telemetry/tap.h"
#include "tools/reader_address.h"

#define WINDOWS	  4u  /* three nodes and the large blocks */
#define SHIFT	  25u /* 32 MiB: a page of the map each */
#define BASE	  ((uint64_t)1 << 40)
#define UNIT	  ((uint64_t)1 << DECODE_UNIT_SHIFT)
#define CLASSES	  8u
#define MAP_PAGES 4u
#define ROUNDS	  4000

static char path[] = "/tmp/numaslab-address-XXXXXX";

struct file {
	struct ring_header header;
	char pad[RING_HEADER_SIZE - sizeof(struct ring_header)];
	struct ring_name names[COUNTER_COUNT];
	struct ring_class classes[CLASSES];
	struct ring_pool pools[WINDOWS];
	uint64_t live[WINDOWS * CLASSES][RING_ROW_WORDS];
	uint32_t dir[WINDOWS];
	uint64_t map[MAP_PAGES * RING_MAP_UNITS];
};

static void set_section(struct file *f, enum ring_section_type type, const void *at,
			uint64_t stride, uint64_t count)
{
	f->header.sections[type - 1] =
	    (struct ring_section){.type = type,
				  .stride = (uint32_t)stride,
				  .offset = (uint64_t)((const char *)at - (const char *)f),
				  .count = count};
}

static void fill(struct file *f)
{
	static const char *const names[] = {
#define X(name, unit, help) #name,
	    COUNTERS(X)
#undef X
	};
	struct ring_header *h = &f->header;

	memset(f, 0, sizeof *f);
	*h = (struct ring_header){.magic = RING_MAGIC,
				  .major = RING_MAJOR,
				  .minor = RING_MINOR,
				  .word_size = 8,
				  .file_size = sizeof *f,
				  .pid = 1,
				  .section_count = RING_SECTIONS,
				  .pool_stride = sizeof(struct ring_totals),
				  .base = BASE,
				  .span = (uint64_t)WINDOWS << SHIFT,
				  .map_at = 4096,
				  .dir_at = 8192,
				  .window_shift = SHIFT,
				  .window_count = WINDOWS};
	set_section(f, RING_NAMES, f->names, sizeof *f->names, COUNTER_COUNT);
	set_section(f, RING_CLASSES, f->classes, sizeof *f->classes, CLASSES);
	set_section(f, RING_POOLS, f->pools, sizeof *f->pools, WINDOWS);
	set_section(f, RING_LIVE, f->live, sizeof *f->live, WINDOWS * CLASSES);
	set_section(f, RING_SLAB_DIR, f->dir, sizeof *f->dir, WINDOWS);
	set_section(f, RING_SLAB_MAP, f->map, sizeof *f->map, MAP_PAGES * RING_MAP_UNITS);
	for (unsigned i = 0; i < COUNTER_COUNT; i++)
		snprintf(f->names[i].name, RING_NAME_SIZE, "%s", names[i]);
	for (unsigned i = 1; i < CLASSES; i++)
		f->classes[i] = (struct ring_class){.size = 16 * i, .slab_bytes = 65536};
	for (unsigned i = 0; i < WINDOWS; i++)
		f->pools[i] = i + 1 < WINDOWS
				  ? (struct ring_pool){.node = (int32_t)i * 2}
				  : (struct ring_pool){.node = -1, .flags = RING_POOL_LARGE};
	for (unsigned i = 0; i + 1 < WINDOWS; i++)
		f->dir[i] = i + 1;
}

static void write_file(const struct file *f)
{
	int fd = open(path, O_WRONLY | O_TRUNC);

	if (fd < 0 || write(fd, f, sizeof *f) != (ssize_t)sizeof *f)
		abort();
	close(fd);
}

static struct reader *open_file(const struct file *f, struct hints_geometry *g, bool *has_map)
{
	char why[READER_WHY_SIZE];
	struct reader *r;

	write_file(f);
	*has_map = false;
	if (reader_open(&r, path, why) != READER_OK)
		return NULL;
	*has_map = reader_geometry(r, g);
	return r;
}

static uint64_t slab_word(unsigned state, unsigned class, unsigned pool, unsigned generation)
{
	return state | class << 8 | pool << 16 | (uint64_t)generation << 48;
}

static void known(void)
{
	struct file *f = malloc(sizeof *f);
	struct hints_geometry g;
	struct hints_place p;
	bool has_map;

	fill(f);
	f->map[RING_MAP_UNITS + 5] = slab_word(RING_MAP_FULL, 3, 2, 77); /* landed elsewhere */
	f->map[RING_MAP_UNITS + 6] = RING_MAP_INNER | (uint64_t)1 << 32;
	f->map[RING_MAP_UNITS + 7] = RING_MAP_INNER | (uint64_t)2 << 32;
	f->map[9] = slab_word(RING_MAP_PARTIAL, 7, 0, 65535);
	f->map[10] = slab_word(RING_MAP_EMPTY, 0, 0, 9);
	f->map[11] = RING_MAP_INNER | (uint64_t)65535 << 32;
	f->map[12] = slab_word(RING_MAP_ACTIVE, 200, 0, 1); /* no such class */
	f->map[13] = slab_word(RING_MAP_ACTIVE, 1, 200, 1); /* no such pool */
	f->map[14] = slab_word(7, 1, 0, 1);
	struct reader *r = open_file(f, &g, &has_map);
	ok(r && has_map && g.base == BASE && g.window_count == WINDOWS && g.map_pages == MAP_PAGES,
	   "a sound file has a slab map");

	uint64_t window = BASE + ((uint64_t)1 << SHIFT);
	for (unsigned u = 5; u <= 7; u++) {
		reader_resolve(r, &g, window + u * UNIT + 4711, &p);
		ok(p.decoded == DECODED_SLAB && p.class == 3 && p.generation == 77 &&
		       reader_pool_node(r, p.pool) == 4 && p.unit == RING_MAP_UNITS + 5,
		   "unit %u of a slab of three units", u - 5);
	}
	reader_resolve(r, &g, BASE + 9 * UNIT, &p);
	ok(p.decoded == DECODED_SLAB && p.class == 7 && p.generation == 65535,
	   "a slab of one unit");
	reader_resolve(r, &g, BASE + 10 * UNIT, &p);
	ok(p.decoded == DECODED_FREE, "memory that is kept is no slab");
	reader_resolve(r, &g, BASE + 400 * UNIT, &p);
	ok(p.decoded == DECODED_FREE, "nor is what was never used");
	for (unsigned u = 11; u <= 14; u++) {
		reader_resolve(r, &g, BASE + u * UNIT, &p);
		ok(p.decoded == DECODED_DAMAGED, "a word that cannot be: %u", u - 11);
	}
	reader_resolve(r, &g, BASE + (((uint64_t)WINDOWS - 1) << SHIFT) + 12345, &p);
	ok(p.decoded == DECODED_LARGE, "the window of large blocks");
	reader_resolve(r, &g, BASE - 1, &p);
	ok(p.decoded == DECODED_OUTSIDE, "below the windows");
	reader_resolve(r, &g, BASE + ((uint64_t)WINDOWS << SHIFT), &p);
	ok(p.decoded == DECODED_OUTSIDE, "above the windows");
	ok(truncate(path, RING_HEADER_SIZE) == 0, "the file is cut");
	reader_resolve(r, &g, BASE + 9 * UNIT, &p);
	ok(p.decoded == DECODED_UNREAD, "then a word cannot be read, and that is all");
	reader_close(r);
	free(f);
}

/* --- Whatever it says. --- */

static uint64_t state = 20260501;

static uint64_t random_word(void)
{
	uint64_t z = state += 0x9e3779b97f4a7c15u; /* splitmix64, public domain (S. Vigna) */

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

static void spoil(struct file *f)
{
	size_t header_words = offsetof(struct ring_header, head) / 8;
	uint64_t kind = random_word() % 4;

	for (uint64_t n = random_word() % 8; kind == 0 && n > 0; n--) {
		size_t at = 18 + random_word() % (header_words - 18); /* sections, addresses */

		((uint64_t *)&f->header)[at] = random_word() >> random_word() % 64;
	}
	for (size_t i = 0; kind == 1 && i < WINDOWS; i++)
		f->dir[i] = (uint32_t)random_word() >> random_word() % 32;
	for (size_t i = 0; kind >= 1 && i < MAP_PAGES * RING_MAP_UNITS; i++)
		f->map[i] =
		    kind == 2 ? random_word() : RING_MAP_INNER | (random_word() & 0xffff) << 32;
}

static bool is_sound(const struct reader *r, const struct hints_geometry *g, uint64_t address)
{
	struct hints_place p;

	reader_resolve(r, g, address, &p);
	if (p.decoded == DECODED_OUTSIDE || p.decoded == DECODED_UNREAD)
		return true;
	if ((uint64_t)p.unit << DECODE_UNIT_SHIFT >= g->span || p.decoded > DECODED_DAMAGED)
		return false;
	return p.decoded != DECODED_SLAB ||
	       (reader_class_size(r, p.class) > 0 && reader_pool_node(r, p.pool) >= 0);
}

static void hostile(void)
{
	struct file *good = malloc(sizeof *good), *f = malloc(sizeof *f);
	unsigned opened = 0, mapped = 0, bad = 0;

	fill(good);
	for (int round = 0; round < ROUNDS; round++) {
		struct hints_geometry g;
		bool has_map;

		*f = *good;
		spoil(f);
		struct reader *r = open_file(f, &g, &has_map);
		if (!r)
			continue;
		opened++;
		mapped += has_map;
		for (int i = 0; has_map && i < 20; i++)
			bad += !is_sound(r, &g,
					 i % 2 ? g.base + random_word() % (g.span ? g.span : 1)
					       : random_word());
		reader_close(r);
	}
	ok(opened > ROUNDS / 4 && mapped > ROUNDS / 4, "files that lie: %u opened, %u with a map",
	   opened, mapped);
	ok(bad == 0, "each answer is one that there is");
	free(good);
	free(f);
}

int main(void)
{
	int fd = mkstemp(path);

	if (fd < 0)
		return 2;
	close(fd);
	known();
	hostile();
	unlink(path);
	return tap_end();
}
