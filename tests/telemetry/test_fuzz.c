/* SPDX-License-Identifier: MIT */
/*
 * The reader against spoilt files: header, table of contents, tables, ring, slab map and names are
 * overwritten at random (the seed is the argument), the file is cut.  Built with the address and
 * undefined behaviour sanitizers.  Whatever opens must give sound snapshots and safe text.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/telemetry/fake.h"
#include "tests/telemetry/folder.h"
#include "tests/telemetry/tap.h"
#include "tools/map_text.h"
#include "tools/reader_json.h"
#include "tools/reader_text.h"

static const char *dir;
static char sub[80], path[600];
static uint64_t state;
static unsigned long opened, refused, unsound, unsafe, foreign_result, cut, mapped, odd;
static unsigned long whys[8];
static uint64_t dir_at, map_at;

static uint64_t draw(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static uint64_t odd_value(void)
{
	static const uint64_t values[] = {0,
					  1,
					  2,
					  7,
					  8,
					  63,
					  64,
					  255,
					  4096,
					  0x7fffffff,
					  0x80000000,
					  0xffffffff,
					  0x7fffffffffffffff,
					  0x8000000000000000,
					  UINT64_MAX,
					  UINT64_MAX - 7};

	return draw() % 3 ? values[draw() % (sizeof values / sizeof *values)]
			  : draw() >> draw() % 64;
}

/* A small file with two nodes, some slabs, a full ring. */
static bool make_file(void)
{
	struct dirent *e;
	int status;
	pid_t child = fork();

	if (child == 0) {
		struct rlimit limit = {600 << 10, 600 << 10};

		setrlimit(RLIMIT_FSIZE, &limit);
		fake_init(2, sub);
		fake_slab_born(0, 5, 10);
		fake_slab_born(1, 100, 3);
		fake_slab_born(1, 120, 3);
		for (unsigned i = 0; i < 100; i++)
			fake_slab_born(i % 2, 1 + i, i % 8);
		fake_slab_dies(fake_slab_born(0, 9, 3), true);
		fake_large(3);
		fake_large(4000);
		fake_add(2, 0, COUNT_used, 5 << 20);
		for (uint64_t now = 1000; now < 1400; now++)
			telemetry_tick(now);
		_exit(0);
	}
	waitpid(child, &status, 0);
	DIR *d = opendir(sub);
	while (d && (e = readdir(d)))
		if (!strchr(e->d_name, '.'))
			snprintf(path, sizeof path, "%s/%s", sub, e->d_name);
	if (d)
		closedir(d);
	return *path;
}

static void check_sound(const struct reader_snapshot *s)
{
	for (unsigned i = 0; i < s->pools; i++) {
		uint64_t used = 0, slots = 0;

		for (unsigned cls = 0; cls < s->classes; cls++) {
			const struct reader_counts *c = &s->count[(size_t)i * s->classes + cls];

			used += c->counter[COUNT_used];
			slots += c->counter[COUNT_slots];
			unsound += s->pool[i].node >= 0 &&
				   c->counter[COUNT_used] > c->counter[COUNT_slots];
		}
		unsound += used != s->pool[i].sum.counter[COUNT_used] ||
			   slots != s->pool[i].sum.counter[COUNT_slots];
	}
}

static void check_map(const struct reader_map *m)
{
	uint32_t end = 0;

	for (size_t i = 0; i < m->count; i++) {
		const struct reader_unit *u = &m->unit[i];

		unsound += u->unit < end || u->units == 0 || u->unit + u->units < u->unit ||
			   u->pool >= m->pools || u->state >= READER_UNIT_STATES;
		end = u->unit + u->units;
	}
	mapped += m->there && m->count > 100;
	odd += m->odd > 0;
}

static void check_text(char *text)
{
	for (unsigned char *c = (unsigned char *)text; *c; c++)
		unsafe += (*c < 0x20 && *c != '\n') || *c == 0x7f;
}

static void show(struct reader *r, struct reader_snapshot *s, struct reader_history *h,
		 struct reader_map *m)
{
	struct process p = {.info = reader_info(r), .now = *s};
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	struct json j = {.out = out};

