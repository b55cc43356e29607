/* SPDX-License-Identifier: MIT */
/* Resident memory goes back after free. */
#include "harness.h"

#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MIB (1ul << 20)

enum { MANY = 600000 };
static void **many; /* not in .bss, which RLIMIT_DATA and mlockall count */

static void make_many(void)
{
	many = mmap(NULL, MANY * sizeof(*many), PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	CHECK(many != MAP_FAILED);
}

static void shuffle(uint64_t seed)
{
	for (int i = MANY - 1; i > 0; i--) {
		int k = random_next(&seed) % (i + 1);
		void *p = many[i];

		many[i] = many[k];
		many[k] = p;
	}
}

static void fill_many(size_t *before, size_t *peak)
{
	uint64_t seed = 17;

	if (!many)
		make_many();
	free(malloc(100));
	*before = anon_kib();
	for (int i = 0; i < MANY; i++) {
		size_t size = i % 5000 ? 16 + random_next(&seed) % 1000 : 20000 + (size_t)i;

		memset(many[i] = malloc(size), 1, size);
	}
	*peak = anon_kib() - *before;
	CHECK(*peak > 250 * 1024);
}

static void check_back(size_t before, size_t peak, const char *what)
{
	size_t now = anon_kib(), stays = now > before ? now - before : 0;

	if (stays > (peak / 64 > 1024 ? peak / 64 : 1024))
		fail("%s: %zu of %zu KiB stay", what, stays, peak);
}

static void back_order(int order)
{
	size_t before, peak;

	fill_many(&before, &peak);
	if (order == 2)
		shuffle(3);
	for (int i = 0; i < MANY; i++)
		free(many[order == 1 ? MANY - 1 - i : i]);
	check_back(before, peak, "after free");
}

static void back_fifo(void)
{
	back_order(0);
}

static void back_lifo(void)
{
	back_order(1);
}

static void back_shuffled(void)
{
	back_order(2);
}

static void *free_quarter(void *at)
{
	for (int i = 0; i < MANY / 4; i++)
		free(((void **)at)[i]);
	return NULL;
}

static void back_threads(void)
{
	size_t before, peak;
	pthread_t threads[4];

	fill_many(&before, &peak);
	for (int i = 0; i < 4; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, free_quarter, many + i * (MANY / 4)), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	malloc_trim(0);
	check_back(before, peak, "after free by other threads and malloc_trim");
}

/* Habit must not change it: filled and emptied many times, by threads that come and go. */
static void *fill_quarter(void *at)
{
	for (int i = 0; i < MANY / 16; i++)
		memset(((void **)at)[i] = malloc(16 + i * 7 % 500), 1, 16);
	return NULL;
}

static void *empty_quarter(void *at)
{
	for (int i = 0; i < MANY / 16; i++)
		free(((void **)at)[i]);
	return NULL;
}

static void back_rounds(void)
{
	size_t before, peak = 0;
	pthread_t thread;

	make_many();
	free(malloc(100));
	before = anon_kib();
	for (int round = 0; round < 40; round++) {
		for (int i = 0; i < 8; i++) {
			CHECK_EQ(pthread_create(&thread, NULL, i < 4 ? fill_quarter : empty_quarter,
						many + i % 4 * (MANY / 4)),
				 0);
			pthread_join(thread, NULL);
			if (i == 3)
				peak = anon_kib() - before;
		}
	}
	check_back(before, peak, "after 40 rounds");
}

/*
 * A program that cycles may keep 64 MiB more (NUMASLAB_RETAIN), as long as it does; a second
 * after the last round the next calls, whatever they are, give that back.
 */
static void back_after_rounds(void)
{
	size_t before;
	void *small[500];

	make_many();
	free(malloc(100));
	before = anon_kib();
	for (int round = 0; round < 10; round++) {
		fill_quarter(many);
		empty_quarter(many);
	}
	if (anon_kib() > before + 33 * 1024)
		fail("%zu KiB stay between rounds", anon_kib() - before);
	usleep(1200000); /* the time is what is tested */
	for (int i = 0; i < 500; i++)
		small[i] = malloc(700);
	for (int i = 0; i < 500; i++)
		free(small[i]);
	check_back(before, 0, "a second after the rounds");
}

static void back_large(void)
{
	size_t before, peak;

	make_many();
	free(malloc(100));
	before = anon_kib();
	for (int i = 0; i < 300; i++)
		memset(many[i] = malloc(MIB + i * 4096), 1, MIB);
	peak = anon_kib() - before;
	for (int i = 0; i < 300; i++)
		free(many[i]);
	check_back(before, peak, "large blocks");
}

/* Nine in ten freed at random, then trimmed: whole pages of large objects go back. */
static void back_partly(void)
{
	enum { N = 30000 };
	size_t before, peak, now;
	uint64_t seed = 5;

	make_many();
	before = anon_kib();
	for (int i = 0; i < N; i++)
		memset(many[i] = malloc(9000), 1, 9000);
	peak = anon_kib() - before;
	for (int i = 0; i < N; i++)
		if (random_next(&seed) % 10)
			free(many[i]);
	malloc_trim(0);
	now = anon_kib() - before;
	if (now > peak / 2)
		fail("%zu of %zu KiB stay with a tenth of the objects", now, peak);
}

const struct test tests[] = {
    {.name = "back_fifo", .run = back_fifo, .timeout = 60},
    {.name = "back_lifo", .run = back_lifo, .timeout = 60},
    {.name = "back_shuffled", .run = back_shuffled, .timeout = 60},
    {.name = "back_threads", .run = back_threads, .timeout = 60},
    {.name = "back_rounds", .run = back_rounds, .env = {"NUMASLAB_RETAIN=0"}, .timeout = 60},
    {.name = "back_after_rounds", .run = back_after_rounds, .timeout = 60},
    {.name = "back_large", .run = back_large},
    {.name = "back_partly", .run = back_partly},
    {.name = NULL},
};
