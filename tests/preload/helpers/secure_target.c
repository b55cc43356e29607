/* SPDX-License-Identifier: MIT */
/* Started with and without AT_SECURE by contract_secure: says what the library took from its
 * environment.  Prints "secure=N entries=N". */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "preload/numaslab.h"

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
	if (numaslab_stats)
		entries = numaslab_stats(stats, 16);
	printf("secure=%lu entries=%d\n", getauxval(AT_SECURE), entries);
	return 0;
}
