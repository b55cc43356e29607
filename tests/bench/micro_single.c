/* SPDX-License-Identifier: MIT */
/* The rows of one thread.  Operation: one malloc with the free that belongs to it. */
#include <string.h>

#include "bench.h"

enum { BATCH_SMALL = 1000, BATCH_LARGE = 100000, SLOTS_MAX = 100000, LARGE_SLOTS = 16 };

/* static: the rows' own bookkeeping must not come from the allocator */
static void *slots[SLOTS_MAX];
static uint32_t order[BATCH_LARGE];
static uint64_t seed = 42;

static noinline void pair_fixed(uint64_t ops, size_t size)
{
	while (ops--)
		free(take(size));
}

static void pair16_run(uint64_t ops)
{
	pair_fixed(ops, 16);
}

static void pair64_run(uint64_t ops)
{
	pair_fixed(ops, 64);
}

static void pair256_run(uint64_t ops)
{
	pair_fixed(ops, 256);
}

/* 63 sizes in turn: whatever slab holds the one object becomes empty each time. */
static void rotate_run(uint64_t ops)
{
	size_t size = 16;

	while (ops--) {
		free(take(size));
		size = size >= 1008 ? 16 : size + 16;
	}
}

static void batch_take(uint32_t n, size_t size)
{
	for (uint32_t i = 0; i < n; i++)
		slots[i] = take(size);
}

static void batch_lifo(uint64_t ops, uint32_t n, size_t size)
{
	for (uint64_t done = 0; done < ops; done += n) {
		batch_take(n, size);
		for (uint32_t i = n; i-- > 0;)
			free(slots[i]);
	}
}

static void batch_fifo(uint64_t ops, uint32_t n, size_t size)
{
	for (uint64_t done = 0; done < ops; done += n) {
		batch_take(n, size);
		for (uint32_t i = 0; i < n; i++)
			free(slots[i]);
	}
}

static void batch1k_lifo_run(uint64_t ops)
{
	batch_lifo(ops, BATCH_SMALL, 64);
}

static void batch1k_fifo_run(uint64_t ops)
{
	batch_fifo(ops, BATCH_SMALL, 64);
}

static void batch100k_run(uint64_t ops)
{
	batch_fifo(ops, BATCH_LARGE, 64);
}

static void order_setup(void)
{
	for (uint32_t i = 0; i < BATCH_LARGE; i++)
		order[i] = i;
	for (uint32_t i = BATCH_LARGE - 1; i > 0; i--) {
		uint32_t j = rng_below(&seed, i + 1), t = order[i];

		order[i] = order[j];
		order[j] = t;
	}
}

static void batch100k_mixed_run(uint64_t ops)
{
	for (uint64_t done = 0; done < ops; done += BATCH_LARGE) {
		for (uint32_t i = 0; i < BATCH_LARGE; i++)
			slots[i] = take(rng_size(&seed, 6));
		for (uint32_t i = 0; i < BATCH_LARGE; i++)
			free(slots[order[i]]);
	}
}

static void slots_fill(uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		slots[i] = take(rng_size(&seed, 6));
}

static void slots_free(void)
{
	for (uint32_t i = 0; i < SLOTS_MAX; i++) {
		free(slots[i]);
		slots[i] = NULL;
	}
}

static void slots_replace(uint64_t ops, uint32_t n)
{
	while (ops--) {
		uint32_t i = rng_below(&seed, n);

		free(slots[i]);
		slots[i] = take(rng_size(&seed, 6));
	}
}

static void random1k_setup(void)
{
	slots_fill(1000);
}

static void random1k_run(uint64_t ops)
{
	slots_replace(ops, 1000);
}

static void random50k_setup(void)
{
	slots_fill(50000);
}

static void random50k_run(uint64_t ops)
{
	slots_replace(ops, 50000);
}

static void calloc_run(uint64_t ops)
{
	while (ops--) {
		uint32_t i = rng_below(&seed, 1000);
		void *p;

		free(slots[i]);
		p = must(calloc(1, rng_size(&seed, 6)));
		keep(p);
		slots[i] = p;
	}
}

static void calloc64k_run(uint64_t ops)
{
	while (ops--) {
		uint32_t i = rng_below(&seed, 16);
		char *p;

		free(slots[i]);
		p = must(calloc(1, 4096 + rng_below(&seed, 126976)));
		*(volatile char *)p = 1;
		keep(p);
		slots[i] = p;
	}
}