	json_process(&j, p.info, s, NULL, m, h);
	text_process(out, &p, NULL, h);
	map_put_text(out, m, s->pool);
	fclose(out);
	check_text(text);
	free(text);
}

static void look(void)
{
	static struct reader_snapshot s;
	struct reader_history h = {0};
	struct reader_map m = {0};
	char why[READER_WHY_SIZE];
	struct reader *r;
	enum reader_result result = reader_open(&r, path, why);

	whys[result]++;
	if (result != READER_OK) {
		refused++;
		foreign_result += result != READER_DAMAGED && result != READER_VERSION;
		check_text(why);
		unsafe += !*why;
		return;
	}
	opened++;
	if (reader_snapshot(r, &s) != READER_OK) {
		cut++;
	} else {
		check_sound(&s);
		if (reader_history(r, draw() % 2 ? 0 : draw(), 1 + draw() % 300, &h) != READER_OK)
			cut++;
		if (reader_map(r, &m) == READER_OK)
			check_map(&m);
		else
			cut++;
		show(r, &s, &h, &m);
	}
	reader_map_free(&m);
	reader_history_free(&h);
	reader_snapshot_free(&s);
	reader_close(r);
}

/* Where it hurts: mostly the header and the tables, or the map; words and bytes. */
static void spoil(unsigned char *file, size_t size)
{
	unsigned n = 1 + draw() % 4;
	bool places = draw() % 2;

	while (n--) {
		size_t room = draw() % 4 ? 448 : draw() % 2 ? 8192 : size;
		size_t width = (size_t)1 << draw() % 4;
		size_t at = draw() % (room / width) * width;
		if (places) {
			size_t from = draw() % 2 ? dir_at : map_at;

			at = from + draw() % (4096 / width) * width;
		}
		uint64_t value = odd_value();

		memcpy(file + at, &value, at + width <= size ? width : 0);
	}
}

int main(int argc, char **argv)
{
	unsigned long runs = argc > 1 ? strtoul(argv[1], NULL, 0) : 4000;
	struct stat st;

	state = argc > 2 ? strtoull(argv[2], NULL, 0) : 20250101;
	if (!(dir = folder_make("/tmp/numaslab-fuzz-XXXXXX")))
		return 1;
	snprintf(sub, sizeof sub, "%s/files", dir);
	if (!ok(make_file() && stat(path, &st) == 0, "a file to spoil"))
		return tap_end();
	size_t size = (size_t)st.st_size;
	unsigned char *good = malloc(size), *file = malloc(size);
	int fd = open(path, O_RDWR);
	if (pread(fd, good, size, 0) != (ssize_t)size)
		return 1;
	memcpy(&dir_at, good + 144 + 24 * 6 + 8, 8);
	memcpy(&map_at, good + 144 + 24 * 5 + 8, 8);
	look();
	ok(opened == 1 && refused == 0 && mapped == 1 && odd == 0, "unspoilt it is read");
	for (unsigned long i = 0; i < runs; i++) {
		size_t length = draw() % 16 ? size : draw() % size;

		memcpy(file, good, size);
		spoil(file, size);
		if (pwrite(fd, file, size, 0) != (ssize_t)size || ftruncate(fd, (off_t)length) < 0)
			return 1;
		look();
	}
	ok(refused > runs / 10 && opened > runs / 10, "%lu spoilt files: %lu read, %lu refused",
	   runs, opened, refused);
	ok(whys[READER_VERSION] > 0, "some for their version (%lu)", whys[READER_VERSION]);
	ok(foreign_result == 0, "all for the file's fault");
	ok(mapped > runs / 10 && odd > runs / 20, "%lu maps are read, %lu not whole", mapped, odd);
	ok(unsound == 0, "what was read is sound");
	ok(unsafe == 0, "every refusal has a reason, and no text a control character");
	close(fd);
	free(good);
	free(file);
	int status = tap_end();
	folder_remove();
	return status;
}
