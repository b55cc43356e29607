/* SPDX-License-Identifier: MIT */
/* The malloc family itself: names, errno, limits of size, figures. */
#include "harness.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MIB (1ul << 20)

static const size_t too_large[] = {
    (size_t)PTRDIFF_MAX + 1,
    (size_t)PTRDIFF_MAX + 2,
    (size_t)PTRDIFF_MAX + 4096,
    SIZE_MAX / 2 + 65536,
    SIZE_MAX - 65536,
    SIZE_MAX - 4096,
    SIZE_MAX - 4095,
    SIZE_MAX - 4094,
    SIZE_MAX - 64,
    SIZE_MAX - 16,
    SIZE_MAX - 15,
    SIZE_MAX - 8,
    SIZE_MAX - 1,
    SIZE_MAX,
};
#define TOO_LARGE (sizeof(too_large) / sizeof(too_large[0]))

#define REFUSED(call)                                                                              \
	do {                                                                                       \
		errno = 0;                                                                         \
		void *p_ = opaque(call);                                                           \
		if (p_ || errno != ENOMEM)                                                         \
			fail("size %#zx: %s gives %p, errno %d", size, #call, p_, errno);          \
	} while (0)

/* Every function is the library's, not libc's: one missing and two allocators are mixed. */
static void exports(void)
{
	static const char *names[] = {
	    "malloc",	     "calloc",
	    "realloc",	     "reallocarray",
	    "free",	     "posix_memalign",
	    "aligned_alloc", "memalign",
	    "valloc",	     "pvalloc",
	    "mallinfo",	     "mallinfo2",
	    "mallopt",	     "malloc_usable_size",
	    "malloc_trim",   "malloc_stats",
	    "malloc_info",   "cfree",
	};
	const char *want = *lib_path() ? strrchr(lib_path(), '/') : "/libc.so.6";
	Dl_info info;

	if (!want)
		want = lib_path();
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		void *f = dlsym(RTLD_DEFAULT, names[i]);

		if (!f && !strcmp(names[i], "cfree") && !*lib_path())
			continue; /* glibc keeps it for old programs only */
		if (!f || !dladdr(f, &info))
			fail("%s is not there", names[i]);
		if (!strstr(info.dli_fname, want))
			fail("%s is the one of %s", names[i], info.dli_fname);
	}
}

static void errno_at_main(void)
{
	CHECK_EQ(errno_at_start, 0);
}

static void posix_memalign_rules(void)
{
	static const size_t bad[] = {0, 1, 2, 3, 4, 7, 12, 24, 48, 100, SIZE_MAX};
	static const size_t large[] = {PTRDIFF_MAX, (size_t)PTRDIFF_MAX + 1, SIZE_MAX - 4096,
				       SIZE_MAX - 15, SIZE_MAX};
	void *p;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		p = (void *)0x1234;
		CHECK_EQ(posix_memalign(&p, bad[i], 100), EINVAL);
		CHECK(p == (void *)0x1234);
	}
	for (size_t i = 0; i < sizeof(large) / sizeof(large[0]); i++) {
		for (size_t align = 16; align <= 1024 * MIB; align *= 16) {
			p = (void *)0x1234;
			CHECK_EQ(posix_memalign(&p, align, large[i]), ENOMEM);
			CHECK(p == (void *)0x1234);
		}
	}
	p = (void *)0x1234;
	CHECK_EQ(posix_memalign(&p, (size_t)1 << 62, 1), ENOMEM);
	CHECK_EQ(posix_memalign(&p, (size_t)1 << 63, 1), ENOMEM);
	CHECK_EQ(posix_memalign(&p, 64, 0), 0);
	free(p);
}

