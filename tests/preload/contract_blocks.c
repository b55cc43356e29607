/* SPDX-License-Identifier: MIT */
/* Blocks: alignment, contents through realloc, zeroes of calloc, usable bytes. */
#include "harness.h"

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MIB (1ul << 20)

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

static void random_walk(void)
{
	exercise(400, 1);
}

/* A large block is freed with a page that the program made read-only: the next one has it whole. */
static void altered_mapping(void)
{
	enum { SIZE = 700000 };

	char *p = malloc(SIZE);
	uintptr_t page = ((uintptr_t)p + 4095) & ~(uintptr_t)4095;

	memset(p, 1, SIZE);
	CHECK_EQ(mprotect((void *)(page + 8192), 4096, PROT_READ), 0);
	free(p);
	p = malloc(SIZE);
	memset(p, 2, SIZE);
	free(p);
}

const struct test tests[] = {
    {.name = "alignment_16", .run = alignment_16},
    {.name = "alignment_any", .run = alignment_any, .timeout = 60},
    {.name = "alignment_many", .run = alignment_many},
    {.name = "realloc_rules", .run = realloc_rules},
    {.name = "realloc_contents", .run = realloc_contents},
    {.name = "realloc_growth", .run = realloc_growth},
    {.name = "calloc_recycled", .run = calloc_recycled},
    {.name = "calloc_recycled_odd", .run = calloc_recycled_odd},
    {.name = "large_block_used_oddly", .run = large_block_used_oddly},
    {.name = "usable_size", .run = usable_size},
    {.name = "valloc_pvalloc", .run = valloc_pvalloc},
    {.name = "random_walk", .run = random_walk},
    {.name = "altered_mapping", .run = altered_mapping},
    {.name = NULL},
};
