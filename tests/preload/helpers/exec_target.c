/* SPDX-License-Identifier: MIT */
/* Started by the fork tests: allocates a little and ends with the status asked for. */
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
	for (int i = 0; i < 1000; i++) {
		char *p = malloc(i * 9);

		memset(p, 1, i * 9);
		free(p);
	}
	return argc > 1 ? atoi(argv[1]) : 0;
}
