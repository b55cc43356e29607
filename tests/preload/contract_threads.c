/* SPDX-License-Identifier: MIT */
/* Threads: birth, death, small stacks, how many there are. */
#include "harness.h"

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
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

static pthread_key_t first_key, keys[40], last_key;
static atomic_int destroyed;

/* Comes again in every round of destructors, to the very last one that libc grants. */
static void destroy_again(void *value)
{
	static __thread int rounds;
	char *p = realloc(value, 700 + rounds * 100);

	destroyed++;
	for (int i = 0; i < 20; i++)
		free(malloc(i * 100));
	memset(p, 2, 700);
	if (++rounds < 4) /* PTHREAD_DESTRUCTOR_ITERATIONS */
		pthread_setspecific(first_key, p);
	else
		free(p);
}

static void destroy_more(void *value)
{
	free(value);
	free(calloc(1, 5000));
}

/* Before the library has made keys of its own, if it ever does. */
static void first(int argc, char **argv, char **envp)
{
	(void)argc;
	(void)argv;
	(void)envp;
	pthread_key_create(&first_key, destroy_again);
}

__attribute__((section(".preinit_array"), used)) static void (*entry)(int, char **,
								      char **) = first;

static void *set_keys(void *unused)
{
	pthread_setspecific(first_key, malloc(600));
	for (int i = 0; i < 40; i++)
		pthread_setspecific(keys[i], malloc(i * 50 + 1));
	pthread_setspecific(last_key, malloc(50));
	return unused;
}

static void key_destructors(void)
{
	size_t before = 0;

	for (int i = 0; i < 40; i++)
		CHECK_EQ(pthread_key_create(&keys[i], destroy_more), 0);
	CHECK_EQ(pthread_key_create(&last_key, destroy_more), 0);
	for (int i = 0; i < 600; i++) {
		run_thread(set_keys, NULL);
		if (i == 100)
			before = anon_kib();
	}
	CHECK_EQ(destroyed, 2400);
	if (anon_kib() > before + 2048)
		fail("500 threads cost %zu KiB", anon_kib() - before);
}

static void *all_calls(void *unused)
{
	for (size_t size = 1; size < (8ul << 20); size = size * 3 / 2 + 1) {
		void *p = malloc(size), *q = calloc(1, size), *r = NULL;

		CHECK(p && q);
		p = realloc(p, size * 2);
		CHECK(posix_memalign(&r, 64, size) == 0);
		free(r);
		r = memalign(16384, size);
		free(p);
		free(q);
		free(r);
	}
	malloc_trim(0);
	mallinfo2();
	return unused;
}

static void small_stacks(void)
{
	pthread_attr_t attr;
	pthread_t thread;

	pthread_attr_init(&attr);
	CHECK_EQ(pthread_attr_setstacksize(&attr, 16384), 0);
	for (int i = 0; i < 12; i++) {
		CHECK_EQ(pthread_create(&thread, &attr, all_calls, NULL), 0);
		pthread_join(thread, NULL);
	}
}

/* The very first call of a process, on such a stack: nothing is set up yet. */
static void *first_calls(void *unused)
{
	free(malloc(10));
	free(calloc(1000, 1000));
	return unused;
}

static void small_stack_first(void)
{
	pthread_attr_t attr;
	pthread_t threads[8];

	pthread_attr_init(&attr);
	CHECK_EQ(pthread_attr_setstacksize(&attr, 16384), 0);
	for (int i = 0; i < 8; i++)
		CHECK_EQ(pthread_create(&threads[i], &attr, first_calls, NULL), 0);
	for (int i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
}

static void *short_life(void *arg)
{
	void *p[10];

	for (int i = 0; i < 10; i++)
		memset(p[i] = malloc(100 * i + 1), 1, 100 * i + 1);
	for (int i = 0; i < 10; i++)
		free(p[i]);
	free(*(void **)arg);
	*(void **)arg = malloc(300);
	return NULL;
}

static void many_short_threads(void)
{
	size_t before = 0, size = 0;
	void *block = NULL;
	int maps = 0;

	for (int i = 0; i < 10000; i++) {
		run_thread(short_life, &block);
		if (i == 1000) {
			before = anon_kib();
			size = vsz_kib();
			maps = map_count();
		}
	}
	free(block);
	if (anon_kib() > before + 512)
		fail("9000 threads cost %zu KiB", anon_kib() - before);
	if (vsz_kib() > size + 65536)
		fail("9000 threads cost %zu KiB of address space", vsz_kib() - size);
	if (map_count() > maps + 16)
		fail("9000 threads cost %d mappings", map_count() - maps);
}

static void *small_calls(void *unused)
{
	for (int i = 0; i < 200; i++)
		free(malloc(i * 20));
	return unused;
}

static void detached_threads(void)
{
	pthread_attr_t attr;
	pthread_t thread;
	size_t before = 0;

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	for (int i = 0; i < 3000; i++) {
		while (pthread_create(&thread, &attr, small_calls, NULL))
			sched_yield();
		while (thread_count() > 20)
			sched_yield();
		if (i == 1000)
			before = anon_kib();
	}
	while (thread_count() > 1)
		sched_yield();
	if (anon_kib() > before + 2048)
		fail("2000 threads cost %zu KiB", anon_kib() - before);
}

static pthread_barrier_t many_gate;

static void *wait_with_blocks(void *unused)
{
	void *p[20];

	for (int i = 0; i < 20; i++)
		block_fill(p[i] = malloc(i * 20 + 16), 16);
	pthread_barrier_wait(&many_gate);
	for (int i = 0; i < 20; i++) {
		CHECK(block_holds(p[i], 16));
		free(p[i]);
	}
	return unused;
}

static void many_at_once(void)
{
	enum { N = 1000 };
	static pthread_t threads[N];
	pthread_attr_t attr;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 65536);
	pthread_barrier_init(&many_gate, NULL, N + 1);
	for (int i = 0; i < N; i++)
		CHECK_EQ(pthread_create(&threads[i], &attr, wait_with_blocks, NULL), 0);
	pthread_barrier_wait(&many_gate);
	for (int i = 0; i < N; i++)
		pthread_join(threads[i], NULL);
}