static void too_large_fails(void)
{
	for (size_t i = 0; i < TOO_LARGE; i++) {
		size_t size = too_large[i];
		char *p = malloc(100);

		block_fill(p, 100);
		REFUSED(malloc(size));
		REFUSED(calloc(1, size));
		REFUSED(calloc(size, 1));
		REFUSED(realloc(NULL, size));
		REFUSED(realloc(opaque(p), size));
		REFUSED(reallocarray(opaque(p), 1, size));
		REFUSED(memalign(16, size));
		REFUSED(memalign(4096, size));
		REFUSED(memalign(2 * MIB, size));
		REFUSED(aligned_alloc(64, size));
		REFUSED(valloc(size));
		REFUSED(pvalloc(size));
		CHECK(block_holds(p, 100));
		free(p);
	}
	for (size_t size = PTRDIFF_MAX; size > (size_t)PTRDIFF_MAX - 3; size--) {
		REFUSED(malloc(size));
		REFUSED(calloc(1, size));
		REFUSED(pvalloc(size));
		REFUSED(memalign(64, size));
	}
}

static void overflow_fails(void)
{
	static const size_t pairs[][2] = {
	    {SIZE_MAX, 2},
	    {2, SIZE_MAX},
	    {SIZE_MAX / 2 + 1, 2},
	    {1ul << 32, 1ul << 32},
	    {(1ul << 32) + 1, 1ul << 32},
	    {SIZE_MAX, SIZE_MAX},
	    {SIZE_MAX / 16 + 2, 16},
	    {16, SIZE_MAX / 16 + 2},
	    {0x5555555555555556, 3},
	};

	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		size_t size = pairs[i][0], n = pairs[i][1];
		char *p = malloc(40);

		block_fill(p, 40);
		REFUSED(calloc(size, n));
		REFUSED(reallocarray(NULL, size, n));
		REFUSED(reallocarray(opaque(p), size, n));
		CHECK(block_holds(p, 40));
		free(p);
	}
}

static void zero_sizes(void)
{
	void *p[400];

	for (int i = 0; i < 400; i += 4) {
		p[i] = malloc(0);
		p[i + 1] = calloc(0, 8);
		p[i + 2] = calloc(8, 0);
		p[i + 3] = realloc(NULL, 0);
	}
	for (int i = 0; i < 400; i++) {
		CHECK(p[i] != NULL);
		for (int k = 0; k < i; k++)
			CHECK(p[i] != p[k]);
	}
	for (int i = 0; i < 400; i++)
		free(p[i]);
	CHECK_EQ(malloc_usable_size(NULL), 0);
	free(NULL);
}

static void errno_kept(void)
{
	static const size_t sizes[] = {1, 100, 5000, 70000, MIB, 40 * MIB};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		for (int k = 0; k < 50; k++) {
			void *p = malloc(sizes[i]), *q = malloc(sizes[i]);

			memset(p, 1, sizes[i]);
			errno = 4242;
			free(p);
			CHECK_EQ(errno, 4242);
			free(q);
			CHECK_EQ(errno, 4242);
			free(NULL);
			malloc_usable_size(NULL);
			CHECK_EQ(errno, 4242);
		}
	}
}

/* libc's own functions allocate for the program, which frees. */
static void libc_memory(void)
{
	char *text = NULL, *line = NULL;
	size_t size = 0;
	FILE *f;

	for (int i = 0; i < 200; i++) {
		CHECK(asprintf(&text, "%0*d", i * 100 + 1, i) > 0);
		text = realloc(text, strlen(text) + 100);
		CHECK_EQ(strlen(text), i * 100 + 1);
		free(text);
		free(strdup("dup"));
		free(strndup("dup", 2));
		free(realpath("/proc/self/exe", NULL));
		free(getcwd(NULL, 0));
		f = open_memstream(&text, &size);
		fprintf(f, "%0*d", i * 300, 1);
		fclose(f);
		free(text);
	}
	f = fopen("/proc/self/maps", "r");
	while (getline(&line, &size, f) > 0)
		line = realloc(line, size += 10);
	fclose(f);
	free(line);
}

static size_t all_used(void)
{
	struct mallinfo2 m = mallinfo2();

	return m.uordblks + m.hblkhd;
}

static void figures_small(void)
{
	enum { N = 64 * 1024 };
	static char *blocks[N];
	size_t before = all_used(), during, after;

	for (int i = 0; i < N; i++)
		memset(blocks[i] = malloc(1024), 1, 1024);
	during = all_used() - before;
	if (during < 64 * MIB || during > 80 * MIB)
		fail("mallinfo2 shows %zu bytes for 64 MiB", during);
	CHECK(mallinfo2().arena + mallinfo2().hblkhd >= 64 * MIB);
	for (int i = 0; i < N; i++)
		free(blocks[i]);
	after = all_used() - before;
	if ((long)after > (long)MIB)
		fail("mallinfo2 shows %zu bytes after free", after);
}

