/* SPDX-License-Identifier: MIT */
/* Blocks that outlive their thread or change hands. */
#include "harness.h"

#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void start(pthread_t *thread, void *(*body)(void *), void *arg)
{
	CHECK_EQ(pthread_create(thread, NULL, body, arg), 0);
}

static void run_thread(void *(*body)(void *), void *arg)
{
	pthread_t thread;

	start(&thread, body, arg);
	pthread_join(thread, NULL);
}

enum { BLOCKS = 20000 };
static void *blocks[8][BLOCKS];

static void *fill(void *at)
{
	uint64_t seed = (uintptr_t)at;

	for (int i = 0; i < BLOCKS; i++) {
		size_t size = 16 + random_next(&seed) % 500;

		((void **)at)[i] = malloc(size);
		block_fill(((void **)at)[i], 16);
	}
	return NULL;
}

static void *drain(void *at)
{
	for (int i = 0; i < BLOCKS; i++) {
		CHECK(block_holds(((void **)at)[i], 16));
		free(((void **)at)[i]);
	}
	return NULL;
}

/* Threads that only allocate, threads that only free, one after the other: no growth. */
static void only_free(void)
{
	size_t before = 0, now = 0;

	for (int round = 0; round < 20; round++) {
		for (int i = 0; i < 4; i++)
			run_thread(fill, blocks[i]);
		now = anon_kib();
		for (int i = 0; i < 4; i++)
			run_thread(drain, blocks[i]);
		if (round == 2)
			before = now;
	}
	if (now > before + 2048)
		fail("17 rounds: the peak grew from %zu to %zu KiB", before, now);
}

static void dead_threads_blocks(void)
{
	size_t before, peak;

	memset(blocks, 1, sizeof(blocks));
	before = anon_kib();
	for (int i = 0; i < 8; i++)
		run_thread(fill, blocks[i]);
	peak = anon_kib();
	for (int i = 0; i < 8; i++)
		drain(blocks[7 - i]);
	if (anon_kib() > before + 4096)
		fail("%zu KiB of %zu stay after dead threads' blocks are freed",
		     anon_kib() - before, peak - before);
}

/* Dead threads' memory is used again by those who come. */
static void dead_threads_reused(void)
{
	size_t peak;

	for (int i = 0; i < 8; i++)
		run_thread(fill, blocks[i]);
	peak = anon_kib();
	for (int round = 0; round < 5; round++) {
		for (int i = 0; i < 8; i++)
			for (int k = 0; k < BLOCKS; k += 2)
				free(blocks[i][k]);
		for (int i = 0; i < 8; i++)
			for (int k = 0; k < BLOCKS; k += 2) {
				blocks[i][k] = malloc(16 + random_next(&(uint64_t){k * 7}) % 500);
				block_fill(blocks[i][k], 16);
			}
	}
	if (anon_kib() > peak + peak / 4)
		fail("%zu KiB grew to %zu", peak, anon_kib());
}

struct queue {
	_Atomic(void *) slot[1024];
	atomic_bool done;
	int producers;
};

static void *produce(void *arg)
{
	struct queue *q = arg;
	uint64_t seed = (uintptr_t)&seed;

	for (int i = 0; i < 300000; i++) {
		size_t size = 16 + random_next(&seed) % 400;
		size_t *p = malloc(size);

		*p = size;
		memset(p + 1, (int)size, size - sizeof(*p));
		p = atomic_exchange(&q->slot[random_next(&seed) % 1024], p);
		free(p);
	}
	return NULL;
}

static void *consume(void *arg)
{
	struct queue *q = arg;
	int n = 0;

	while (!q->done) {
		size_t *p = atomic_exchange(&q->slot[n++ % 1024], NULL);

		if (!p)
			continue;
		for (size_t i = sizeof(*p); i < *p; i++)
			if (((unsigned char *)p)[i] != (unsigned char)*p)
				fail("a block of %zu bytes was overwritten", *p);
		free(p);
	}
	return NULL;
}

static void change_hands(void)
{
	static struct queue q;
	pthread_t threads[4];

	for (int i = 0; i < 4; i++)
		start(&threads[i], i & 1 ? consume : produce, &q);
	pthread_join(threads[0], NULL);
	pthread_join(threads[2], NULL);
	q.done = true;
	pthread_join(threads[1], NULL);
	pthread_join(threads[3], NULL);
}

/* A consumer that waits forever must not keep what the others gave it. */
static void *free_for_ever(void *arg)
{
	pthread_barrier_t *gate = arg;

	pthread_barrier_wait(gate);
	for (int i = 0; i < 4; i++)
		drain(blocks[i]);
	pthread_barrier_wait(gate);
	pthread_barrier_wait(gate);
	return NULL;
}

