/* SPDX-License-Identifier: MIT */
/* The process that is counted: warms the heap, then does each operation between two gates. */
#include "bench.h"
#include "count.h"

enum {
	LIVE = 300,
	BATCH = 1000,
	RANDOM_LARGE = 20000,
	ROTATE = 63,
	LONG_SAMPLES = 2,
	WARM_PAIRS = 100
};

static void *live[LIVE];
static void *slots[RANDOM_LARGE];
static size_t sizes[BATCH];
static uint32_t picks[BATCH];
static uint64_t seed = 42;

/* Leaves 200 objects alive and 100 holes among them. */
static void heap_warm(size_t size)
{
	for (int i = 0; i < LIVE; i++)
		live[i] = take(size);
	for (int i = 0; i < LIVE; i += 3) {
		free(live[i]);
		live[i] = NULL;
	}
}

static void heap_cool(void)
{
	for (int i = 0; i < LIVE; i++)
		free(live[i]);
}

/* Counted in the long run: an allocator may have to learn first that the size comes and goes. */
static noinline void count_pair_alone(int samples)
{
	for (int i = -WARM_PAIRS; i < samples; i++) {
		if (i >= 0)
			count_gate(COUNT_pair16_alone);
		void *p = malloc(16);

		keep(p);
		free(p);
		if (i >= 0)
			count_gate(-1);
	}
}

/* on_malloc, on_free: COUNT_OPS_N leaves that half uncounted */
static noinline void count_halves(int samples, size_t size, int on_malloc, int on_free)
{
	heap_warm(size);
	for (int i = 0; i < samples; i++) {
		free(take(size)); /* the code and the list are warm */
		count_gate(on_malloc);
		void *p = malloc(size);

		keep(p);
		count_gate(-1);
		*(volatile uint64_t *)must(p) = 1;
		count_gate(on_free);
		free(p);
		count_gate(-1);
	}
	heap_cool();
}

static noinline void count_calloc(int samples)
{
	heap_warm(16);
	for (int i = 0; i < samples; i++) {
		free(take(16));
		count_gate(COUNT_calloc16);
		void *p = calloc(1, 16);

		keep(p);
		count_gate(-1);
		free(p);
	}
	heap_cool();
}

static noinline void count_memalign(int samples)
{
	heap_warm(64);
	for (int i = 0; i < samples; i++) {
		void *p = NULL;

		count_gate(COUNT_memalign64);
		int error = posix_memalign(&p, 64, 64);

		keep(p);
		count_gate(-1);
		if (error)
			exit(1);
		free(p);
	}
	heap_cool();
}

static noinline void count_rotate(void)
{
	for (int i = 0; i < LONG_SAMPLES + 1; i++) {
		if (i)
			count_gate(COUNT_rotate);
		for (size_t size = 16; size <= 16 * ROTATE; size += 16) {
			void *p = malloc(size);

			keep(p);
			free(p);
		}
		if (i)
			count_gate(-1);
	}
}

static noinline void batch_free(int op, int lifo)
{
	if (op >= 0)
		count_gate(op);
	for (int i = 0; i < BATCH; i++)
		free(slots[lifo ? BATCH - 1 - i : i]);
	if (op >= 0)
		count_gate(-1);
}

static noinline void count_batch(void)
{
	for (int i = 0; i < 4; i++) {
		int counted = i >= 2;

		if (counted)
			count_gate(COUNT_batch_malloc);
		for (int k = 0; k < BATCH; k++) {
			slots[k] = malloc(64);
			keep(slots[k]);
		}
		if (counted)
			count_gate(-1);
		batch_free(!counted ? -1
			   : i % 2  ? COUNT_batch_free_lifo
				    : COUNT_batch_free_fifo,
			   i % 2);
	}
}

/* Counted once every slot has been replaced some ten times: fresh slabs are another matter. */
static noinline void count_random(int op, uint32_t n)
{
	int quiet = (int)(n / BATCH) * 20;

	for (uint32_t i = 0; i < n; i++)
		slots[i] = take(rng_size(&seed, 6));
	for (int round = 0; round < quiet + LONG_SAMPLES; round++) {
		for (int i = 0; i < BATCH; i++) {
			sizes[i] = rng_size(&seed, 6);
			picks[i] = rng_below(&seed, n);
		}
		if (round >= quiet)
			count_gate(op);
		for (int i = 0; i < BATCH; i++) {
			free(slots[picks[i]]);
			slots[picks[i]] = malloc(sizes[i]);
			keep(slots[picks[i]]);
		}
		if (round >= quiet)
			count_gate(-1);
	}
	for (uint32_t i = 0; i < n; i++)
		free(slots[i]);
}

/* Gates that the tracer does not ask for are passed at full speed. */
int count_child(int samples)
{
	free(take(16));
	count_pair_alone(samples);
	count_halves(samples, 16, COUNT_malloc16, COUNT_free16);
	count_halves(samples, 64, COUNT_malloc64, COUNT_free64);
	count_halves(samples, 1000, COUNT_malloc1000, COUNT_free1000);
	count_halves(samples, 2000, COUNT_malloc2000, COUNT_free2000);
	count_calloc(samples);
	count_memalign(samples);
	count_rotate();
	count_batch();
	count_random(COUNT_random1k, BATCH);
	count_random(COUNT_random20k, RANDOM_LARGE);
	return 0;
}