static void *hold(void *gate)
{
	exercise(5, 3);
	pthread_barrier_wait(gate);
	pthread_barrier_wait(gate);
	return NULL;
}

static void exact_count(void)
{
	pthread_t threads[3];
	pthread_barrier_t gate;

	exercise(50, 6);
	malloc_trim(0);
	CHECK_EQ(thread_count(), 1);
	pthread_barrier_init(&gate, NULL, 4);
	for (int i = 0; i < 3; i++)
		start(&threads[i], hold, &gate);
	pthread_barrier_wait(&gate);
	CHECK_EQ(thread_count(), 4);
	pthread_barrier_wait(&gate);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	exercise(50, 6);
	CHECK_EQ(thread_count(), 1);
}

/* unshare(CLONE_NEWUSER) is refused to a process of several threads. */
static void new_namespaces(void)
{
	exercise(50, 6);
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWPID)) {
		CHECK(errno != EINVAL);
		skip("no user namespaces here: %s", strerror(errno));
	}
	exercise(50, 7);
	if (!fork()) {
		exercise(5, 7);
		_exit(0);
	}
	wait(NULL);
}

/* malloc and free are no cancellation points: libc's callers hold locks and half-made things. */
static void *cancelled(void *arg)
{
	void **p = arg;

	pthread_cancel(pthread_self());
	for (size_t size = 1; size < (40ul << 20); size = size * 4 / 3 + 1) {
		char *q = malloc(size);

		memset(q, 1, size);
		free(calloc(1, size));
		q = realloc(q, size * 2);
		free(q);
	}
	malloc_trim(0);
	*p = malloc(10);
	pthread_testcancel();
	return arg;
}

static void no_cancellation_point(void)
{
	for (int i = 0; i < 3; i++) {
		pthread_t thread;
		void *p = NULL, *result;

		start(&thread, cancelled, &p);
		pthread_join(thread, &result);
		CHECK(result == PTHREAD_CANCELED);
		CHECK(p);
		free(p);
	}
}

static atomic_int signals;

static void count_signal(int number)
{
	(void)number;
	signals++;
}

static atomic_bool enough;

/* One signal at a time, and some work between two: a flood would leave the target none. */
static void *bother(void *target)
{
	for (unsigned sent = 0; !enough; sent++) {
		pthread_kill(*(pthread_t *)target, SIGUSR1);
		while (!enough && (unsigned)signals <= sent)
			sched_yield();
		for (volatile unsigned pause = sent * 7919 % 5000; pause; pause--)
			;
	}
	return NULL;
}

static void signals_interrupt(void)
{
	pthread_t self = pthread_self(), thread;
	struct sigaction action = {.sa_handler = count_signal};

	sigaction(SIGUSR1, &action, NULL); /* no SA_RESTART: system calls give EINTR */
	start(&thread, bother, &self);
	for (int i = 0; i < 20 || !signals; i++)
		exercise(1, i);
	enough = true;
	pthread_join(thread, NULL);
}

static void *after_main(void *unused)
{
	exercise(20, 8);
	_exit(0);
	return unused;
}

static void main_thread_ends(void)
{
	pthread_t thread;

	exercise(5, 2);
	start(&thread, after_main, NULL);
	pthread_exit(NULL);
}

/* exit() runs handlers and destructors while other threads still allocate. */
static void *allocate_for_ever(void *unused)
{
	for (;;)
		exercise(1, 9);
	return unused;
}

static void at_exit(void)
{
	for (int i = 0; i < 1000; i++)
		free(malloc(i * 50));
}

static void exit_beside_threads(void)
{
	pthread_t threads[2];

	atexit(at_exit);
	start(&threads[0], allocate_for_ever, NULL);
	start(&threads[1], allocate_for_ever, NULL);
	exercise(3, 2);
	exit(0);
}

const struct test tests[] = {
    {.name = "key_destructors", .run = key_destructors},
    {.name = "small_stacks", .run = small_stacks},
    {.name = "small_stack_first", .run = small_stack_first},
    {.name = "many_short_threads", .run = many_short_threads, .timeout = 60},
    {.name = "detached_threads", .run = detached_threads, .timeout = 60},
    {.name = "many_at_once", .run = many_at_once},
    {.name = "exact_count", .run = exact_count},
    {.name = "new_namespaces", .run = new_namespaces},
    {.name = "no_cancellation_point", .run = no_cancellation_point},
    {.name = "signals_interrupt", .run = signals_interrupt},
    {.name = "main_thread_ends", .run = main_thread_ends},
    {.name = "exit_beside_threads", .run = exit_beside_threads},
    {.name = NULL},
};
