/* SPDX-License-Identifier: MIT */
/* The malloc family itself: results, errno, alignment, limits of size, figures. */
#include "harness.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MIB (1ul << 20)

static const size_t too_large[] = {
	(size_t)PTRDIFF_MAX + 1, (size_t)PTRDIFF_MAX + 2, (size_t)PTRDIFF_MAX + 4096,
	SIZE_MAX / 2 + 65536,	 SIZE_MAX - 65536,	   SIZE_MAX - 4096,
	SIZE_MAX - 4095,	 SIZE_MAX - 4094,	   SIZE_MAX - 64,
	SIZE_MAX - 16,		 SIZE_MAX - 15,		   SIZE_MAX - 8,
	SIZE_MAX - 1,		 SIZE_MAX,
};
#define TOO_LARGE (sizeof(too_large) / sizeof(too_large[0]))

#define REFUSED(call)                                                                             \
	do {                                                                                      \
		errno = 0;                                                                        \
		void *p_ = opaque(call);                                                          \
		if (p_ || errno != ENOMEM)                                                        \
			fail("size %#zx: %s gives %p, errno %d", size, #call, p_, errno);         \
	} while (0)

/* Every function is the library's, not libc's: one missing and two allocators are mixed. */
static void exports(void)
{
	static const char *names[] = {
		"malloc",	  "calloc",	   "realloc",  "reallocarray",	     "free",
		"posix_memalign", "aligned_alloc", "memalign", "valloc",	     "pvalloc",
		"mallinfo",	  "mallinfo2",	   "mallopt",  "malloc_usable_size", "malloc_trim",
		"malloc_stats",	  "malloc_info",   "cfree",
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

static void alignment_16(void)
{
	for (size_t size = 0; size <= 5000; size++) {
		void *p = malloc(size), *q = calloc(1, size), *r = realloc(NULL, size);

		if (!p || !q || !r)
			fail("size %zu: NULL", size);
		if (((uintptr_t)p | (uintptr_t)q | (uintptr_t)r) & 15)
			fail("size %zu: %p %p %p", size, p, q, r);
		r = realloc(r, size * 3 + 1);
		if ((uintptr_t)r & 15)
			fail("realloc to %zu: %p", size * 3 + 1, r);
		free(p);
		free(q);
		free(r);
	}
	for (size_t size = 4096; size < 64 * MIB; size += size / 7) {
		void *p = malloc(size);

		if (!p || (uintptr_t)p & 15)
			fail("malloc(%zu) is %p", size, p);
		free(p);
	}
}

static void check_aligned(void *p, size_t align, size_t size, const char *name)
{
	if (!p || (uintptr_t)p & (align - 1))
		fail("%s(%zu, %zu) gives %p, errno %d", name, align, size, p, errno);
	if (malloc_usable_size(p) < size)
		fail("%s(%zu, %zu): usable size %zu", name, align, size, malloc_usable_size(p));
	block_fill(p, size);
}

/* Any power of two up to 1 GiB, also with small sizes. */
static void alignment_any(void)
{
	static const size_t sizes[] = {1, 7, 16, 100, 256, 1000, 4096, 5000, 70000, 3 * MIB};

	for (size_t align = sizeof(void *); align <= 1024 * MIB; align *= 2) {
		for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
			size_t size = sizes[i];
			void *p[6] = {0};

			CHECK_EQ(posix_memalign(&p[0], align, size), 0);
			CHECK_EQ(posix_memalign(&p[1], align, align > size ? align : size), 0);
			p[2] = aligned_alloc(align, (size + align - 1) & -align);
			p[3] = memalign(align, size);
			p[4] = aligned_alloc(align, size);
			check_aligned(p[0], align, size, "posix_memalign");
			check_aligned(p[1], align, size, "posix_memalign");
			check_aligned(p[2], align, size, "aligned_alloc");
			check_aligned(p[3], align, size, "memalign");
			check_aligned(p[4], align, size, "aligned_alloc");
			for (int k = 0; k < 5; k++) {
				if (!block_holds(p[k], size))
					fail("alignment %zu, size %zu: overlap", align, size);
				free(p[k]);
			}
		}
	}
}

static void alignment_many(void)
{
	enum { N = 20000 };
	static void *blocks[N];
	static size_t sizes[N];
	uint64_t seed = 5;

	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < N; i++) {
			size_t align = 8ul << random_next(&seed) % 10;

			sizes[i] = random_next(&seed) % 600;
			CHECK_EQ(posix_memalign(&blocks[i], align, sizes[i]), 0);
			check_aligned(blocks[i], align, sizes[i], "posix_memalign");
		}
		for (int i = 0; i < N; i++) {
			CHECK(block_holds(blocks[i], sizes[i]));
			if (i % 3)
				blocks[i] = realloc(blocks[i], sizes[i] + 700);
			CHECK(blocks[i] && block_holds(blocks[i], 0));
			free(blocks[i]);
		}
	}
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
		{SIZE_MAX, 2},	    {2, SIZE_MAX},	      {SIZE_MAX / 2 + 1, 2},
		{1ul << 32, 1ul << 32}, {(1ul << 32) + 1, 1ul << 32}, {SIZE_MAX, SIZE_MAX},
		{SIZE_MAX / 16 + 2, 16}, {16, SIZE_MAX / 16 + 2},     {0x5555555555555556, 3},
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

static void realloc_rules(void)
{
	size_t before;
	char *p;

	/* realloc(p, 0) frees and gives NULL: else this keeps 4 GiB. */
	p = malloc(4096);
	free(p);
	before = rss_kib();
	for (int i = 0; i < 1000000; i++) {
		p = malloc(4096);
		*(volatile char *)p = 1;
		CHECK(realloc(p, 0) == NULL);
	}
	if (rss_kib() > before + 8192)
		fail("realloc(p, 0) keeps memory: %zu KiB more", rss_kib() - before);
	p = malloc(100);
	errno = 123;
	CHECK(realloc(p, 0) == NULL);
	CHECK_EQ(errno, 123);
	p = malloc(100);
	CHECK(reallocarray(p, 0, 8) == NULL);
	p = realloc(NULL, 100);
	CHECK(p != NULL);
	memset(p, 1, 100);
	free(p);
}

static void realloc_contents(void)
{
	uint64_t seed = 11;

	for (int chain = 0; chain < 300; chain++) {
		size_t size = random_size(&seed), next;
		unsigned char *p = malloc(size), byte = (unsigned char)chain;

		memset(p, byte, size);
		for (int step = 0; step < 30; step++) {
			next = step % 3 ? size + random_next(&seed) % (size + 1)
					: 1 + random_next(&seed) % size;
			if (next > 32 * MIB)
				next = 17;
			p = step % 2 ? realloc(p, next) : reallocarray(p, next, 1);
			CHECK(p && !((uintptr_t)p & 15));
			for (size_t i = 0; i < (next < size ? next : size); i += i < 5000 ? 1 : 997)
				if (p[i] != byte)
					fail("realloc %zu to %zu lost byte %zu", size, next, i);
			size = next;
			byte += 41;
			memset(p, byte, size);
		}
		free(p);
	}
}

/* Growing by doubling and by small steps, through every border between size classes. */
static void realloc_growth(void)
{
	unsigned char *p = NULL;

	for (size_t size = 1; size < 300000; size += 1 + size / 64) {
		p = realloc(p, size);
		CHECK(p != NULL);
		p[size - 1] = (unsigned char)size;
		for (size_t old = 1; old <= size; old += 1 + old / 64)
			if (p[old - 1] != (unsigned char)old)
				fail("at %zu: byte %zu is lost", size, old - 1);
	}
	free(p);
	p = memalign(8192, 5000);
	block_fill(p, 5000);
	memset(p, 77, 5000);
	p = realloc(p, 500000);
	for (int i = 0; i < 5000; i++)
		CHECK_EQ(p[i], 77);
	free(p);
}

static bool is_zero(const unsigned char *p, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (p[i])
			return false;
	return true;
}

static void calloc_recycled(void)
{
	enum { N = 64 };
	unsigned char *p[N];

	for (size_t size = 1; size < 6 * MIB; size += 1 + size / 5) {
		int n = size > 65536 ? 4 : N;

		for (int round = 0; round < 3; round++) {
			for (int i = 0; i < n; i++) {
				p[i] = malloc(size);
				CHECK(p[i] != NULL);
				memset(p[i], 0xa5, malloc_usable_size(p[i]));
			}
			for (int i = 0; i < n; i++)
				free(p[i]);
			for (int i = 0; i < n; i++) {
				p[i] = round & 1 ? calloc(size, 1) : calloc(1, size);
				if (!p[i] || !is_zero(p[i], size))
					fail("calloc of %zu recycled bytes is not zero", size);
				memset(p[i], 0x5a, malloc_usable_size(p[i]));
			}
			for (int i = 0; i < n; i++)
				free(p[i]);
		}
		if (size % 7 == 0)
			malloc_trim(0);
	}
}

/* Dirtied in many other ways: shrunk by realloc, aligned, freed by another thread. */
static void *free_it(void *p)
{
	free(p);
	return NULL;
}

static void calloc_recycled_odd(void)
{
	for (size_t size = 64; size < 3 * MIB; size = size * 3 / 2) {
		unsigned char *p = malloc(size * 2), *q;
		pthread_t thread;

		memset(p, 1, size * 2);
		p = realloc(p, size / 2);
		q = calloc(1, size);
		CHECK(is_zero(q, size));
		memset(q, 2, size);
		free(p);
		free(q);
		p = memalign(4096, size);
		memset(p, 3, malloc_usable_size(p));
		CHECK_EQ(pthread_create(&thread, NULL, free_it, p), 0);
		pthread_join(thread, NULL);
		for (int i = 0; i < 4; i++) {
			q = calloc(1, size + 4096 * i);
			CHECK(is_zero(q, size + 4096 * i));
			memset(q, 4, size);
			free(q);
		}
	}
}

/* The program may have protected or given back a block's pages itself. */
static void large_block_used_oddly(void)
{
	for (int round = 0; round < 20; round++) {
		size_t size = (3 + round) * MIB;
		unsigned char *p = memalign(4096, size);

		memset(p, 9, size);
		CHECK_EQ(madvise(p, size, MADV_DONTNEED), 0);
		CHECK_EQ(mprotect(p, size, PROT_READ), 0);
		CHECK_EQ(mprotect(p, size, PROT_READ | PROT_WRITE), 0);
		madvise(p, size, MADV_DONTFORK);
		madvise(p, size, MADV_DOFORK);
		free(p);
		p = calloc(1, size - 100000);
		CHECK(p && is_zero(p, size - 100000));
		memset(p, 7, size - 100000);
		free(p);
	}
}

static void usable_size(void)
{
	enum { N = 3000 };
	static unsigned char *p[N];
	static size_t usable[N];
	uint64_t seed = 3;

	for (int i = 0; i < N; i++) {
		size_t size = random_size(&seed) % 20000;

		p[i] = i % 5 ? malloc(size) : memalign(16ul << i % 9, size);
		usable[i] = malloc_usable_size(p[i]);
		if (usable[i] < size)
			fail("malloc(%zu): usable %zu", size, usable[i]);
		memset(p[i], i, usable[i]);
	}
	for (int i = 0; i < N; i++)
		for (size_t k = 0; k < usable[i]; k++)
			if (p[i][k] != (unsigned char)i)
				fail("byte %zu of %zu usable ones was overwritten", k, usable[i]);
	for (int i = 0; i < N; i++)
		free(p[i]);
	for (size_t size = 100000; size < 8 * MIB; size += size / 3) {
		unsigned char *a = malloc(size);

		usable[0] = malloc_usable_size(a);
		CHECK(usable[0] >= size);
		memset(a, 1, usable[0]);
		a = realloc(a, usable[0]);
		CHECK(a[usable[0] - 1] == 1);
		free(a);
	}
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

static void valloc_pvalloc(void)
{
	size_t page = sysconf(_SC_PAGESIZE);

	for (size_t size = 0; size < 40000; size += 333) {
		void *p = valloc(size), *q = pvalloc(size);

		check_aligned(p, page, size, "valloc");
		check_aligned(q, page, (size + page - 1) & -page, "pvalloc");
		free(p);
		free(q);
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

static void random_walk(void)
{
	exercise(400, 1);
}

const struct test tests[] = {
	{.name = "exports", .run = exports},
	{.name = "errno_at_main", .run = errno_at_main},
	{.name = "alignment_16", .run = alignment_16},
	{.name = "alignment_any", .run = alignment_any, .timeout = 60},
	{.name = "alignment_many", .run = alignment_many},
	{.name = "posix_memalign_rules", .run = posix_memalign_rules},
	{.name = "too_large_fails", .run = too_large_fails},
	{.name = "overflow_fails", .run = overflow_fails},
	{.name = "zero_sizes", .run = zero_sizes},
	{.name = "realloc_rules", .run = realloc_rules},
	{.name = "realloc_contents", .run = realloc_contents},
	{.name = "realloc_growth", .run = realloc_growth},
	{.name = "calloc_recycled", .run = calloc_recycled},
	{.name = "calloc_recycled_odd", .run = calloc_recycled_odd},
	{.name = "large_block_used_oddly", .run = large_block_used_oddly},
	{.name = "usable_size", .run = usable_size},
	{.name = "errno_kept", .run = errno_kept},
	{.name = "valloc_pvalloc", .run = valloc_pvalloc},
	{.name = "libc_memory", .run = libc_memory},
	{.name = "figures_small", .run = figures_small},
	{.name = "figures_large", .run = figures_large},
	{.name = "figures_threads", .run = figures_threads},
	{.name = "info_xml", .run = info_xml},
	{.name = "stats_and_options", .run = stats_and_options, .prints = true},
	{.name = "stats_text", .run = stats_text},
	{.name = "random_walk", .run = random_walk},
	{.name = "cfree", .program = "cfree"},
	{.name = NULL},
};
