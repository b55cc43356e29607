/* SPDX-License-Identifier: MIT */
/* atfork handlers that allocate, registered as early as a preloaded library can. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

int atfork_calls(void);

static void *kept[16];
static int calls;

static void allocate(void)
{
	unsigned i = calls++ % 16;

	free(kept[i]);
	kept[i] = malloc(i * 500 + 1);
	memset(kept[i], 1, i * 500 + 1);
	for (int k = 0; k < 200; k++)
		free(malloc(k * 37));
	free(realloc(calloc(1, 3000), 300000));
}

__attribute__((constructor)) static void begin(void)
{
	pthread_atfork(allocate, allocate, allocate);
}

int atfork_calls(void)
{
	return calls;
}
