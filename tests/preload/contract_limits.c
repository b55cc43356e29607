/* SPDX-License-Identifier: MIT */
/* Resource limits: a clean NULL or a quiet fallback, and recovery. */
#include "harness.h"

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB (1ul << 20)

static void limit(int what, rlim_t value)
{
	struct rlimit r = {value, value};

	if (setrlimit(what, &r))
		skip("setrlimit: %s", strerror(errno));
}

static void as_128m(void)
{
	limit(RLIMIT_AS, 128 * MIB);
}

static void data_128m(void)
{
	limit(RLIMIT_DATA, 128 * MIB);
}

static void as_24m(void)
{
	limit(RLIMIT_AS, 24 * MIB);
}

static void data_4m(void)
{
	limit(RLIMIT_DATA, 4 * MIB);
}

static void exhaust_128m(void)
{
	exhaust(64 * MIB, 1024 * MIB);
}

static void exhaust_later(void)
{
	exercise(20, 1);
	as_128m();
	/* What was reserved at start counts too: the limit may leave nothing new, but no crash. */
	exhaust(0, 1024 * MIB);
	data_128m();
	exhaust(0, 1024 * MIB);
}

static void small_process(void)
{
	struct link *list = NULL;

	for (int i = 0; i < 3; i++) {
		CHECK(grab_all(&list, 500, MIB) == (MIB + 499) / 500 * 500);
		release_all(&list);
	}
}

static void *exhaust_thread(void *gate)
{
	struct link *list = NULL;

	for (int i = 0; i < 5; i++) {
		grab_all(&list, 1000 + 50000 * (i & 1), 400 * MIB);
		pthread_barrier_wait(gate);
		release_all(&list);
		pthread_barrier_wait(gate);
	}
	return NULL;
}

static void exhaust_threads(void)
{
	pthread_barrier_t gate;
	pthread_t threads[3];

	pthread_barrier_init(&gate, NULL, 3);
	for (int i = 0; i < 3; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, exhaust_thread, &gate), 0);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	exhaust(24 * MIB, 1024 * MIB);
}

static void fork_exhausted(void)
{
	struct link *list = NULL;
	struct outcome *out =
	    mmap(NULL, sizeof(*out), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pid_t pid;

	CHECK(out != MAP_FAILED);
	grab_all(&list, 5000, 1024 * MIB);
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		release_all(&list);
		exhaust(24 * MIB, 1024 * MIB);
		_exit(0);
	}
	CHECK(waitpid(pid, &out->status, 0) == pid);
	CHECK_EQ(out->status, 0);
	release_all(&list);
}

static void fsize_0(void)
{
	limit(RLIMIT_FSIZE, 0);
}

/* Standard ones and the one that ld.so needs. */
static void nofile_4(void)
{
	limit(RLIMIT_NOFILE, 4);
}

static void work(void)
{
	exercise(100, 1);
	malloc_trim(0);
	exercise(50, 2);
}

static void limits_in_main(void)
{
	exercise(5, 1);
	limit(RLIMIT_FSIZE, 0);
	limit(RLIMIT_NOFILE, 0);
	limit(RLIMIT_NPROC, 0);
	limit(RLIMIT_SIGPENDING, 0);
	work();
}

static void lock_user(void)
{
	struct rlimit r;

	getrlimit(RLIMIT_MEMLOCK, &r);
	limit(RLIMIT_MEMLOCK, r.rlim_max < 64 * MIB ? r.rlim_max : 64 * MIB);
	if (!become_nobody())
		skip("cannot leave root");
	skip_unless_reached();
}

/* Without privilege: what is there can be locked, what comes is refused when it is too much. */
static void mlockall_limited(void)
{
	struct link *list = NULL;
	struct rlimit r;

	getrlimit(RLIMIT_MEMLOCK, &r);
	free(malloc(100));
	if (mlockall(MCL_CURRENT))
		fail("mlockall(MCL_CURRENT) under %zu KiB: %s", (size_t)r.rlim_cur >> 10,
		     strerror(errno));
	CHECK_EQ(munlockall(), 0);
	if (mlockall(MCL_CURRENT | MCL_FUTURE))
		fail("mlockall(MCL_CURRENT|MCL_FUTURE): %s", strerror(errno));
	for (int i = 0; i < 3; i++) {
		size_t got = grab_all(&list, i == 1 ? 70000 : 500, 256 * MIB);

		if (got < r.rlim_cur / 8)
			fail("only %zu KiB of %zu", got >> 10, (size_t)r.rlim_cur >> 10);
		release_all(&list);
	}
}

/* With privilege: it must not try to make a window of 1 TiB resident. */
static void mlockall_root(void)
{
	size_t before = rss_kib();

	if (geteuid())
		skip("not root");
	exercise(2, 1);
	if (mlockall(MCL_CURRENT | MCL_FUTURE))
		fail("mlockall: %s", strerror(errno));
	if (rss_kib() > before + 64 * 1024)
		fail("mlockall makes %zu KiB resident", rss_kib());
	work();
}

/* Where there is no memory any more a block can still get smaller: it keeps what it has. */
static void shrinks_without_memory(void)
{
	static const size_t from[] = {1000, 5000, 30000, 100000, 3 * MIB};
	static char *p[5];
	void **held = NULL, **at;

	for (int i = 0; i < 5; i++) {
		p[i] = malloc(from[i]);
		memset(p[i], 7, from[i]);
	}
	for (size_t size = MIB; size >= sizeof(*at); size /= 2)
		while ((at = malloc(size)) != NULL) {
			*at = held;
			held = at;
		}
	for (int i = 0; i < 5; i++)
		for (size_t size = from[i] / 3; size > 0; size /= 7) {
			errno = 123;
			p[i] = realloc(p[i], size);
			if (!p[i] || errno != 123)
				fail("from %zu to %zu: %p, %s", from[i], size, (void *)p[i],
				     strerror(errno));
			for (size_t k = 0; k < size; k++)
				if (p[i][k] != 7)
					fail("from %zu to %zu: byte %zu", from[i], size, k);
		}
}

const struct test tests[] = {
    {.name = "as_limit", .run = exhaust_128m, .before = as_128m, .timeout = 60},
    {.name = "data_limit", .run = exhaust_128m, .before = data_128m, .timeout = 60},
    {.name = "shrinks_without_memory",
     .run = shrinks_without_memory,
     .before = as_128m,
     .timeout = 60},
    {.name = "limits_set_later", .run = exhaust_later, .timeout = 60},
    {.name = "as_small", .run = small_process, .before = as_24m},
    {.name = "data_small", .run = small_process, .before = data_4m},
    {.name = "as_limit_threads", .run = exhaust_threads, .before = as_128m, .timeout = 60},
    {.name = "as_limit_fork", .run = fork_exhausted, .before = as_128m, .timeout = 60},
    {.name = "fsize_0", .run = work, .before = fsize_0, .env = {"NUMASLAB_PUBLISH_AFTER_MS=0"}},
    {.name = "nofile_4", .run = work, .before = nofile_4},
    {.name = "limits_in_main", .run = limits_in_main},
    {.name = "mlockall_limited", .run = mlockall_limited, .before = lock_user},
    {.name = "mlockall_root", .run = mlockall_root},
    {.name = NULL},
};
