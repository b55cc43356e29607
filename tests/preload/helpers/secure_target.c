/* SPDX-License-Identifier: MIT */
/* Started with and without AT_SECURE by contract_secure: says what the library took from its
 * environment, and whether it publishes.  Prints "secure=N entries=N files=N": files of
 * telemetry that are mapped while it holds more than what makes a process publish at once. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <time.h>

#include "preload/numaslab.h"

#define KEPT 240000 /* blocks of 100 bytes: 24 MiB */

static void *kept[KEPT];

static int telemetry_files(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[600];
	int files = 0;

	while (maps && fgets(line, sizeof(line), maps))
		files += strstr(line, "/published/") || strstr(line, "/dev/shm/numaslab-");
	if (maps)
		fclose(maps);
	return maps ? files : -1;
}

static long now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

int main(void)
{
	struct numaslab_node_stats stats[16];
	int entries = -1;

	for (int i = 0; i < 200000; i++) {
		char *p = malloc(i % 3000);

		if (!p)
			return 1;
		memset(p, 1, i % 3000);
		free(p);
	}
	/* More than 16 MiB, and slow paths for longer than some ticks of 100 ms. */
	for (long start = now_ms(); now_ms() - start < 500;)
		for (int i = 0; i < KEPT; i++) {
			free(kept[i]);
			if (!(kept[i] = malloc(100 + i % 7 * 50)))
				return 1;
		}
	if (numaslab_stats)
		entries = numaslab_stats(stats, 16);
	printf("secure=%lu entries=%d files=%d\n", getauxval(AT_SECURE), entries,
	       telemetry_files());
	return 0;
}
