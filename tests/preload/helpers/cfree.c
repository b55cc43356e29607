/* SPDX-License-Identifier: MIT */
/* A program old enough to call cfree, which glibc keeps for such programs only. */
#include <stdlib.h>
#include <string.h>

__asm__(".symver old_cfree, cfree@GLIBC_2.2.5");
void old_cfree(void *p);

int main(void)
{
	for (int i = 0; i < 10000; i++) {
		char *p = malloc(i);

		if (!p)
			return 1;
		memset(p, i, i);
		old_cfree(p);
	}
	return 0;
}
