/* SPDX-License-Identifier: MIT */
/*
 * A program that does as it is told, a word a line on stdin, and answers with a line on stdout:
 *	alloc COUNT SIZE   blocks, kept                   free    all of them
 *	node COUNT SIZE N  the same on node N             holes K every K-th of them
 *	tick               allocates until a second has passed, then says how it stands
 *	stats              used objects, slabs and held bytes of all nodes, as the library says
 *	fork, rawfork, vfork, daemon, exec, exit, threads N
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "preload/numaslab.h"

static void **block;
static size_t count;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Allocates more than a heap keeps, so that slow paths are taken. */
static void churn(double seconds)
{
	void **p = malloc(4000 * sizeof *p);
	double end = now() + seconds;

	do {
		for (unsigned i = 0; i < 4000; i++)
			p[i] = malloc(200 + i % 3 * 100);
		for (unsigned i = 0; i < 4000; i++)
			free(p[i]);
	} while (now() < end);
	free(p);
}

static void say_stats(void)
{
	struct numaslab_node_stats s[64];
	unsigned long long objects = 0, slabs = 0, held = 0;
	int n = numaslab_stats ? numaslab_stats(s, 64) : 0;

	for (int i = 0; i < n; i++)
		if (s[i].node >= 0) {
			objects += s[i].objects;
			slabs += s[i].slabs;
			held += s[i].held_bytes;
		}
	printf("%llu %llu %llu\n", objects, slabs, held);
}

static void alloc(size_t n, size_t size)
{
	block = realloc(block, (count + n) * sizeof *block);
	for (size_t i = 0; i < n; i++)
		if ((block[count] = malloc(size)))
			memset(block[count++], 1, size);
}

static void alloc_on(size_t n, size_t size, int node)
{
	block = realloc(block, (count + n) * sizeof *block);
	for (size_t i = 0; i < n && numaslab_malloc_node; i++)
		if ((block[count] = numaslab_malloc_node(size, node, 0)))
			memset(block[count++], 1, size);
}

static void *thread_main(void *arg)
{
	churn(0.3);
	return arg;
}

static void threads(unsigned n)
{
	pthread_t t[64];

	for (unsigned i = 0; i < n && i < 64; i++)
		pthread_create(&t[i], NULL, thread_main, NULL);
	for (unsigned i = 0; i < n && i < 64; i++)
		pthread_join(t[i], NULL);
}

/* The child publishes, says its pid, and waits to be killed. */
static void child(void)
{
	churn(1.3);
	printf("%d\n", getpid());
	fflush(stdout);
	pause();
	_exit(0);
}

static void obey(char *line, char **argv)
{
	char word[32] = "";
	size_t a = 0, b = 0, c = 0;

	sscanf(line, "%31s %zu %zu %zu", word, &a, &b, &c);
	if (!strcmp(word, "alloc")) {
		alloc(a, b);
	} else if (!strcmp(word, "node")) {
		alloc_on(a, b, (int)c);
	} else if (!strcmp(word, "holes")) {
		for (size_t i = 0; a && i < count; i += a) {
			free(block[i]);
			block[i] = NULL;
		}
	} else if (!strcmp(word, "free")) {
		while (count)
			free(block[--count]);
	} else if (!strcmp(word, "tick")) {
		churn(1.3);
	} else if (!strcmp(word, "stats")) {
		say_stats();
		return;
	} else if (!strcmp(word, "threads")) {
		threads((unsigned)a);
	} else if (!strcmp(word, "fork") || !strcmp(word, "rawfork")) {
		pid_t pid = *word == 'f' ? fork() : (pid_t)syscall(SYS_fork);

		if (pid == 0)
			child();
		return;
	} else if (!strcmp(word, "vfork")) {
		pid_t pid = vfork();

		if (pid == 0) {
			execl("/bin/true", "true", NULL);
			_exit(1);
		}
		waitpid(pid, NULL, 0);
	} else if (!strcmp(word, "daemon")) {
		if (daemon(1, 1) == 0)
			child();
	} else if (!strcmp(word, "exec")) {
		execv("/proc/self/exe", argv);
	} else if (!strcmp(word, "exit")) {
		exit(0);
	}
	printf("%d\n", getpid());
}

int main(int argc, char **argv)
{
	char line[128];

	(void)argc;
	printf("%d\n", getpid());
	fflush(stdout);
	while (fgets(line, sizeof line, stdin)) {
		obey(line, argv);
		fflush(stdout);
	}
	return 0;
}
