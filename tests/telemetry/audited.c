/* SPDX-License-Identifier: MIT */
/*
 * Works its heap hard with many threads, and says what it holds.  A word a line on stdin:
 *	work N    threads come, each replaces N blocks that all share, half of them stay, idle
 *	run, rest threads go on until they are told to stop; all at rest then
 *	free K    every K-th of the blocks is freed (1: all)
 *	large     some large blocks come, are resized, and go
 * Each answers, at rest, with lines "size blocks" by usable size, and "end".
 */
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "preload/numaslab.h"

#define SLOTS	30000
#define THREADS 6

static const size_t sizes[] = {24,   200,  208,	 330,  1000,  1300,  2500,
			       5000, 5440, 8000, 9500, 30000, 60000, 65536};
static _Atomic(void *) slot[SLOTS];
static void *big[40];
static _Atomic bool stop;
static unsigned long operations;
static pthread_barrier_t done, leave;
static uint64_t rounds;

static uint64_t draw(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* Small ones are more; the first bytes are written, as a program does. */
static void *make(uint64_t *state)
{
	uint64_t r = draw(state);
	unsigned n = sizeof sizes / sizeof *sizes;
	size_t size = sizes[r % 64 ? r % 10 : r / 64 % n];
	char *p = malloc(size);

	if (p)
		memset(p, 1, size < 256 ? size : 256);
	return p;
}

static void replace(unsigned long n, uint64_t *state)
{
	while (n-- && !atomic_load_explicit(&stop, memory_order_relaxed)) {
		uint64_t r = draw(state);
		void *p = r >> 60 ? make(state) : NULL;

		free(atomic_exchange(&slot[r % SLOTS], p));
		/* Moving threads, where nodes are simulated. */
		if ((r >> 32) % 50000 == 0 && numaslab_set_cpu)
			numaslab_set_cpu((int)(r >> 40) % 4);
	}
}

static void *work(void *arg)
{
	uint64_t state = 88172645463325252 + (uintptr_t)arg * 7919 + rounds;

	if (numaslab_set_cpu)
		numaslab_set_cpu((int)(uintptr_t)arg % 4);
	replace(operations, &state);
	if ((uintptr_t)arg % 2) /* these end, and their heaps rest */
		return NULL;
	pthread_barrier_wait(&done);
	pthread_barrier_wait(&leave);
	return NULL;
}

/* Half of them end, half stay with their heaps until the next round. */
static pthread_t thread[THREADS];

static void start(unsigned long n)
{
	if (rounds++) {
		pthread_barrier_wait(&leave);
		for (int i = 0; i < THREADS; i += 2)
			pthread_join(thread[i], NULL);
	} else {
		pthread_barrier_init(&done, NULL, THREADS / 2 + 1);
		pthread_barrier_init(&leave, NULL, THREADS / 2 + 1);
	}
	operations = n;
	atomic_store(&stop, false);
	for (uintptr_t i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, work, (void *)i);
}

static void settle(void)
{
	for (int i = 1; i < THREADS; i += 2)
		pthread_join(thread[i], NULL);
	pthread_barrier_wait(&done);
}

static void large(void)
{
	for (unsigned i = 0; i < 40; i++) {
		size_t size = ((size_t)70 << 10) * (1 + i % 13);

		free(i % 3 ? NULL : big[i]);
		if (i % 3 == 0 || !big[i])
			big[i] = malloc(size);
		if (i % 4 == 1)
			big[i] = realloc(big[i], size * 3);
		if (i % 4 == 2)
			big[i] = realloc(big[i], size / 5 + 66000);
		if (big[i])
			memset(big[i], 2, size / 5);
	}
	/* With others behind them: they move. */
	for (unsigned i = 0; i < 40; i += 5)
		big[i] = realloc(big[i], 2 * malloc_usable_size(big[i]) + (3 << 20));
}

static void say(void)
{
	static struct {
		size_t usable;
		unsigned long blocks;
	} seen[128];
	unsigned n = 0;

	memset(seen, 0, sizeof seen);
	for (unsigned i = 0; i < SLOTS + 40; i++) {
		void *p = i < SLOTS ? atomic_load(&slot[i]) : big[i - SLOTS];
		size_t usable = p ? malloc_usable_size(p) : 0;
		unsigned k = 0;

		while (p && k < n && seen[k].usable != usable)
			k++;
		if (!p || k == 128)
			continue;
		n += k == n;
		seen[k].usable = usable;
		seen[k].blocks++;
	}
	for (unsigned k = 0; k < n; k++)
		printf("%zu %lu\n", seen[k].usable, seen[k].blocks);
}

int main(void)
{
	char line[64], word[16];
	unsigned long n;

	while (fgets(line, sizeof line, stdin)) {
		bool running = !strncmp(line, "run", 3);
		n = 0;
		if (sscanf(line, "%15s %lu", word, &n) < 1)
			continue;
		if (!strcmp(word, "work")) {
			start(n);
			settle();
		} else if (!strcmp(word, "run")) {
			start(-1ul);
		} else if (!strcmp(word, "rest")) {
			atomic_store(&stop, true);
			settle();
		} else if (!strcmp(word, "large")) {
			large();
		} else if (!strcmp(word, "free")) {
			for (unsigned i = 0; n && i < SLOTS; i += (unsigned)n)
				free(atomic_exchange(&slot[i], NULL));
		}
		if (!running)
			say();
		puts("end");
		fflush(stdout);
	}
	return 0;
}
