/* SPDX-License-Identifier: MIT */
/* One leak of 1234 bytes and one write past a block's end, for memcheck to find. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *volatile lost, *volatile block;

int main(void)
{
	for (int i = 1; i < 2000; i++) {
		block = malloc(i);
		memset(block, 1, i);
		block = realloc(block, i * 2);
		free(block);
	}
	lost = malloc(1234);
	lost[0] = 1;
	lost = NULL;
	block = malloc(40);
	block[40] = 1;
	free(block);
	puts("done");
	return 0;
}
