/* SPDX-License-Identifier: MIT */
/*
 * The golden layout: what a file has where, in numbers that stand here alone.  A change that this
 * notices changes the format: a field appended raises RING_MINOR, anything else RING_MAJOR.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/telemetry/fake.h"
#include "tests/telemetry/folder.h"
#include "tests/telemetry/tap.h"

static unsigned char *file;
static size_t file_size;

static uint64_t u(size_t at, unsigned bytes)
{
	uint64_t n = 0;

	for (unsigned i = bytes; i-- > 0;)
		n = n << 8 | file[at + i];
	return n;
}

static void load(const char *dir)
{
	char path[512];
	struct dirent *e;
	struct stat st;
	DIR *d = opendir(dir);

	while (d && (e = readdir(d))) {
		if (strchr(e->d_name, '.'))
			continue;
		snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
		int fd = open(path, O_RDONLY);
		fstat(fd, &st);
		file_size = (size_t)st.st_size;
		file = malloc(file_size);
		if (read(fd, file, file_size) != (ssize_t)file_size)
			file_size = 0;
		close(fd);
		ok((st.st_mode & 07777) == 0600, "the file is 0600");
	}
	closedir(d);
	stat(dir, &st);
	ok((st.st_mode & 07777) == 0700, "its directory is 0700");
}

static void header(void)
{
	ok(!memcmp(file, "numaslab", 8), "magic: the letters numaslab at 0");
	ok_equal((long long)u(8, 2), 1, "major version at 8");
	ok_equal((long long)u(10, 2), 1, "minor version at 10");
	ok_equal((long long)u(12, 1), 8, "word size at 12");
	ok_equal((long long)u(13, 1), 2, "placement at 13: kernel is 2");
	ok_equal((long long)u(24, 8), (long long)file_size, "file size at 24");
	ok_equal((long long)u(48, 4), getpid(), "pid at 48");
	ok_equal((long long)u(52, 4), geteuid(), "user at 52");
	ok_equal((long long)u(56, 8), 777000, "time of publishing at 56");
	ok_equal((long long)u(64, 4), 1, "tick at 64");
	ok(!strncmp((char *)file + 112, "test_layout", 16), "name of the process at 112");
	ok(strlen((char *)file + 72) == 36, "boot id at 72");
	ok_equal((long long)u(128, 4), 8, "sections at 128");
	ok_equal((long long)u(132, 4), 64, "pins at 132");
	ok_equal((long long)u(136, 4), 256, "stride of a pool in an entry at 136");
	ok_equal((long long)u(384, 8), 1, "head of the ring at 384");
	ok_equal((long long)u(392, 8), 777000, "last tick at 392");
	ok_equal((long long)u(336, 8), (long long)40 << 40, "base of the windows at 336");
	ok_equal((long long)u(344, 8), (long long)3 << 30, "bytes of all windows at 344");
	ok(u(352, 8) != 0 && u(352, 8) % 4096 == 0, "where the map is mapped at 352");
	ok(u(360, 8) != 0 && u(360, 8) % 4096 == 0, "where its directory is at 360");
	ok_equal((long long)u(368, 4), 30, "shift of a window at 368");
	ok_equal((long long)u(372, 4), 3, "windows at 372");
	ok_equal((long long)u(408, 8), 0, "request of observation at 408");
	ok_equal((long long)u(416, 8), 0, "observed bytes at 416");
	ok_equal((long long)u(424, 4), 0, "way of observation at 424");
	ok_equal((long long)u(432, 8), 0, "lost pages of the map at 432");
}

/* Sections are 24 bytes from 144 on: type 4, stride 4, offset 8, count 8. */
static void section(unsigned type, unsigned stride, long long count)
{
	size_t at = 144 + 24 * (type - 1);
	char name[64];

	snprintf(name, sizeof name, "section %u: its type", type);
	ok_equal((long long)u(at, 4), type, name);
	snprintf(name, sizeof name, "section %u: its stride", type);
	ok_equal((long long)u(at + 4, 4), stride, name);
	snprintf(name, sizeof name, "section %u: how many", type);
	ok_equal((long long)u(at + 16, 8), count, name);
}

static size_t section_at(unsigned type)
{
	return u(144 + 24 * (type - 1) + 8, 8);
}

