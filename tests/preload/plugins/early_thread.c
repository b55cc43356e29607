/* SPDX-License-Identifier: MIT */
/* Its constructor starts a thread that allocates, forks, and leaves blocks for main. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

void *early_block(void);

static void *block;
static pthread_t keeper;

static void *allocate(void *unused)
{
	for (int i = 0; i < 2000; i++) {
		char *p = malloc(i * 13);

		memset(p, i, i * 13);
		free(p);
	}
	block = malloc(1000);
	return unused;
}

/* Goes on allocating while later constructors run and main begins. */
static void *go_on(void *unused)
{
	void *p[50] = {0};

	for (int i = 0; i < 200000; i++) {
		free(p[i % 50]);
		p[i % 50] = malloc(i % 3000);
	}
	for (int i = 0; i < 50; i++)
		free(p[i]);
	return unused;
}

__attribute__((constructor)) static void begin(void)
{
	pthread_t thread;
	pid_t pid;

	if (pthread_create(&thread, NULL, allocate, NULL) ||
	    pthread_create(&keeper, NULL, go_on, NULL))
		abort();
	pthread_join(thread, NULL);
	pid = fork();
	if (!pid) {
		free(malloc(100));
		_exit(0);
	}
	waitpid(pid, NULL, 0);
}

__attribute__((destructor)) static void end(void)
{
	pthread_join(keeper, NULL);
	free(malloc(3000));
}

void *early_block(void)
{
	return block;
}
