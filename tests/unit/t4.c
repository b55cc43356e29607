/* SPDX-License-Identifier: MIT */
/*
 * T4 in the simulated topology: after each disturbance, every new object of every thread is on the
 * node where the thread runs.  t4 LIB runs itself again under LIB; t4 LIB check with
 * NUMASLAB_CHECK=1.
 */
#include "tests/unit/simrun.h"

#include <pthread.h>
#include <string.h>

#define NODES	4
#define OBJECTS 4000

static const size_t sizes[] = {16,   24,   48,	 64,   100,  208,   512,  1000,
			       1024, 1500, 2048, 4096, 8192, 12000, 40000};
#define SIZES (sizeof sizes / sizeof *sizes)

struct mine {
	pthread_t thread;
	int node, next; /* runs on .node, moves to .next */
	void *object[OBJECTS];
	long made, wrong[4];
};

static struct mine mine[NODES];
static pthread_barrier_t barrier;

/* Fills the thread's free places; counts the new ones that lie elsewhere. */
static long make(struct mine *m, int node)
{
	long wrong = 0;

	for (int i = 0; i < OBJECTS; i++) {
		if (m->object[i])
			continue;
		size_t size = sizes[(size_t)(i + (int)m->made) % SIZES];
		m->object[i] = i % 11 == 5 ? calloc(1, size) : malloc(size);
		if (!m->object[i])
			tap_bail("no memory");
		memset(m->object[i], 1, size);
		wrong += numaslab_node_of(m->object[i]) != node;
		m->made++;
	}
	return wrong;
}

static void drop(struct mine *m, int from, int step)
{
	for (int i = from; i < OBJECTS; i += step) {
		free(m->object[i]);
		m->object[i] = NULL;
	}
}

static void *run(void *arg)
{
	struct mine *m = arg;

	must_run_on(m->node);
	m->wrong[0] += make(m, m->node);
	for (int round = 0; round < 10; round++) { /* steady */
		drop(m, round % 3, 3);
		m->wrong[0] += make(m, m->node);
	}
	pthread_barrier_wait(&barrier);
	/* Others free half of what is mine. */
	drop(&mine[(m->node + 1) % NODES], 0, 2);
	pthread_barrier_wait(&barrier);
	m->wrong[1] += make(m, m->node);
	pthread_barrier_wait(&barrier);
	for (int round = 0; round < 6; round++) {
		int to = (m->next + round) % NODES;

		must_run_on(to);
		drop(m, round % 2, 2); /* the old node's objects go, new ones come */
		m->wrong[2] += make(m, to);
	}
	pthread_barrier_wait(&barrier);
	return NULL;
}

/* New threads on nodes where others lived before, which free what those left. */
static void *late(void *arg)
{
	struct mine *m = arg;
	int node = m->next;

	must_run_on(node);
	drop(m, 0, 2);
	m->wrong[3] += make(m, node);
	drop(m, 0, 1);
	return NULL;
}

static void all(void *(*fn)(void *))
{
	for (int i = 0; i < NODES; i++)
		if (pthread_create(&mine[i].thread, NULL, fn, &mine[i]))
			tap_bail("pthread_create");
	for (int i = 0; i < NODES; i++)
		pthread_join(mine[i].thread, NULL);
}

static long sum(int what)
{
	long n = 0;

	for (int i = 0; i < NODES; i++)
		n += mine[i].wrong[what];
	return n;
}

static void one_by_one(void)
{
	long wrong = 0, made = 0;

	for (int i = 0; i < 20000; i++) {
		int node = i * 7 / 3 % NODES;
		size_t size = sizes[(size_t)i % SIZES];

		must_run_on(node);
		void *p = malloc(size);
		wrong += numaslab_node_of(p) != node;
		made++;
		if (i % 3)
			free(p);
	}
	tap(wrong == 0, "not one object of the old node after a move", "%ld of %ld elsewhere",
	    wrong, made);
}

int main(int argc, char **argv)
{
	static const char *const name[] = {"own and steady", "after others freed its objects",
					   "after the thread moved", "new threads"};
	long made = 0;

	if (!is_under_library()) {
		if (argc < 2) {
			fprintf(stderr, "usage: t4 LIB [check]\n");
			return 2;
		}
		if (argc > 2)
			setenv("NUMASLAB_CHECK", "1", 1);
		run_under(argv[1], "0:1G@0;1:1G@1;2:1G@2;3:1G@3", argv[0], "x");
	}
	pthread_barrier_init(&barrier, NULL, NODES);
	for (int i = 0; i < NODES; i++) {
		mine[i].node = i;
		mine[i].next = (i + 1) % NODES;
	}
	all(run);
	all(late);
	for (int i = 0; i < NODES; i++)
		made += mine[i].made;
	for (int i = 0; i < 4; i++)
		tap(sum(i) == 0, name[i], "%ld objects elsewhere (of %ld in all)", sum(i), made);
	one_by_one();
	return tap_end();
}
