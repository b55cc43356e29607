/* SPDX-License-Identifier: MIT */
/*
 * What the writer needs is not to be had: room for the map, a file, a descriptor.  Each in a
 * process of its own, which says how it went.
 */
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

#define WALL (1u << 20) /* bytes: more than the map would grow by */

/* The last unit of a page's stretch; whether it is on the map. */
static bool keep_last(struct pool *p, unsigned page)
{
	struct slab *s = p->window.first + (page + 1) * RING_MAP_UNITS - 1;

	slab_write(s->part, UNIT_KEPT);
	telemetry_map(s);
	return fake_map_word(s) == fake_map_truth(s);
}

/* Where the map would lie stands something else. */
static void be_crowded(const char *dir)
{
	unsigned wrong = 0;

	fake_init(2, dir);
	uintptr_t behind = (layout.base + layout.span + ((uintptr_t)1 << 30)) >> 30 << 30;
	if (mmap((void *)behind, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
		 -1, 0) == MAP_FAILED)
		_exit(2);
	telemetry_tick(1000);
	for (unsigned i = 0; i < 32; i++)
		wrong += !keep_last(&pools[0], i);
	struct map_writer *w = atomic_load(&telemetry_words->map);
	_exit(wrong != 0 || !w || w->mapped != w->pages * MAP_PAGE_BYTES);
}

/* Somebody else's mapping where the view would grow: what has no place there is not on the map. */
static void be_walled(const char *dir)
{
	unsigned lost = 0;

	fake_init(2, dir);
	telemetry_tick(1000);
	struct map_writer *w = atomic_load(&telemetry_words->map);
	size_t viewed = w->viewed;
	if (!w->view ||
	    mmap(w->view + w->dir_bytes + viewed, WALL, PROT_NONE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == MAP_FAILED)
		_exit(2);
	for (unsigned i = 0; i < 32; i++)
		lost += !keep_last(&pools[0], i);
	_exit(w->viewed != viewed || lost != 32 - viewed / MAP_PAGE_BYTES);
}

static void in_a_process(const char *parent, const char *name, void be(const char *dir),
			 const char *what)
{
	char dir[80];
	int status;

	snprintf(dir, sizeof dir, "%s/%s", parent, name);
	pid_t child = fork();
	if (child == 0)
		be(dir);
	waitpid(child, &status, 0);
	ok(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s", what);
}

/* --- No file at all. --- */

static unsigned long address_space(void)
{
	char text[64] = "";
	int fd = open("/proc/self/statm", O_RDONLY);

	if (fd < 0 || read(fd, text, sizeof text - 1) <= 0)
		_exit(2);
	close(fd);
	return strtoul(text, NULL, 10);
}

static void be_without_a_file(const char *dir)
{
	struct rlimit limit = {8192, 8192};

	setrlimit(RLIMIT_FSIZE, &limit);
	fake_init(2, dir);
	unsigned long before = address_space();
	telemetry_tick(1000);
	/* The page of state. */
	_exit(atomic_load(&telemetry_words->live) || address_space() != before + 1);
}

/* The directory is there as the file is made, and cannot be opened as it is to get its name. */
static void be_out_of_descriptors(const char *dir)
{
	struct rlimit limit, none = {0, 0};
	struct pub_files f = {.pid = 0};
	struct ring_writer w = {.file = NULL};
	struct map_writer m = {.dir = NULL};
	struct pub_layout l;
	unsigned files = 0;

	fake_init(2, dir);
	getrlimit(RLIMIT_NOFILE, &limit);
	none.rlim_max = limit.rlim_max;
	if (!map_prepare(&m) || !pub_layout_plan(&l, 3, m.dir_count, 64, UINT64_MAX) ||
	    !pub_files_make(&f, &l, &w, &m, 1000))
		_exit(2);
	setrlimit(RLIMIT_NOFILE, &none);
	bool shown = pub_files_show(&f);
	setrlimit(RLIMIT_NOFILE, &limit);
	DIR *d = opendir(dir);
	for (struct dirent *e; d && (e = readdir(d)) != NULL;)
		files += strcmp(e->d_name, ".") && strcmp(e->d_name, "..");
	_exit(shown || !d || files);
}

int main(void)
{
	const char *dir;

	if (!(dir = folder_make("/tmp/numaslab-refused-XXXXXX")))
		return 1;
	in_a_process(dir, "crowded", be_crowded,
		     "a map that cannot lie behind the windows lies elsewhere, whole");
	in_a_process(dir, "walled", be_walled, "a view that cannot grow ends the map, too");
	in_a_process(dir, "small", be_without_a_file,
		     "where a file is not allowed nothing stays mapped for it");
	in_a_process(dir, "descriptors", be_out_of_descriptors,
		     "what cannot get its name leaves no file");
	int status = tap_end();
	folder_remove();
	return status;
}
