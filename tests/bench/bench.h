/* SPDX-License-Identifier: MIT */
/*
 * What the benchmark programs share.  They call plain malloc and free, so that whatever
 * LD_PRELOAD brings is what gets measured.
 */
#ifndef NUMASLAB_BENCH_H
#define NUMASLAB_BENCH_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define noinline __attribute__((noinline))

/* The compiler may neither drop the call that made p nor guess what p points to. */
#define keep(p) __asm__ volatile("" : "+r"(p) : : "memory")

static inline uint64_t clock_ns(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* splitmix64 (Steele, Lea, Flood 2014): a fixed seed gives every allocator the same run. */
static inline uint64_t rng_next(uint64_t *state)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15u);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

/* 0 <= result < bound, without a division */
static inline uint32_t rng_below(uint64_t *state, uint32_t bound)
{
	return (uint32_t)(((rng_next(state) >> 32) * bound) >> 32);
}

/* 16 <= size < 16 << octaves: each octave equally likely, uniform within it. */
static inline size_t rng_size(uint64_t *state, uint32_t octaves)
{
	uint64_t r = rng_next(state);
	uint64_t base = 16u << (((r >> 48) * octaves) >> 16);

	return base + (((r & 0xffffffffu) * base) >> 32);
}

static inline void *must(void *p)
{
	if (__builtin_expect(!p, 0)) {
		fputs("bench: out of memory\n", stderr);
		exit(1);
	}
	return p;
}

/* A block of at least 8 bytes whose first word the program writes, as real ones do. */
static inline void *take(size_t size)
{
	uint64_t *p = must(malloc(size));

	*(volatile uint64_t *)p = size;
	keep(p);
	return p;
}

/*
 * One row of the table.  run() does `ops` operations and leaves what setup() made as it
 * found it in number and size, so that it can be repeated; all of them run in one process.
 */
struct row {
	const char *name;
	uint64_t ops;
	void (*setup)(void);
	void (*run)(uint64_t ops);
	void (*finish)(void);
	const char *what;
};

extern const struct row single_rows[];
extern const struct row thread_rows[];

#endif
