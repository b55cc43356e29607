/* SPDX-License-Identifier: MIT */
/* The rows of several threads.  Operation: one malloc with the free that belongs to it. */
#include <limits.h>
#include <pthread.h>
#include <string.h>

#include "bench.h"

enum {
	LARSON_SLOTS = 1000,
	LARSON_LIFE = 20000, /* operations before a thread hands over to its successor */
	QUEUE_DEPTH = 16,
	BATCH = 128,
	MANY_THREADS = 256,
	MANY_OBJECTS = 64,
	GUEST_OBJECTS = 200, /* taken by each short-lived thread */
	GUEST_LEFT = 50,     /* of them left for a later thread to free */
};

static pthread_attr_t small_stack;

/* The stacks' pages are the same small cost for everyone. */
static void thread_start(pthread_t *t, void *(*body)(void *), void *arg)
{
	if (pthread_create(t, &small_stack, body, arg)) {
		fputs("bench: cannot create a thread\n", stderr);
		exit(1);
	}
}

static void thread_setup(void)
{
	pthread_attr_init(&small_stack);
	pthread_attr_setstacksize(&small_stack, 65536);
}

/* A server after Larson and Krishnan 1998: a thread inherits the objects of the one before. */
struct larson {
	void *slots[LARSON_SLOTS];
	uint64_t seed, left;
	pthread_mutex_t lock;
	pthread_cond_t done;
	int finished;
};

static struct larson larsons[2];

static void *larson_body(void *arg)
{
	struct larson *l = arg;
	uint64_t n = l->left < LARSON_LIFE ? l->left : LARSON_LIFE;
	pthread_t next;

	l->left -= n;
	while (n--) {
		uint32_t i = rng_below(&l->seed, LARSON_SLOTS);

		free(l->slots[i]);
		l->slots[i] = take(rng_size(&l->seed, 6));
	}
	if (l->left) {
		thread_start(&next, larson_body, l);
		pthread_detach(next);
		return NULL;
	}
	pthread_mutex_lock(&l->lock);
	l->finished = 1;
	pthread_cond_signal(&l->done);
	pthread_mutex_unlock(&l->lock);
	return NULL;
}

static void larson_setup(void)
{
	thread_setup();
	for (int t = 0; t < 2; t++) {
		larsons[t].seed = 42u + (uint64_t)t;
		pthread_mutex_init(&larsons[t].lock, NULL);
		pthread_cond_init(&larsons[t].done, NULL);
		for (int i = 0; i < LARSON_SLOTS; i++)
			larsons[t].slots[i] = take(rng_size(&larsons[t].seed, 6));
	}
}

static void larson_run(uint64_t ops)
{
	for (int t = 0; t < 2; t++) {
		pthread_t first;

		larsons[t].left = ops / 2;
		larsons[t].finished = 0;
		thread_start(&first, larson_body, &larsons[t]);
		pthread_detach(first);
	}
	for (int t = 0; t < 2; t++) {
		pthread_mutex_lock(&larsons[t].lock);
		while (!larsons[t].finished)
			pthread_cond_wait(&larsons[t].done, &larsons[t].lock);
		pthread_mutex_unlock(&larsons[t].lock);
	}
}

/* Batches go through a bounded queue, so that its lock costs little per object. */
struct queue {
	void *batch[QUEUE_DEPTH][BATCH];
	unsigned head, tail; /* tail - head batches wait */
	pthread_mutex_t lock;
	pthread_cond_t more, room;
};

static struct queue queues[2];

static void queue_setup(void)
{
	thread_setup();
	for (int q = 0; q < 2; q++) {
		pthread_mutex_init(&queues[q].lock, NULL);
		pthread_cond_init(&queues[q].more, NULL);
		pthread_cond_init(&queues[q].room, NULL);
	}
}

static void queue_put(struct queue *q, uint64_t *seed)
{
	void **batch;

	pthread_mutex_lock(&q->lock);
	while (q->tail - q->head == QUEUE_DEPTH)
		pthread_cond_wait(&q->room, &q->lock);
	batch = q->batch[q->tail % QUEUE_DEPTH];
	pthread_mutex_unlock(&q->lock);
	for (int i = 0; i < BATCH; i++)
		batch[i] = take(rng_size(seed, 5));
	pthread_mutex_lock(&q->lock);
	q->tail++;
	pthread_cond_signal(&q->more);
	pthread_mutex_unlock(&q->lock);
}

static void queue_drain(struct queue *q)
{
	void **batch;

	pthread_mutex_lock(&q->lock);
	while (q->tail == q->head)
		pthread_cond_wait(&q->more, &q->lock);
	batch = q->batch[q->head % QUEUE_DEPTH];
	pthread_mutex_unlock(&q->lock);
	for (int i = 0; i < BATCH; i++)
		free(batch[i]);
	pthread_mutex_lock(&q->lock);
	q->head++;
	pthread_cond_signal(&q->room);
	pthread_mutex_unlock(&q->lock);
}

static void *producer_body(void *arg)
{
	uint64_t seed = 42;

	for (uint64_t n = *(uint64_t *)arg / BATCH; n--;)
		queue_put(&queues[0], &seed);
	return NULL;
}