static void waiting_thread_keeps_little(void)
{
	pthread_barrier_t gate;
	pthread_t thread;
	size_t before;

	memset(blocks, 1, sizeof(blocks));
	before = anon_kib();
	pthread_barrier_init(&gate, NULL, 2);
	start(&thread, free_for_ever, &gate);
	for (int i = 0; i < 4; i++)
		fill(blocks[i]);
	pthread_barrier_wait(&gate);
	pthread_barrier_wait(&gate);
	malloc_trim(0);
	if (anon_kib() > before + 2048)
		fail("%zu KiB stay", anon_kib() - before);
	pthread_barrier_wait(&gate);
	pthread_join(thread, NULL);
}

/*
 * Threads take turns to replace blocks of one table, whoever they are from, and wait while the
 * others do: what is freed into the slabs of who waits must not be lost to them all.
 */
enum { TURNERS = 16, TURNS = 10, TABLE = 12000, REPLACED = 10000, LARGEST = 8000 };

static struct {
	pthread_mutex_t lock;
	pthread_cond_t next;
	int turn;
	size_t live;
	void *block[TABLE];
	size_t size[TABLE];
} table = {.lock = PTHREAD_MUTEX_INITIALIZER, .next = PTHREAD_COND_INITIALIZER};

static void wait_for(bool mine, int number)
{
	while (mine ? table.turn % TURNERS != number : table.turn < number)
		pthread_cond_wait(&table.next, &table.lock);
}

static void replace(uint64_t *seed)
{
	int i = (int)(random_next(seed) % TABLE);

	free(table.block[i]);
	table.live -= table.size[i];
	table.size[i] = 16 + random_next(seed) % LARGEST;
	table.live += table.size[i];
	table.block[i] = malloc(table.size[i]);
	memset(table.block[i], 1, table.size[i]);
}

static void *take_turns(void *arg)
{
	int me = (int)(intptr_t)arg;
	uint64_t seed = (uint64_t)me + 1;

	pthread_mutex_lock(&table.lock);
	for (int round = 0; round < TURNS; round++) {
		wait_for(true, me);
		for (int i = 0; i < REPLACED; i++)
			replace(&seed);
		table.turn++;
		pthread_cond_broadcast(&table.next);
	}
	wait_for(false, TURNERS * TURNS + 1);
	pthread_mutex_unlock(&table.lock);
	return NULL;
}

static void waiting_threads_lose_little(void)
{
	pthread_t threads[TURNERS];
	size_t before = anon_kib();

	for (intptr_t i = 0; i < TURNERS; i++)
		start(&threads[i], take_turns, (void *)i);
	pthread_mutex_lock(&table.lock);
	wait_for(false, TURNERS * TURNS);
	size_t kib = anon_kib() - before;
	note("%zu KiB for %zu KiB of blocks", kib, table.live / 1024);
	if (kib > 8 * (table.live / 1024))
		fail("%zu KiB for %zu KiB of blocks", kib, table.live / 1024);
	table.turn++;
	pthread_cond_broadcast(&table.next);
	pthread_mutex_unlock(&table.lock);
	for (int i = 0; i < TURNERS; i++)
		pthread_join(threads[i], NULL);
}

/*
 * Wide blocks that one thread replaces over and over, freed by another while the first waits: what
 * the first keeps of slabs used to their end is bounded by their bytes, not by their number.
 */
enum { WIDE = 60000, WIDE_ROUNDS = 4, WIDE_MIN = 8192 };
static void *wide[WIDE];

static void *free_wide(void *arg)
{
	(void)arg;
	for (int i = 0; i < WIDE; i++)
		free(wide[i]);
	return NULL;
}

static void waiting_thread_keeps_few_wide(void)
{
	size_t before = anon_kib();
	uint64_t seed = 1;

	for (int i = 0; i < WIDE * WIDE_ROUNDS; i++) {
		void **at = &wide[i < WIDE ? (uint64_t)i : random_next(&seed) % WIDE];

		free(*at);
		*at = malloc(WIDE_MIN + random_next(&seed) % WIDE_MIN);
		memset(*at, 1, WIDE_MIN);
	}
	size_t peak = anon_kib() - before;
	run_thread(free_wide, NULL);
	size_t kib = anon_kib() - before;
	note("%zu KiB of %zu stay", kib, peak);
	if (kib > peak / 10 * 6)
		fail("%zu KiB of %zu stay", kib, peak);
}

const struct test tests[] = {
    {.name = "only_free", .run = only_free},
    {.name = "dead_threads_blocks", .run = dead_threads_blocks},
    {.name = "dead_threads_reused", .run = dead_threads_reused},
    {.name = "change_hands", .run = change_hands},
    {.name = "waiting_thread_keeps_little", .run = waiting_thread_keeps_little},
    {.name = "waiting_threads_lose_little", .run = waiting_threads_lose_little, .numaslab = true},
    {.name = "waiting_thread_keeps_few_wide",
     .run = waiting_thread_keeps_few_wide,
     .numaslab = true},
    {.name = NULL},
};
