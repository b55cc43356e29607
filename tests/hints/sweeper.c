/* SPDX-License-Identifier: MIT */
/*
 * Holds objects of one class and goes over them when it is told to, a line on stdin each:
 *
 *	sweep FAULTS SECONDS	until it had so many page faults more, or so long; the answer says
 *how many there were fork FAULTS SECONDS	the same by a child
 *	churn			allocates and frees, so that slow paths run
 *	exec			becomes the same program again
 *	quit
 *
 * Usage: sweeper SIZE MIB.  Each answer is a line; the first one is the process's number.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char **object;
static size_t count;

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

/* Page faults of this process: once its memory is there, they are hint faults. */
static long own_faults(void)
{
	struct rusage r;

	getrusage(RUSAGE_SELF, &r);
	return r.ru_minflt;
}

struct job {
	long faults;
	double time;
};

/* Looks at the clock between some rounds alone: what it does is to use memory. */
static void *sweep_all(void *arg)
{
	struct job *job = arg;
	long before = own_faults();
	double end = seconds() + job->time;

	while (own_faults() - before < job->faults && seconds() < end)
		for (int round = 0; round < 10; round++)
			for (size_t i = 0; i < count; i++)
				++*(volatile char *)object[i];
	job->faults = own_faults() - before;
	return NULL;
}

/* A thread that waits: where a process has one alone, the kernel lets pages on its node be. */
static void *wait_for_ever(void *arg)
{
	for (;;)
		pause();
	return arg;
}

/* By a thread that is there from the start: without privileges hints finds new ones by looking. */
static long sweep(long faults, double time)
{
	struct job job = {faults, time};

	sweep_all(&job);
	return job.faults;
}

static bool start_waiting(void)
{
	pthread_t thread;

	return pthread_create(&thread, NULL, wait_for_ever, NULL) == 0;
}

static void churn(void)
{
	for (size_t i = 0; i < 4000; i++)
		free(malloc(100 + i * 16));
}

static long swept_by_child(long faults, double time)
{
	pid_t child = fork();

	if (child == 0)
		_exit(start_waiting() && sweep(faults, time) >= 0 ? 0 : 1);
	return child < 0 || waitpid(child, NULL, 0) != child ? -1 : child;
}

int main(int argc, char **argv)
{
	char line[128];
	size_t size = argc > 1 ? strtoul(argv[1], NULL, 10) : 256;
	long faults = 0;
	double time = 0;

	count = ((argc > 2 ? strtoul(argv[2], NULL, 10) : 32) << 20) / size;
	object = malloc(count * sizeof *object);
	for (size_t i = 0; i < count; i++) {
		object[i] = malloc(size);
		memset(object[i], 1, size);
	}
	churn();
	if (!start_waiting())
		return 1;
	printf("%d\n", (int)getpid());
	fflush(stdout);
	while (fgets(line, sizeof line, stdin)) {
		if (sscanf(line, "sweep %ld %lf", &faults, &time) == 2)
			printf("%ld\n", sweep(faults, time));
		else if (sscanf(line, "fork %ld %lf", &faults, &time) == 2)
			printf("%ld\n", swept_by_child(faults, time));
		else if (!strcmp(line, "churn\n"))
			churn(), puts("churned");
		else if (!strcmp(line, "exec\n"))
			execv("/proc/self/exe", argv);
		else if (!strcmp(line, "quit\n"))
			break;
		else
			puts("?");
		fflush(stdout);
	}
	return 0;
}
