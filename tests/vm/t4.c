/* SPDX-License-Identifier: MIT */
/*
 * T4, locality under disturbance: one thread per node allocates for itself, and move_pages tells
 * which of its own new objects lie on another node.
 *
 *	t4 NAME [gate|lose]	prints a row of targets.md's table
 *	gate	0 in the first two columns, at most 0.5 % in the others, or "not ok"
 *	lose	at least half remote after a move: what is known of glibc, so that the test is known
 *to tell
 */
#include "tests/vm/guest.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NODES	4
#define OBJECTS 16384
#define ROUNDS	4

enum phase { OWN, STEADY, OTHERS, MOVED, NEW_THREADS, PHASES };
static const char *const phase_name[PHASES] = {
    "own",
    "steady",
    "after others freed its objects",
    "after the thread moved",
    "new threads on other nodes",
};

struct worker {
	int index;
	uint64_t seed;
	void **object;
	void **fresh; /* those of object[] that a phase allocated */
	size_t fresh_count;
	struct tally tally[PHASES];
	uint64_t remote[PHASES];
};

static struct worker worker[NODES];
static pthread_barrier_t barrier;

static int worker_cpu(int index)
{
	return cpu_of_node(index % NODES);
}

static void put(struct worker *w, size_t i)
{
	size_t size = 16 + next_random(&w->seed) % 1009;

	w->object[i] = malloc(size);
	if (!w->object[i])
		die("%zu bytes", size);
	memset(w->object[i], 1, size);
	w->fresh[w->fresh_count++] = w->object[i];
}

static void put_all(struct worker *w)
{
	w->fresh_count = 0;
	for (size_t i = 0; i < OBJECTS; i++)
		put(w, i);
}

/* All but each object whose number keep divides (0: all), in an order of its own, as programs do.
 */
static void free_most(struct worker *w, struct worker *of, size_t keep)
{
	size_t step = 7919; /* a prime that does not divide OBJECTS */

	for (size_t i = 0, j = next_random(&w->seed) % OBJECTS; i < OBJECTS; i++) {
		if (!keep || j % keep)
			free(of->object[j]);
		j = (j + step) % OBJECTS;
	}
}

static void free_all(struct worker *w, struct worker *of)
{
	free_most(w, of, 0);
}

static void measure(struct worker *w, enum phase phase, int node)
{
	struct tally *t = &w->tally[phase];

	tally_objects(t, w->fresh, w->fresh_count);
	w->remote[phase] = t->total - t->on[node];
}

static void own_and_steady(struct worker *w)
{
	put_all(w);
	pthread_barrier_wait(&barrier);
	measure(w, OWN, w->index);
	pthread_barrier_wait(&barrier);
	for (int round = 0; round < ROUNDS; round++) {
		w->fresh_count = 0;
		for (size_t i = 0; i < OBJECTS; i++) {
			if (next_random(&w->seed) & 1)
				continue;
			free(w->object[i]);
			put(w, i);
		}
	}
	pthread_barrier_wait(&barrier);
	measure(w, STEADY, w->index);
	pthread_barrier_wait(&barrier);
}

/* The first four disturbances; leaves some objects to those who come after. */
static void *first_thread(void *arg)
{
	struct worker *w = arg;
	int next = (w->index + 1) % NODES;

	pin_cpu(worker_cpu(w->index));
	own_and_steady(w);
	free_all(w, &worker[next]);
	pthread_barrier_wait(&barrier);
	put_all(w);
	pthread_barrier_wait(&barrier);
	measure(w, OTHERS, w->index);
	pthread_barrier_wait(&barrier);
	pin_cpu(worker_cpu(next));
	free_all(w, w);
	put_all(w);
	pthread_barrier_wait(&barrier);
	measure(w, MOVED, next);
	pthread_barrier_wait(&barrier);
	free_most(w, w, 8);
	return NULL;
}

static void *later_thread(void *arg)
{
	struct worker *w = arg;

	pin_cpu(worker_cpu(w->index));
	put_all(w);
	pthread_barrier_wait(&barrier);
	measure(w, NEW_THREADS, w->index);
	pthread_barrier_wait(&barrier);
	free_all(w, w);
	return NULL;
}

/* Starts the threads, each on its node from the first instruction, in the given order of nodes. */
static void run_threads(void *(*body)(void *), int shift)
{
	pthread_t thread[NODES];
	pthread_attr_t attr;
	cpu_set_t set;

	pthread_attr_init(&attr);
	for (int i = 0; i < NODES; i++) {
		struct worker *w = &worker[(i + shift) % NODES];

		CPU_ZERO(&set);
		CPU_SET(worker_cpu(w->index), &set);
		pthread_attr_setaffinity_np(&attr, sizeof(set), &set);
		if (pthread_create(&thread[i], &attr, body, w))
			die("a thread");
	}
	for (int i = 0; i < NODES; i++)
		pthread_join(thread[i], NULL);
	pthread_attr_destroy(&attr);
}

static void report(const char *name, const char *mode)
{
	double share[PHASES];
	uint64_t disagree = 0;

	for (int p = 0; p < PHASES; p++) {
		uint64_t remote = 0, total = 0;

		for (int i = 0; i < NODES; i++) {
			remote += worker[i].remote[p];
			total += worker[i].tally[p].total;
			disagree += worker[i].tally[p].disagree;
		}
		share[p] = 100.0 * remote / total;
	}
	note("| %-28s | %5.1f | %5.1f | %5.1f | %5.1f | %5.1f |", name, share[OWN], share[STEADY],
	     share[OTHERS], share[MOVED], share[NEW_THREADS]);
	if (!strcmp(mode, "lose"))
		check(share[MOVED] >= 50, "%s loses after a move (%.1f %% remote), so this tells",
		      name, share[MOVED]);
	if (strcmp(mode, "gate"))
		return;
	for (int p = 0; p < PHASES; p++)
		check(p <= STEADY ? share[p] == 0 : share[p] <= 0.5, "%s: %s: %.2f %% remote <= %s",
		      name, phase_name[p], share[p], p <= STEADY ? "0" : "0.5");
	check(numaslab_node_of && !disagree, "%s: node_of and the kernel differ for %lu", name,
	      disagree);
}

int main(int argc, char **argv)
{
	guest_start();
	pthread_barrier_init(&barrier, NULL, NODES);
	for (int i = 0; i < NODES; i++)
		worker[i] = (struct worker){
		    .index = i,
		    .seed = 100 + i,
		    .object = map_pages(OBJECTS * sizeof(void *), i),
		    .fresh = map_pages(ROUNDS * OBJECTS * sizeof(void *), i),
		};
	run_threads(first_thread, 0);
	run_threads(later_thread, 2);
	report(argc > 1 ? argv[1] : "?", argc > 2 ? argv[2] : "");
	return 0;
}
