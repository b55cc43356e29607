/* SPDX-License-Identifier: MIT */
/* The first call comes from ld.so's relocation: a resolver of the program allocates. */
#include <stdlib.h>
#include <string.h>

static char *early;

static int plus(int x)
{
	return x + 1;
}

__attribute__((used)) static int (*resolve(void))(int)
{
	early = malloc(3000);
	if (early)
		memset(early, 6, 3000);
	free(malloc(20));
	return plus;
}

int chosen(int x) __attribute__((ifunc("resolve")));

int main(void)
{
	if (chosen(1) != 2 || !early)
		return 1;
	for (int i = 0; i < 3000; i++)
		if (early[i] != 6)
			return 2;
	free(early);
	return 0;
}
