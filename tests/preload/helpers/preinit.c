/* SPDX-License-Identifier: MIT */
/* The first calls come from .preinit_array, before any constructor. */
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { N = 500 };
static char *blocks[N];
static int problems;
static pthread_key_t key;

static void first(int argc, char **argv, char **envp)
{
	(void)argc;
	(void)argv;
	(void)envp;
	if (errno)
		problems |= 1;
	for (int i = 0; i < N; i++) {
		blocks[i] = i % 3 ? malloc(i * 7) : calloc(i * 7 + 1, 1);
		if (!blocks[i])
			problems |= 2;
		memset(blocks[i], i, i * 7);
	}
	for (int i = 0; i < N; i += 2)
		blocks[i] = realloc(blocks[i], i * 14);
	for (int i = 0; i < N; i += 5) {
		free(blocks[i]);
		blocks[i] = memalign(256, 1000);
		memset(blocks[i], i, 1000);
	}
	pthread_key_create(&key, free);
	pthread_setspecific(key, malloc(10));
}

__attribute__((section(".preinit_array"), used)) static void (*entry)(int, char **,
								      char **) = first;

__attribute__((constructor(101))) static void second(void)
{
	if (errno)
		problems |= 4;
	free(blocks[1]);
	blocks[1] = malloc(7);
	memset(blocks[1], 1, 7);
}

static void *in_thread(void *unused)
{
	for (int i = 0; i < N; i++)
		free(malloc(i * 100));
	pthread_setspecific(key, malloc(10));
	return unused;
}

int main(void)
{
	pthread_t thread;

	if (errno)
		problems |= 8;
	for (int i = 0; i < N; i++) {
		for (int k = 0; k < i * 7; k++)
			if ((k < 1000 || i % 5) && blocks[i][k] != (char)i)
				problems |= 16;
		free(blocks[i]);
	}
	if (pthread_create(&thread, NULL, in_thread, NULL))
		problems |= 32;
	pthread_join(thread, NULL);
	if (problems)
		printf("problems %#x\n", problems);
	return problems != 0;
}
