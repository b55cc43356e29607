/* SPDX-License-Identifier: MIT */
/*
 * Threads that allocate, pass blocks on and free each other's, are born and end, move between
 * simulated nodes, fork in the middle; each block carries a pattern that is verified when it
 * is freed, so that two owners of one block are seen.  stress LIB SECONDS [check|fork|nodes]...
 * runs itself again under LIB; without preload (STRESS_LINKED) the allocator is linked in.
 */
#ifdef STRESS_LINKED
#include "tests/unit/heap_user.h"
#define malloc(n)	      ns_malloc(n)
#define free(p)		      ns_free(p)
#define calloc(n, s)	      ns_calloc(n, s)
#define realloc(p, n)	      ns_realloc(p, n)
#define aligned_alloc(a, n)   ns_aligned_alloc(a, n)
#define malloc_usable_size(p) ns_malloc_usable_size(p)
#define malloc_trim(n)	      ns_malloc_trim(n)
#endif
#include "tests/unit/simrun.h"

#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#define THREADS 6
#define SHARED	4096
#define LOCAL	600

struct block {
	uint64_t seal; /* of the address and the size */
	uint32_t size;
	uint32_t fill;
};

static _Atomic(struct block *) shared[SHARED];
static _Atomic long blocks, forks, births, torn;
static _Atomic bool stop, nodes;
static char out_of_order[200];

struct thread {
	uint64_t seed;
	struct block *local[LOCAL];
	bool may_fork;
	unsigned depth;
};

static unsigned pick(struct thread *t, unsigned below)
{
	t->seed = t->seed * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)((t->seed >> 33) % below);
}

static uint64_t seal_of(const struct block *b)
{
	return ((uint64_t)(uintptr_t)b ^ (uint64_t)b->size << 40 ^ b->fill) * 0x9e3779b97f4a7c15;
}

static void bad(const char *what, const struct block *b)
{
	if (atomic_fetch_add(&torn, 1) == 0)
		snprintf(out_of_order, sizeof out_of_order, "%s: block %p, size %u", what,
			 (const void *)b, b->size);
	atomic_store(&stop, true);
}

static size_t pick_size(struct thread *t)
{
	switch (pick(t, 16)) {
	case 0:
		return sizeof(struct block) + pick(t, 70000);
	case 1:
		return sizeof(struct block) + pick(t, 8192);
	case 2:
		return pick(t, 30) ? 4096 : 65537 + pick(t, 400000);
	default:
		return sizeof(struct block) + pick(t, 12) * 16;
	}
}

static void seal(struct thread *t, struct block *b, size_t size)
{
	b->size = (uint32_t)size;
	b->fill = pick(t, 1u << 30) | 1;
	b->seal = seal_of(b);
	unsigned char *body = (unsigned char *)(b + 1), c = (unsigned char)b->fill;
	size_t n = size - sizeof *b;

	memset(body, c, n < 512 ? n : 512);
	if (n)
		body[n - 1] = c;
}

static bool is_sound(const struct block *b)
{
	const unsigned char *body = (const unsigned char *)(b + 1);
	size_t n = b->size - sizeof *b;

	if (b->seal != seal_of(b))
		return false;
	for (size_t i = 0; i < n && i < 512; i++)
		if (body[i] != (unsigned char)b->fill)
			return false;
	return n == 0 || body[n - 1] == (unsigned char)b->fill;
}

static struct block *take(struct thread *t)
{
	size_t size = pick_size(t);
	struct block *b;

	switch (pick(t, 20)) {
	case 0:
		b = calloc(1, size);
		for (size_t i = 0; b && i < size; i += 8)
			if (((unsigned char *)b)[i])
				bad("calloc is not zero", b);
		break;
	case 1:
		b = aligned_alloc(256, (size + 255) & ~(size_t)255);
		if (b && (uintptr_t)b % 256)
			bad("not aligned", b);
		break;
	default:
		b = malloc(size);
	}
	if (!b)
		return NULL;
	if (malloc_usable_size(b) < size)
		bad("usable size", b);
	seal(t, b, size);
	atomic_fetch_add_explicit(&blocks, 1, memory_order_relaxed);
	return b;
}

static void drop(struct block *b)
{
	if (!b)
		return;
	if (!is_sound(b))
		bad("contents", b);
	b->seal = 0;
	free(b);
}

static struct block *resize(struct thread *t, struct block *b)
{
	size_t size = pick_size(t), have = b->size;
	uint32_t fill = b->fill;

	if (!is_sound(b))
		bad("contents before realloc", b);
	struct block *to = realloc(b, size);
	if (!to)
		return b;
	size_t n = (size < have ? size : have) - sizeof *b;
	const unsigned char *body = (const unsigned char *)(to + 1);
	for (size_t i = 0; i < n && i < 512; i++)
		if (body[i] != (unsigned char)fill)
			bad("contents after realloc", to);
	seal(t, to, size);
	return to;
}

static void *run(void *arg);

