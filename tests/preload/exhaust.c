/* SPDX-License-Identifier: MIT */
/* Memory taken to the end, and given back. */
#include "harness.h"

#include <errno.h>
#include <stdlib.h>

size_t grab_all(struct link **list, size_t size, size_t most)
{
	size_t total = 0;

	while (total < most) {
		struct link *p;

		errno = 0;
		p = malloc(size);
		if (!p) {
			CHECK_EQ(errno, ENOMEM);
			break;
		}
		block_fill(p + 1, size - sizeof(*p));
		p->next = *list;
		p->size = size;
		*list = p;
		total += size;
	}
	return total;
}

void release_all(struct link **list)
{
	while (*list) {
		struct link *p = *list;

		if (!block_holds(p + 1, p->size - sizeof(*p)))
			fail("a block of %zu bytes was overwritten", p->size);
		*list = p->next;
		free(p);
	}
}

/* To the end and back, in several sizes; at least `enough` bytes must be there each time. */
void exhaust(size_t enough, size_t most)
{
	static const size_t sizes[] = {100, 40000, 9 << 20, 64};
	struct link *list = NULL;

	for (int i = 0; i < 4; i++) {
		size_t got = grab_all(&list, sizes[i], most);

		CHECK(calloc(1, most) == NULL && errno == ENOMEM);
		CHECK(realloc(list, most) == NULL && errno == ENOMEM);
		if (got < enough)
			fail("only %zu KiB in blocks of %zu", got >> 10, sizes[i]);
		release_all(&list);
	}
}
