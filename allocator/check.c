/* SPDX-License-Identifier: MIT */
#include "allocator/alloc.h"

#include <string.h>

/*
 * NUMASLAB_CHECK=1: a bit for each block that is out, in a table of its own, so that no overflow
 * reaches it.  Every malloc and free goes the slow way then (heap.h: .where and heap_tag()).
 */

static _Atomic uint64_t *out_bits;

#define WORDS_PER_UNIT (UNIT_SIZE / 16 / 64)

cold bool check_init(void)
{
	size_t bytes = (layout.span >> UNIT_SHIFT) * WORDS_PER_UNIT * sizeof(uint64_t);
	void *at = os_reserve(bytes);

	if (!at || !os_commit(at, bytes))
		return false;
	out_bits = at;
	return true;
}

static _Atomic uint64_t *word_of(const void *p, uint64_t *bit)
{
	uintptr_t step = ((uintptr_t)p - layout.base) >> 4;

	*bit = (uint64_t)1 << (step % 64);
	return &out_bits[step / 64];
}

void check_alloc(const struct slab *s, const void *p)
{
	uint64_t bit;
	_Atomic uint64_t *word = word_of(p, &bit);

	if (((uintptr_t)p - slab_addr(s)) % s->size || atomic_fetch_or(word, bit) & bit)
		die("a block that is out is about to be handed out again", p);
}

void check_free(const struct slab *s, const void *p)
{
	uint64_t bit;
	_Atomic uint64_t *word = word_of(p, &bit);

	if (((uintptr_t)p - slab_addr(s)) % s->size)
		die("free of a pointer into the middle of a block", p);
	if (!(atomic_fetch_and(word, ~bit) & bit))
		die("double free", p);
}

static char *put_text(char *to, const char *text)
{
	while (*text)
		*to++ = *text++;
	return to;
}

static char *put_number(char *to, uint64_t n, unsigned base)
{
	char digits[24];
	unsigned have = 0;

	do
		digits[have++] = "0123456789abcdef"[n % base];
	while (n /= base);
	while (have)
		*to++ = digits[--have];
	return to;
}

cold _Noreturn void die(const char *what, const void *p)
{
	char line[256], *to = line;
	uintptr_t addr = (uintptr_t)p;

	to = put_text(to, "numaslab: ");
	to = put_text(to, what);
	to = put_text(to, ": 0x");
	to = put_number(to, addr, 16);
	if (layout_owns(&layout, addr)) {
		const struct slab *s = slab_head(addr);

		if (s->state == SPAN_SLAB) {
			to = put_text(to, ", size class ");
			to = put_number(to, s->size, 10);
			to = put_text(to, ", node ");
			to = put_number(to, (uint64_t)topology.number[s->node], 10);
		} else {
			to =
			    put_text(to, s->state == SPAN_LARGE ? ", a large block" : ", no block");
		}
	} else {
		to = put_text(to, ", not memory of this allocator");
	}
	*to++ = '\n';
	os_write_error(line, (size_t)(to - line));
	os_abort();
}