static void figures_large(void)
{
	size_t before = all_used(), during;
	char *p = malloc(256 * MIB);

	during = all_used() - before;
	if (during < 256 * MIB || during > 260 * MIB)
		fail("mallinfo2 shows %zu bytes for 256 MiB", during);
	free(p);
	if (all_used() > before + MIB)
		fail("mallinfo2 shows %zu bytes after free", all_used() - before);
}

/* Blocks out to the program from other threads, living and dead, count too. */
static void *take_blocks(void *at)
{
	for (int i = 0; i < 8192; i++)
		memset(((void **)at)[i] = malloc(1024), 1, 1024);
	return NULL;
}

static void figures_threads(void)
{
	static void *blocks[4][8192];
	pthread_t threads[4];
	size_t before = all_used(), during;

	for (int i = 0; i < 4; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, take_blocks, blocks[i]), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	during = all_used() - before;
	if (during < 32 * MIB || during > 41 * MIB)
		fail("mallinfo2 shows %zu bytes for 32 MiB of dead threads", during);
	for (int i = 0; i < 4; i++)
		for (int k = 0; k < 8192; k++)
			free(blocks[i][k]);
}

static void info_xml(void)
{
	char *p = malloc(64 * MIB), *text = NULL, *at;
	size_t size = 0, largest = 0;
	FILE *f = open_memstream(&text, &size);

	memset(p, 1, 64 * MIB);
	CHECK_EQ(malloc_info(0, f), 0);
	fclose(f);
	CHECK(strstr(text, "<malloc") && strstr(text, "</malloc>"));
	for (at = text; *at; at += strcspn(at, "0123456789")) {
		size_t n = strtoull(at, &at, 10);

		largest = n > largest ? n : largest;
	}
	if (largest < 64 * MIB || largest > 4096 * MIB)
		fail("malloc_info shows at most %zu for 64 MiB:\n%.800s", largest, text);
	free(text);
	CHECK(malloc_info(1, stderr) != 0);
	free(p);
}

static void stats_and_options(void)
{
	char *p = malloc(64 * MIB);
	struct mallinfo m;

	memset(p, 1, 64 * MIB);
	malloc_stats();
	m = mallinfo();
	CHECK((size_t)(unsigned)m.uordblks + (size_t)(unsigned)m.hblkhd >= 64 * MIB);
	CHECK_EQ(mallopt(M_MMAP_THRESHOLD, 256 * 1024), 1);
	CHECK_EQ(mallopt(M_TRIM_THRESHOLD, 256 * 1024), 1);
	CHECK_EQ(mallopt(M_ARENA_MAX, 2), 1);
	malloc_trim(0);
	malloc_trim(SIZE_MAX);
	free(p);
	exercise(20, 9);
}

static void stats_text(void)
{
	static char *args[] = {NULL, "--run", "stats_and_options", NULL};
	struct outcome out;

	args[0] = (char *)dir_file("contract_api");
	run_program(&out, args, NULL);
	CHECK_EQ(out.status, 0);
	CHECK(out.length > 40 && strpbrk(out.text, "123456789"));
}

const struct test tests[] = {
    {.name = "exports", .run = exports},
    {.name = "errno_at_main", .run = errno_at_main},
    {.name = "posix_memalign_rules", .run = posix_memalign_rules},
    {.name = "too_large_fails", .run = too_large_fails},
    {.name = "overflow_fails", .run = overflow_fails},
    {.name = "zero_sizes", .run = zero_sizes},
    {.name = "errno_kept", .run = errno_kept},
    {.name = "libc_memory", .run = libc_memory},
    {.name = "figures_small", .run = figures_small},
    {.name = "figures_large", .run = figures_large},
    {.name = "figures_threads", .run = figures_threads},
    {.name = "info_xml", .run = info_xml},
    {.name = "stats_and_options", .run = stats_and_options, .prints = true},
    {.name = "stats_text", .run = stats_text},
    {.name = "cfree", .program = "cfree"},
    {.name = NULL},
};