static void aligned_run(uint64_t ops)
{
	while (ops--) {
		uint32_t i = rng_below(&seed, 1000);
		size_t alignment = 16u << rng_below(&seed, 8); /* 16 to 2048 */
		void *p;

		free(slots[i]);
		if (posix_memalign(&p, alignment, rng_size(&seed, 6)))
			p = NULL;
		*(volatile char *)must(p) = 1;
		keep(p);
		slots[i] = p;
	}
}

/*
 * Four strings that grow to 64 KiB by a quarter, in turn: alone, a string would sit at the end
 * of glibc's heap and never move.  Operation: one realloc.
 */
static void realloc_run(uint64_t ops)
{
	for (uint64_t done = 0; done < ops;) {
		char *string[4] = {0};

		for (size_t size = 16; size < 65536; size += size / 4)
			for (int i = 0; i < 4; i++, done++) {
				string[i] = must(realloc(string[i], size));
				string[i][size - 1] = 1;
				keep(string[i]);
			}
		for (int i = 0; i < 4; i++)
			free(string[i]);
	}
}

/* A buffer that grows to 16 MiB by 32 KiB at a time, written as it grows. */
static void realloc_large_run(uint64_t ops)
{
	const size_t step = 32768;

	while (ops) {
		size_t size = step;
		char *p = NULL;

		for (; size <= 16u << 20 && ops; size += step, ops--) {
			p = must(realloc(p, size));
			memset(p + size - step, 1, step);
			keep(p);
		}
		free(p);
	}
}

/* 16 slots of 64 KiB to 4 MiB (mean 750 KiB), a byte written in each page. */
static void large_run(uint64_t ops)
{
	while (ops--) {
		uint32_t i = rng_below(&seed, LARGE_SLOTS);
		size_t base = (size_t)65536 << rng_below(&seed, 6);
		size_t size = base + rng_below(&seed, (uint32_t)base);
		char *p;

		free(slots[i]);
		p = must(malloc(size));
		for (size_t at = 0; at < size; at += 4096)
			*(volatile char *)(p + at) = 1;
		keep(p);
		slots[i] = p;
	}
}

static void large_pair_run(uint64_t ops)
{
	pair_fixed(ops, 300000);
}

const struct row single_rows[] = {
    {"pair16", 5000000, NULL, pair16_run, NULL, "malloc(16), free"},
    {"pair64", 5000000, NULL, pair64_run, NULL, "malloc(64), free"},
    {"pair256", 5000000, NULL, pair256_run, NULL, "malloc(256), free"},
    {"rotate", 5000000, NULL, rotate_run, NULL, "pair, 63 sizes in turn to 1008"},
    {"batch1k-lifo", 4000000, NULL, batch1k_lifo_run, NULL, "1,000 of 64 B, freed last first"},
    {"batch1k-fifo", 4000000, NULL, batch1k_fifo_run, NULL, "1,000 of 64 B, freed first first"},
    {"batch100k", 3000000, NULL, batch100k_run, NULL, "100,000 of 64 B, freed first first"},
    {"batch100k-mixed", 600000, order_setup, batch100k_mixed_run, NULL,
     "100,000 of 16 to 1023 B, freed in random order"},
    {"random1k", 3000000, random1k_setup, random1k_run, slots_free,
     "random replacement over 1,000 slots, 16 to 1023 B"},
    {"random50k", 1500000, random50k_setup, random50k_run, slots_free,
     "random replacement over 50,000 slots, 16 to 1023 B"},
    {"calloc", 1000000, NULL, calloc_run, slots_free, "calloc over 1,000 slots, 16 to 1023 B"},
    {"calloc-large", 20000, NULL, calloc64k_run, slots_free, "calloc over 16 slots, 4 to 128 KiB"},
    {"aligned", 500000, NULL, aligned_run, slots_free,
     "posix_memalign 16 to 2048 over 1,000 slots, 16 to 1023 B"},
    {"realloc", 500000, NULL, realloc_run, NULL,
     "realloc of four strings in turn, by a quarter up to 64 KiB"},
    {"realloc-large", 2048, NULL, realloc_large_run, NULL, "realloc by 32 KiB up to 16 MiB"},
    {"large", 1000, NULL, large_run, slots_free, "16 slots of 64 KiB to 4 MiB, each page written"},
    {"large-pair", 1000000, NULL, large_pair_run, NULL, "malloc(300000), first byte, free"},
    {0},
};