static void sections(void)
{
	section(1, 24, 19);
	section(2, 8, CLASS_COUNT);
	section(3, 16, 3);
	section(4, 192, 3 * CLASS_COUNT);
	section(5, 64 + 3 * 256, 2048);
	section(6, 8, (long long)u(144 + 24 * 5 + 16, 8));
	section(7, 4, 3 * 16384 / 512);
	ok(u(144 + 24 * 5 + 16, 8) >= 64 * 512 && u(144 + 24 * 5 + 16, 8) % 512 == 0,
	   "the map is whole pages of 512 words, at least 64");
	ok(section_at(6) % 4096 == 0, "on a page of its own");
	ok(!strcmp((char *)file + section_at(1), "active"), "the first counter is active");
	ok(!strcmp((char *)file + section_at(1) + 16 * 24, "released"), "the last is released");
	ok_equal((long long)u(section_at(2) + 5 * 8, 4), 80, "class 5 is 80 bytes");
	ok_equal((long long)u(section_at(2) + 5 * 8 + 4, 4), 65536, "its slabs are 64 KiB");
	ok_equal((long long)u(section_at(3) + 16, 4), 2, "the second pool is node 2");
	ok_equal((long long)u(section_at(3) + 32, 4), 0xffffffff, "the last one is -1");
	ok_equal((long long)u(section_at(3) + 36, 4), 1, "and flagged as large blocks");
}

static void rows(void)
{
	size_t row = section_at(4) + (1 * CLASS_COUNT + 5) * 192;
	size_t entry = section_at(5) + 1 * (64 + 3 * 256), pool = entry + 64 + 256;

	ok_equal((long long)u(row + 0 * 8, 8), 1, "live: active slabs of node 2, class 5");
	ok_equal((long long)u(row + 4 * 8, 8), 819, "live: slots");
	ok_equal((long long)u(row + 5 * 8, 8), 10, "live: used");
	ok_equal((long long)u(row + 7 * 8, 8), 65536, "live: held");
	ok_equal((long long)u(entry, 8), 1, "history: generation of entry 1 in slot 1");
	ok_equal((long long)u(entry + 8, 8), 777000, "history: its time");
	ok_equal((long long)u(pool, 8), 800, "history: used bytes of node 2");
	ok_equal((long long)u(pool + 8, 8), 819 * 80, "history: its capacity");
	ok_equal((long long)u(pool + 64 + 5 * 8, 8), 10, "history: its used objects");
}

/* The word of unit n of window w. */
static uint64_t word(unsigned w, unsigned n)
{
	unsigned unit = w * 16384 + n;
	uint64_t page = u(section_at(7) + unit / 512 * 4, 4);

	return page ? u(section_at(6) + ((page - 1) * 512 + unit % 512) * 8, 8) : 0;
}

static void words(void)
{
	ok(word(1, 0) == 0x0001000a00010501, "map: active, class 5, pool 1, 10 used, born once");
	ok(word(0, 0) == 0x0001000300007301, "map: a wide slab, class 115, 3 used");
	ok(word(0, 1) == 0x0001000100000005 && word(0, 7) == 0x0001000700000005,
	   "map: its inner units lead back to it");
	ok(word(0, 8) == 0x0001000000000004, "map: empty, memory kept");
	ok(word(0, 9) == 0x0001000000000000, "map: free, given back, born once");
	ok(word(0, 10) == 0x0001000200010609, "map: misplaced, on pool 1");
	ok(word(2, 0) == 0x0000000500020006, "map: a large block of 5 units");
	ok(word(2, 1) == 0 && word(2, 5) == 0x0000000100020006, "map: the next one behind it");
	ok(word(0, 11) == 0, "map: nothing behind");
	ok(word(0, 512) == 0 && u(section_at(7) + 4, 4) == 0, "map: no page where nothing was");
}

int main(void)
{
	const char *dir;
	char sub[80];

	if (!(dir = folder_make("/tmp/numaslab-layout-XXXXXX")))
		return 1;
	snprintf(sub, sizeof sub, "%s/files", dir);
	fake_init(2, sub);
	tunables.placement = PLACEMENT_KERNEL;
	fake_slab_born(1, 5, 10);
	fake_slab_born(0, CLASS_WIDE_FIRST, 3);
	fake_slab_dies(fake_slab_born(0, 7, 20), true);
	fake_slab_dies(fake_slab_born(0, 7, 20), false);
	struct slab *away = fake_slab_born(0, 6, 2);
	slab_set_node(away, 1);
	slab_write(away->misplaced, 1);
	fake_large(5);
	fake_large(1);
	telemetry_tick(777000);
	load(sub);
	if (ok(file_size > 4096, "there is a file")) {
		header();
		sections();
		rows();
		words();
	}
	int status = tap_end();
	folder_remove();
	return status;
}