/* The child uses the heap at once and frees what other threads of the parent made. */
static void fork_now(struct thread *t)
{
	pid_t pid = fork();
	int status = 0;

	if (pid == 0) {
		long n = 0;

		alarm(60);
		atomic_store(&torn, 0);
		for (unsigned i = 0; i < LOCAL; i++) {
			drop(t->local[i]);
			t->local[i] = take(t);
		}
		for (unsigned i = 0; i < SHARED; i += 3, n++)
			drop(atomic_exchange(&shared[i], NULL));
		/* What the removed threads had, wherever they were, is ready for use again. */
		if (pick(t, 2))
			malloc_trim(0);
		for (unsigned i = 0; i < 20000; i++) {
			struct block *b = take(t);

			drop(b);
		}
		_exit(atomic_load(&torn) ? 1 : 0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0) {
		snprintf(out_of_order, sizeof out_of_order, "child ended with %#x", status);
		atomic_fetch_add(&torn, 1);
		atomic_store(&stop, true);
	}
	atomic_fetch_add(&forks, 1);
}

static void step(struct thread *t)
{
	unsigned i = pick(t, LOCAL), k = pick(t, SHARED);

	switch (pick(t, 8)) {
	case 0: /* pass one on, free what was there: another thread's */
		drop(atomic_exchange(&shared[k], t->local[i]));
		t->local[i] = NULL;
		break;
	case 1: /* or take it over */
		drop(t->local[i]);
		t->local[i] = atomic_exchange(&shared[k], NULL);
		break;
	case 2:
		if (t->local[i])
			t->local[i] = resize(t, t->local[i]);
		break;
	default:
		drop(t->local[i]);
		t->local[i] = take(t);
	}
}

static void live(struct thread *t, unsigned long rounds)
{
	for (unsigned long i = 0; i < rounds && !atomic_load(&stop); i++) {
		step(t);
		if (nodes && pick(t, 2000) == 0)
			must_run_on((int)pick(t, 4));
		if (t->may_fork && pick(t, 20000) == 0)
			fork_now(t);
		if (pick(t, 200000) == 0)
			malloc_trim(0);
	}
	for (unsigned i = 0; i < LOCAL; i++) {
		/* Half of a dead thread's blocks live on. */
		if (i % 2)
			drop(atomic_exchange(&shared[pick(t, SHARED)], t->local[i]));
		else
			drop(t->local[i]);
		t->local[i] = NULL;
	}
}

static void *short_life(void *arg)
{
	struct thread *t = arg;

	live(t, 3000);
	free(t);
	return NULL;
}

static void *run(void *arg)
{
	struct thread *t = arg;

	while (!atomic_load(&stop)) {
		pthread_t thread;
		struct thread *child = calloc(1, sizeof *child);

		child->seed = t->seed + pick(t, 1 << 20);
		if (pthread_create(&thread, NULL, short_life, child)) {
			free(child);
			continue;
		}
		atomic_fetch_add(&births, 1);
		live(t, 20000);
		pthread_join(thread, NULL);
	}
	return NULL;
}

static void stress(unsigned ms, bool may_fork)
{
	static struct thread thread[THREADS];
	pthread_t id[THREADS];
	struct timespec pause = {ms / 1000, ms % 1000 * 1000000L};

	for (unsigned i = 0; i < THREADS; i++) {
		thread[i].seed = i * 7919 + 1;
		thread[i].may_fork = may_fork && i == 0;
		if (pthread_create(&id[i], NULL, run, &thread[i]))
			tap_bail("pthread_create");
	}
	nanosleep(&pause, NULL); /* how long it lasts, nothing waits for it */
	atomic_store(&stop, true);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(id[i], NULL);
	for (unsigned i = 0; i < SHARED; i++)
		drop(atomic_exchange(&shared[i], NULL));
}

static bool has(int argc, char **argv, const char *word)
{
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], word) == 0)
			return true;
	return false;
}

int main(int argc, char **argv)
{
	char what[200];

	if (argc < 3) {
		fprintf(stderr, "usage: stress LIB MILLISECONDS [check] [fork] [nodes]\n");
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
#ifndef STRESS_LINKED
	if (!getenv("TEST_RUN")) {
		setenv("TEST_RUN", "1", 1);
		setenv("LD_PRELOAD", argv[1], 1);
		if (has(argc, argv, "check"))
			setenv("NUMASLAB_CHECK", "1", 1);
		if (has(argc, argv, "nodes"))
			setenv("NUMASLAB_TOPOLOGY", "0:64M@0;1:16M@1;2:1G@2;3:1G@3", 1);
		execv("/proc/self/exe", argv);
		tap_bail("exec failed");
	}
	if (!numaslab_stats)
		tap_bail("the library is not there");
#endif
	nodes = has(argc, argv, "nodes");
	stress((unsigned)atoi(argv[2]), has(argc, argv, "fork"));
	snprintf(what, sizeof what, "contents hold:%s%s%s",
		 has(argc, argv, "check") ? " checked" : "",
		 has(argc, argv, "fork") ? " forking" : "", nodes ? " on several nodes" : "");
	tap(torn == 0, what, "%ld blocks, %ld threads, %ld forks %s", atomic_load(&blocks),
	    atomic_load(&births), atomic_load(&forks), out_of_order);
	tap(blocks > 1000 && births >= THREADS, "it did something", "%ld blocks",
	    atomic_load(&blocks));
	return tap_end();
}
