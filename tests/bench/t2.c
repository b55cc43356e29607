/* SPDX-License-Identifier: MIT */
/*
 * t2 numa01|numa02 [MIB [SWEEPS]]: the two programs of the kernel's NUMA benchmark in small,
 * so that a kernel with NUMA balancing on has something to do.  A thread for each CPU:
 *
 *	numa01	2 processes, the threads of each over a block that they share (64 MiB, 500 times)
 *	numa02	1 process, each thread over a block of its own (16 MiB, 3000 times)
 *
 * Blocks come from malloc.  Prints the number of pages that were swept.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

enum { THREADS_MAX = 64, LINE = 64, PAGE = 4096 };

static size_t bytes;
static long sweeps;
static int threads;
static char *shared; /* numa01's block; NULL: each thread has its own */

static int cpus_count(void)
{
	cpu_set_t set;
	int n = sched_getaffinity(0, sizeof(set), &set) ? 1 : CPU_COUNT(&set);

	return n < THREADS_MAX ? n : THREADS_MAX;
}

static void *sweep(void *arg)
{
	char *own = shared ? shared : must(malloc(bytes));

	(void)arg;
	for (long turn = 0; turn < sweeps; turn++)
		for (size_t i = 0; i < bytes; i += LINE)
			__atomic_fetch_add(&own[i], 1, __ATOMIC_RELAXED);
	if (!shared)
		free(own);
	return NULL;
}

static void threads_run(void)
{
	pthread_t thread[THREADS_MAX];
	int n = 0;

	while (n < threads && !pthread_create(&thread[n], NULL, sweep, NULL))
		n++;
	for (int i = 0; i < n; i++)
		pthread_join(thread[i], NULL);
	if (n < threads) {
		fputs("t2: no thread\n", stderr);
		exit(1);
	}
}

/* Two processes; true if the other one did its work too. */
static bool numa01(void)
{
	pid_t pid = fork();
	int status = 0;

	if (!pid)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	shared = must(malloc(bytes));
	threads_run();
	free(shared);
	if (!pid)
		_exit(0);
	return pid > 0 && waitpid(pid, &status, 0) == pid && !status;
}

int main(int argc, char **argv)
{
	bool first = argc > 1 && !strcmp(argv[1], "numa01");
	long mib = argc > 2 ? strtol(argv[2], NULL, 10) : first ? 64 : 16;

	sweeps = argc > 3 ? strtol(argv[3], NULL, 10) : first ? 500 : 3000;
	if (argc < 2 || (!first && strcmp(argv[1], "numa02") != 0) || mib < 1 || mib > 65536 ||
	    sweeps < 1) {
		fputs("usage: t2 numa01|numa02 [MIB [SWEEPS]]\n", stderr);
		return 2;
	}
	bytes = (size_t)mib << 20;
	threads = cpus_count();
	if (first && !numa01())
		return 1;
	if (!first)
		threads_run();
	printf("%zu pages\n", bytes / PAGE * (size_t)(first ? 2 : threads));
	return 0;
}
