/* SPDX-License-Identifier: MIT */
#include "allocator/alloc.h"

#include <string.h>

/*
 * NUMASLAB_CHECK=1: a bit for each block that is out, apart from the blocks, so that no overflow
 * reaches it.  Every malloc and free goes the slow way then (heap.c: WHERE_NEVER; heap_tag()).
 */

#define OUT_WORDS (UNIT_SIZE / 16 / 64)

/* A slab is born: none of its blocks is out.  The bits stay with the descriptor. */
void check_birth(struct slab *s)
{
	if (!s->out)
		s->out = meta_alloc(OUT_WORDS * sizeof(uint64_t));
	if (s->out)
		memset((void *)s->out, 0, OUT_WORDS * sizeof(uint64_t));
}

static _Atomic uint64_t *word_of(const struct slab *s, const void *p, uint64_t *bit)
{
	size_t block = ((uintptr_t)p - slab_addr(s)) / s->size;

	*bit = (uint64_t)1 << (block % 64);
	return &s->out[block / 64];
}

static bool is_inner(const struct slab *s, const void *p)
{
	size_t offset = (uintptr_t)p - slab_addr(s);

	return offset % s->size || offset / s->size >= s->capacity;
}

/* Whether the block was out before. */
static bool set_out(const struct slab *s, const void *p)
{
	uint64_t bit;
	_Atomic uint64_t *word = word_of(s, p, &bit);

	return atomic_fetch_or(word, bit) & bit;
}

static bool clear_out(const struct slab *s, const void *p)
{
	uint64_t bit;
	_Atomic uint64_t *word = word_of(s, p, &bit);

	return atomic_fetch_and(word, ~bit) & bit;
}

void check_alloc(const struct slab *s, const void *p)
{
	if (s->state != SPAN_SLAB || !s->out)
		return;
	if (is_inner(s, p) || set_out(s, p))
		die("a block that is out is about to be handed out again", p);
}

/* Of a block that is to stay: realloc in place, malloc_usable_size. */
void check_out(const struct slab *s, const void *p)
{
	uint64_t bit;

	if (s->state != SPAN_SLAB || !s->out)
		return;
	if (is_inner(s, p))
		die("realloc or usable size of a pointer into the middle of a block", p);
	if (!(atomic_load(word_of(s, p, &bit)) & bit))
		die("realloc or usable size of a block that was freed", p);
}

void check_free(const struct slab *s, const void *p)
{
	if (!s->out)
		return;
	if (is_inner(s, p))
		die("free of a pointer into the middle of a block", p);
	if (!clear_out(s, p))
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
	if (layout_owns(&layout, addr) && pools_reach(addr)) {
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