static void prodcons_run(uint64_t ops)
{
	pthread_t producer;

	thread_start(&producer, producer_body, &ops);
	for (uint64_t n = ops / BATCH; n--;)
		queue_drain(&queues[0]);
	pthread_join(producer, NULL);
}

struct exchange {
	uint64_t batches;
	int side;
};

/* Each side frees what the other one took. */
static void *exchange_body(void *arg)
{
	struct exchange *e = arg;
	uint64_t seed = 42u + (uint64_t)e->side;

	for (uint64_t n = 0; n < e->batches; n++) {
		queue_put(&queues[!e->side], &seed);
		queue_drain(&queues[e->side]);
	}
	return NULL;
}

static void exchange_run(uint64_t ops)
{
	struct exchange sides[2] = {{ops / 2 / BATCH, 0}, {ops / 2 / BATCH, 1}};
	pthread_t threads[2];

	for (int i = 0; i < 2; i++)
		thread_start(&threads[i], exchange_body, &sides[i]);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
}

/* Two threads at once, each with 1,000 slots of its own: the allocator scales or it does not. */
static void *private_body(void *arg)
{
	static __thread void *slots[1000];
	uint64_t seed = (uint64_t)(uintptr_t)pthread_self();

	for (uint64_t n = *(uint64_t *)arg / 2; n--;) {
		uint32_t i = rng_below(&seed, 1000);

		free(slots[i]);
		slots[i] = take(rng_size(&seed, 6));
	}
	for (int i = 0; i < 1000; i++)
		free(slots[i]);
	return NULL;
}

static void private_run(uint64_t ops)
{
	pthread_t threads[2];

	for (int i = 0; i < 2; i++)
		thread_start(&threads[i], private_body, &ops);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
}

static pthread_barrier_t many_barrier;

/* All alive at once, each with a few KiB: what a thread's heap costs. */
static void *many_body(void *arg)
{
	void *slots[MANY_OBJECTS];
	uint64_t seed = 42u + (uint64_t)(uintptr_t)arg;

	for (int i = 0; i < MANY_OBJECTS; i++)
		slots[i] = take(rng_size(&seed, 5));
	pthread_barrier_wait(&many_barrier);
	for (int i = 0; i < MANY_OBJECTS; i++) {
		free(slots[i]);
		slots[i] = take(rng_size(&seed, 5));
	}
	for (int i = 0; i < MANY_OBJECTS; i++)
		free(slots[i]);
	return NULL;
}

static void many_setup(void)
{
	thread_setup();
	pthread_barrier_init(&many_barrier, NULL, MANY_THREADS);
}

static void many_run(uint64_t ops)
{
	static pthread_t threads[MANY_THREADS];

	for (uint64_t done = 0; done < ops; done += MANY_THREADS * MANY_OBJECTS * 2) {
		for (int i = 0; i < MANY_THREADS; i++)
			thread_start(&threads[i], many_body, (void *)(uintptr_t)i);
		for (int i = 0; i < MANY_THREADS; i++)
			pthread_join(threads[i], NULL);
	}
}

struct guest {
	void *left[GUEST_LEFT];
	uint64_t seed;
};

static struct guest guests[2];

/* Frees what the thread before it left, takes its own, leaves a quarter behind. */
static void *guest_body(void *arg)
{
	struct guest *g = arg;
	void *slots[GUEST_OBJECTS];

	for (int i = 0; i < GUEST_OBJECTS; i++)
		slots[i] = take(rng_size(&g->seed, 6));
	for (int i = 0; i < GUEST_OBJECTS; i++) {
		if (i < GUEST_LEFT) {
			free(g->left[i]);
			g->left[i] = slots[i];
		} else {
			free(slots[i]);
		}
	}
	return NULL;
}

static void guests_run(uint64_t ops)
{
	for (uint64_t done = 0; done < ops; done += 2 * GUEST_OBJECTS) {
		pthread_t threads[2];

		for (int i = 0; i < 2; i++)
			thread_start(&threads[i], guest_body, &guests[i]);
		for (int i = 0; i < 2; i++)
			pthread_join(threads[i], NULL);
	}
}

const struct row thread_rows[] = {
    {"private-2", 8000000, thread_setup, private_run, NULL,
     "two threads, 1,000 slots each, 16 to 1023 B"},
    {"larson-2", 4000000, larson_setup, larson_run, NULL,
     "two servers of 1,000 slots, a new thread each 20,000 operations"},
    {"prodcons", 1000000, queue_setup, prodcons_run, NULL,
     "one thread takes, the other frees, 16 to 511 B"},
    {"exchange-2", 1000000, queue_setup, exchange_run, NULL,
     "two threads free each other's objects, 16 to 511 B"},
    {"many-256", 131072, many_setup, many_run, NULL,
     "256 threads at once with 64 objects each, birth and exit included"},
    {"guests", 400000, thread_setup, guests_run, NULL,
     "threads of 200 objects come and go, a quarter freed by the next"},
    {0},
};
