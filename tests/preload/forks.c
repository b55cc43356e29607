/* SPDX-License-Identifier: MIT */
/* What the tests of fork and clone share. */
#include "harness.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static atomic_bool stop;

static void *churn(void *seed)
{
	while (!stop)
		exercise(1, (uintptr_t)seed);
	return NULL;
}

/* Two of them are enough to be inside every lock at some fork. */
void start_churn(pthread_t *threads, int count)
{
	stop = false;
	for (int i = 0; i < count; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, churn, (void *)(uintptr_t)i), 0);
}

void end_churn(pthread_t *threads, int count)
{
	stop = true;
	for (int i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
}

/* Waits at most 10 s: a child that hangs is the failure looked for. */
void expect_child(pid_t pid, int wanted, const char *what)
{
	uint64_t end = now_ms() + 10000;
	int status;
	pid_t got;

	CHECK(pid > 0);
	while ((got = waitpid(pid, &status, WNOHANG)) == 0 && now_ms() < end)
		sched_yield();
	if (got == 0) {
		if (getenv("TEST_GDB"))
			sleep(1000);
		kill(pid, SIGKILL);
		waitpid(pid, &status, 0);
		fail("%s: the child hangs", what);
	}
	if (!WIFEXITED(status) || WEXITSTATUS(status) != wanted)
		fail("%s: the child ended with %s", what, status_text(status));
}

static void *child_thread(void *unused)
{
	exercise(1, 77);
	return unused;
}

static void child_work(void **inherited, int count)
{
	pthread_t thread;

	exercise(2, getpid());
	for (int i = 0; i < count; i++) {
		if (!block_holds(inherited[i], 100))
			_exit(3);
		inherited[i] = realloc(inherited[i], 1000);
		free(inherited[i]);
	}
	if (pthread_create(&thread, NULL, child_thread, NULL))
		_exit(4);
	pthread_join(thread, NULL);
	if (thread_count() != 1)
		_exit(5);
}

void fill_blocks(void **blocks, int count)
{
	for (int i = 0; i < count; i++) {
		blocks[i] = malloc(100);
		block_fill(blocks[i], 100);
	}
}

void fork_many(int forks)
{
	void *blocks[100];
	pthread_t threads[2];

	fill_blocks(blocks, 100);
	start_churn(threads, 2);
	for (int i = 0; i < forks; i++) {
		pid_t pid = fork();

		if (!pid) {
			child_work(blocks, 100);
			pid = fork();
			if (!pid) {
				exercise(1, 5);
				_exit(0);
			}
			expect_child(pid, 0, "fork of a child");
			_exit(0);
		}
		expect_child(pid, 0, "fork");
	}
	end_churn(threads, 2);
	for (int i = 0; i < 100; i++) {
		CHECK(block_holds(blocks[i], 100));
		free(blocks[i]);
	}
}
