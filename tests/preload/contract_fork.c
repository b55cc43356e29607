/* SPDX-License-Identifier: MIT */
/* Fork, from one of many threads: the child can allocate, the parent's state survives. */
#include "harness.h"

#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static void fork_while_others_allocate(void)
{
	fork_many(40);
}

static void *fork_in_thread(void *unused)
{
	fork_many(15);
	return unused;
}

static void fork_from_thread(void)
{
	pthread_t thread;

	CHECK_EQ(pthread_create(&thread, NULL, fork_in_thread, NULL), 0);
	pthread_join(thread, NULL);
}

static void *fork_only(void *unused)
{
	for (int i = 0; i < 25; i++) {
		pid_t pid = fork();

		if (!pid) {
			exercise(1, 6);
			_exit(0);
		}
		expect_child(pid, 0, "fork from two threads at once");
	}
	return unused;
}

static void fork_from_two_threads(void)
{
	pthread_t threads[4];

	start_churn(threads + 2, 2);
	for (int i = 0; i < 2; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, fork_only, NULL), 0);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	end_churn(threads + 2, 2);
}

/* The thread that forked ends, in the child, as a thread does. */
static void *fork_and_leave(void *unused)
{
	pid_t pid;

	free(malloc(100));
	pid = fork();
	if (!pid) {
		exercise(1, 3);
		pthread_exit(NULL); /* the child's last thread: exit status 0 */
	}
	expect_child(pid, 0, "a child whose only thread ends");
	return unused;
}

static void child_thread_exit(void)
{
	for (int i = 0; i < 30; i++) {
		pthread_t thread;

		CHECK_EQ(pthread_create(&thread, NULL, fork_and_leave, NULL), 0);
		pthread_join(thread, NULL);
	}
}

static int early_calls;

static void early_handler(void)
{
	early_calls++;
	for (int i = 0; i < 300; i++) {
		void *p = malloc(i * 700), *q = malloc(40);

		memset(p, 1, i * 700);
		free(realloc(p, 400000));
		free(q);
	}
}

static void late_handler(void)
{
	for (int i = 0; i < 100; i++)
		free(malloc(i * 50));
	free(strdup("x"));
}

/* Registered before anything can have called malloc: ours is called after these, in prepare. */
static void first(int argc, char **argv, char **envp)
{
	(void)argc;
	(void)argv;
	while (*envp && strcmp(*envp, "TEST_ATFORK_FIRST=1")) /* getenv knows nothing yet */
		envp++;
	if (*envp)
		pthread_atfork(early_handler, early_handler, early_handler);
}

__attribute__((section(".preinit_array"), used)) static void (*entry)(int, char **,
								      char **) = first;

static void atfork_first(void)
{
	fork_many(15);
	CHECK_EQ(early_calls, 30);
}

/* This process's files in the folder, but for those that lie beside one. */
static int published(const char *folder)
{
	DIR *dir = opendir(folder);
	struct dirent *e;
	char part[32];
	int n = 0;

	CHECK(dir);
	snprintf(part, sizeof(part), "-%d-", (int)getpid());
	while ((e = readdir(dir)))
		n += strstr(e->d_name, part) && !strchr(e->d_name, '.');
	closedir(dir);
	return n;
}

/* What the handlers allocate in the child comes before the child knows that it is one. */
static void atfork_first_publishes_once(void)
{
	pid_t pid = fork();

	if (!pid) {
		exercise(1, 4);
		CHECK_EQ(published(getenv("NUMASLAB_DIR")), 1);
		_exit(0);
	}
	expect_child(pid, 0, "a child that publishes");
	if (system("rm -rf \"$NUMASLAB_DIR\""))
		fail("cannot remove the folder");
}

static void atfork_handlers(void)
{
	int (*calls)(void);

	CHECK_EQ(pthread_atfork(late_handler, late_handler, late_handler), 0);
	fork_many(15);
	*(void **)&calls = dlsym(RTLD_DEFAULT, "atfork_calls");
	CHECK(calls && calls() == 30);
}

static void atfork_plugin(void)
{
	void *handle = dlopen(dir_file("atfork_alloc.so"), RTLD_NOW);

	CHECK(handle);
	fork_many(15);
}

enum { HEAP_BLOCKS = 1000000 };

static void *fill_part(void *at)
{
	for (int i = 0; i < HEAP_BLOCKS / 4; i++)
		memset(((void **)at)[i] = malloc(200), 1, 200);
	return NULL;
}

