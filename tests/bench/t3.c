/* SPDX-License-Identifier: MIT */
/*
 * t3 a|b OBJECTS: fragmentation.  Takes OBJECTS objects, frees a random half, takes OBJECTS
 * more, frees all, and says after each step how many bytes the program has and how many are
 * resident for them.
 *   a: 4 bytes each; the half is 3992 of each 8000 bytes
 *   b: sizes uniform 1..4096, alignments 2^0..2^6
 * Resident is the growth of the process's anonymous memory since main began, so it holds the
 * allocator's own records too; every byte of an object is written.  "free" is how much less
 * memory the machine had free than at the start: all processes move it.
 *
 * One line a step: STEP live=BYTES held=BYTES free=BYTES [slabs=N]; "trim" is after
 * malloc_trim(0), slabs (numaslab alone tells them) how many more than at the start are not empty.
 */
#include <fcntl.h>
#include <malloc.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "preload/numaslab.h"
#include "bench.h"

struct object {
	void *p;
	uint32_t size;
};

struct run {
	struct object *objects;
	uint32_t *order;
	uint64_t live, seed;
	int64_t anon0, free0, slabs0;
	uint32_t n; /* taken in one step; there are 2 n places */
	bool small;
};

/* The value in KiB behind `key` in a file of "Key: N kB" lines; reads without malloc. */
static int64_t kib_read(const char *path, const char *key)
{
	static char text[16384];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t used = 0;
	ssize_t got;
	char *at;

	if (fd < 0)
		return -1;
	while ((got = read(fd, text + used, sizeof(text) - 1 - used)) > 0)
		used += (size_t)got;
	close(fd);
	text[used] = '\0';
	at = strstr(text, key);
	return at ? strtoll(at + strlen(key), NULL, 10) : -1;
}

/*
 * Anonymous in smaps_rollup is RssAnon counted exactly, by walking the page tables; the line
 * in status may lag by some dozen pages on each CPU before Linux 6.16.
 */
static int64_t anon_kib(void)
{
	int64_t kib = kib_read("/proc/self/smaps_rollup", "\nAnonymous:");

	return kib >= 0 ? kib : kib_read("/proc/self/status", "\nRssAnon:");
}

/* Slabs that hold an object, 0 without the library. */
static int64_t slabs_read(void)
{
	static struct numaslab_node_stats stats[64];
	int64_t slabs = 0;
	int n = numaslab_stats ? numaslab_stats(stats, 64) : 0;

	for (int i = 0; i < n && i < 64; i++)
		slabs += (int64_t)(stats[i].slabs - stats[i].empty);
	return slabs;
}

static void step_print(const struct run *r, const char *step)
{
	char line[160];
	int64_t held = (anon_kib() - r->anon0) * 1024;
	int64_t gone = (r->free0 - kib_read("/proc/meminfo", "MemFree:")) * 1024;
	int n = snprintf(line, sizeof(line), "%s live=%llu held=%lld free=%lld", step,
			 (unsigned long long)r->live, (long long)held, (long long)gone);

	if (numaslab_stats)
		n += snprintf(line + n, sizeof(line) - (size_t)n, " slabs=%lld",
			      (long long)(slabs_read() - r->slabs0));
	line[n++] = '\n';
	if (write(STDOUT_FILENO, line, (size_t)n) != n)
		exit(1);
}

static void object_take(struct run *r, struct object *o)
{
	uint32_t alignment = 4;

	o->size = 4;
	if (!r->small) {
		o->size = 1 + rng_below(&r->seed, 4096);
		alignment = 1u << rng_below(&r->seed, 7);
	}
	if (alignment <= 16) /* as a compiler's code asks for it */
		o->p = malloc(o->size);
	else if (posix_memalign(&o->p, alignment, o->size))
		o->p = NULL;
	memset(must(o->p), 0x5a, o->size);
	r->live += o->size;
}

static void object_free(struct run *r, struct object *o)
{
	free(o->p);
	o->p = NULL;
	r->live -= o->size;
}

/* The first `n` places of the first step, in random order, are its random part. */
static void order_shuffle(struct run *r, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		r->order[i] = i;
	for (uint32_t i = n - 1; i > 0; i--) {
		uint32_t j = rng_below(&r->seed, i + 1), t = r->order[i];

		r->order[i] = r->order[j];
		r->order[j] = t;
	}
}

static void steps_run(struct run *r)
{
	uint32_t half = r->small ? (uint32_t)((uint64_t)r->n * 998 / 2000) : r->n / 2;

	for (uint32_t i = 0; i < r->n; i++)
		object_take(r, &r->objects[i]);
	step_print(r, "take");
	order_shuffle(r, r->n);
	for (uint32_t i = 0; i < half; i++)
		object_free(r, &r->objects[r->order[i]]);
	step_print(r, "half");
	for (uint32_t i = r->n; i < 2 * r->n; i++)
		object_take(r, &r->objects[i]);
	step_print(r, "again");
	order_shuffle(r, 2 * r->n);
	for (uint32_t i = 0; i < 2 * r->n; i++)
		if (r->objects[r->order[i]].p)
			object_free(r, &r->objects[r->order[i]]);
	step_print(r, "none");
	malloc_trim(0);
	step_print(r, "trim");
}

/* Written now, so that the program's own tables are not counted as growth. */
static void *table_map(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED) {
		perror("t3: mmap");
		exit(1);
	}
	memset(p, 0, bytes);
	madvise(p, bytes, MADV_NOHUGEPAGE);
	return p;
}

int main(int argc, char **argv)
{
	long n = argc == 3 ? strtol(argv[2], NULL, 10) : 0;
	struct run r = {.seed = 42, .n = (uint32_t)n};

	if (n < 2 || n > 10000000 || (strcmp(argv[1], "a") && strcmp(argv[1], "b"))) {
		fputs("usage: t3 a|b 2..10000000\n", stderr);
		return 2;
	}
	r.small = argv[1][0] == 'a';
	r.objects = table_map(2 * (size_t)n * sizeof(*r.objects));
	r.order = table_map(2 * (size_t)n * sizeof(*r.order));
	r.slabs0 = slabs_read();
	r.anon0 = anon_kib();
	r.anon0 = anon_kib(); /* the first call made its own buffer resident */
	r.free0 = kib_read("/proc/meminfo", "MemFree:");
	if (r.anon0 < 0) {
		fputs("t3: this machine does not say how much memory is resident\n", stderr);
		return 77;
	}
	steps_run(&r);
	return 0;
}