/* 200 MB, half of them freed: partial slabs everywhere, from living and dead threads. */
static void **make_heap(void)
{
	void **blocks = mmap(NULL, HEAP_BLOCKS * sizeof(void *), PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_t thread;

	CHECK(blocks != MAP_FAILED);
	for (int part = 0; part < 4; part++) {
		void **at = blocks + part * (HEAP_BLOCKS / 4);

		if (part & 1) {
			fill_part(at);
		} else {
			CHECK_EQ(pthread_create(&thread, NULL, fill_part, at), 0);
			pthread_join(thread, NULL);
		}
	}
	for (int i = 0; i < HEAP_BLOCKS; i += 2)
		free(blocks[i]);
	return blocks;
}

static void fork_copies_nothing(void)
{
	void **blocks = make_heap();
	pthread_t threads[2];
	pid_t pid;

	start_churn(threads, 2);
	pid = fork();
	if (!pid) {
		size_t dirty;

		exercise(1, 5);
		for (int i = 1; i < 201; i += 2)
			free(blocks[i]);
		dirty = private_dirty_kib();
		/* Its own 256 blocks, laid into pages of ours: up to 15 MiB of 200. */
		if (dirty > 24 * 1024)
			fail("the child has copied %zu KiB", dirty);
		_exit(0);
	}
	expect_child(pid, 0, "fork of a large heap");
	end_churn(threads, 2);
}

/* Forks and threads in turn: nothing of it stays in the parent. */
static void fork_grows_nothing(void)
{
	size_t before = 0;
	int maps = 0;

	for (int i = 0; i < 250; i++) {
		pid_t pid = fork();

		if (!pid) {
			exercise(1, i);
			_exit(0);
		}
		expect_child(pid, 0, "fork");
		exercise(1, i);
		if (i == 100) {
			before = anon_kib();
			maps = map_count();
		}
	}
	if (anon_kib() > before + 4096)
		fail("150 forks cost %zu KiB", anon_kib() - before);
	if (map_count() > maps + 40)
		fail("150 forks cost %d mappings", map_count() - maps);
}

/* A chain: each child forks the next, with a thread lost at every step. */
static void fork_chain(void)
{
	pthread_t threads[2];
	int depth = 0;
	pid_t pid;

	for (;;) {
		start_churn(threads, 2);
		pid = fork();
		if (pid) {
			end_churn(threads, 2);
			break;
		}
		exercise(1, depth);
		if (++depth == 40)
			_exit(0);
	}
	expect_child(pid, 0, "chain of forks");
	if (depth)
		_exit(0);
}

const struct test tests[] = {
    {.name = "fork_while_others_allocate", .run = fork_while_others_allocate, .timeout = 60},
    {.name = "fork_from_thread", .run = fork_from_thread, .timeout = 60},
    {.name = "fork_from_two_threads", .run = fork_from_two_threads, .timeout = 60},
    {.name = "child_thread_exit", .run = child_thread_exit},
    {.name = "atfork_first", .run = atfork_first, .env = {"TEST_ATFORK_FIRST=1"}, .timeout = 60},
    {.name = "atfork_first_checked",
     .run = atfork_first,
     .env = {"TEST_ATFORK_FIRST=1", "NUMASLAB_CHECK=1"},
     .timeout = 60,
     .numaslab = true},
    {.name = "atfork_first_publishes_once",
     .run = atfork_first_publishes_once,
     .env = {"TEST_ATFORK_FIRST=1", "NUMASLAB_PUBLISH_AFTER_MS=0", "NUMASLAB_DIR=DIR/forked"},
     .numaslab = true},
    {.name = "atfork_before",
     .run = atfork_handlers,
     .preload = "LIB:DIR/atfork_alloc.so",
     .timeout = 60},
    {.name = "atfork_after",
     .run = atfork_handlers,
     .preload = "DIR/atfork_alloc.so:LIB",
     .timeout = 60},
    {.name = "atfork_plugin", .run = atfork_plugin, .timeout = 60},
    {.name = "fork_copies_nothing", .run = fork_copies_nothing, .timeout = 60},
    {.name = "fork_grows_nothing",
     .run = fork_grows_nothing,
     .env = {"NUMASLAB_RETAIN=0"},
     .timeout = 60},
    {.name = "fork_chain", .run = fork_chain, .timeout = 60},
    {.name = NULL},
};
