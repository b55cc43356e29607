/* SPDX-License-Identifier: MIT */
#include "allocator/allocator.h"
#include "preload/numaslab.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The malloc family: arguments and errno, nothing else. */

#define hot exported __attribute__((hot))
/* Compilers make a call of memset of a clearing loop. */
#define keep_loop() __asm__ volatile("" ::: "memory")

cold static void *no_memory(void)
{
	errno = ENOMEM;
	return NULL;
}

noinline_ static void *malloc_slow(size_t size)
{
	void *p = alloc_slow(size);

	return likely(p != NULL) ? p : no_memory();
}

/* Sizes above the linear classes. */
noinline_ static void *malloc_medium(size_t size)
{
	struct heap *h = thread_state.heap;
	void *p = NULL;

	if (size <= CLASS_MEDIUM_MAX && likely(h && heap_is_home(h)))
		p = heap_pop_class(h, class_of(size));
	return likely(p != NULL) ? p : malloc_slow(size);
}

/*
 * <= 18 instructions for a small block on one node.  On several the limit is 0, every size takes
 * the first branch, and the node is compared: <= 22.
 */
hot void *malloc(size_t size)
{
	struct heap *h;
	void *p = NULL;

	if (unlikely(size > layout.small_limit)) {
		if (unlikely(size > layout.medium_limit))
			return malloc_medium(size);
		h = thread_state.heap;
		if (likely(heap_is_home(h)))
			p = heap_pop(h, size);
		return likely(p != NULL) ? p : malloc_slow(size);
	}
	h = thread_state.heap;
	p = heap_pop(h, size);
	return likely(p != NULL) ? p : malloc_slow(size);
}

/* <= 20 instructions for a block of a slab of this thread's heap. */
hot void free(void *p)
{
	struct heap *h = thread_state.heap;
	uintptr_t at = (uintptr_t)p - layout.base;

	if (unlikely(at >= layout.fast_span))
		goto slow;
	struct slab *s = (struct slab *)(layout.table + (at >> UNIT_SHIFT << SLAB_DESC_SHIFT));
	if (unlikely(atomic_load_explicit(&s->owner, memory_order_relaxed) != h))
		goto slow;
	link_write(p, s->free);
	s->free = (uintptr_t)p;
	if (unlikely(slab_count_down(s)))
		free_look(h, s);
	return;
slow:
	free_slow(p);
}

exported void cfree(void *p);
exported void cfree(void *p)
{
	free(p);
}

/* Blocks are multiples of 16 bytes: a few stores where a call would cost more. */
inline_ void block_clear(void *p, size_t bytes)
{
	typedef uint64_t pair __attribute__((vector_size(16), may_alias));

	if (bytes > 256) {
		memset(p, 0, bytes);
		return;
	}
	for (size_t at = 0; at < bytes; at += sizeof(pair)) {
		*(pair *)((char *)p + at) = (pair){0, 0};
		keep_loop();
	}
}

exported void *calloc(size_t n, size_t size)
{
	size_t bytes;

	if (__builtin_mul_overflow(n, size, &bytes))
		return no_memory();
	if (likely(bytes <= CLASS_MEDIUM_MAX)) {
		void *p = malloc(bytes);

		if (likely(p != NULL))
			block_clear(p, bytes);
		return p;
	}
	void *p = alloc_zeroed(bytes);

	return likely(p != NULL) ? p : no_memory();
}

/* `want` bytes, or at least `size`. */
inline_ void *malloc_or_less(size_t want, size_t size)
{
	int kept = errno;
	void *p = malloc(want);

	if (p || want == size)
		return p;
	errno = kept;
	return malloc(size);
}

exported void *realloc(void *p, size_t size)
{
	if (!p)
		return malloc(size);
	if (size == 0) {
		free(p);
		return NULL;
	}
	size_t want = size, have = alloc_resize(&p, &want);

	if (!have)
		return likely(p != NULL) ? p : no_memory();
	int kept = errno;
	void *to = malloc_or_less(want, size);
	if (likely(to != NULL)) {
		memcpy(to, p, have < size ? have : size);
		free(p);
	} else if (size <= have) { /* smaller: as it is */
		errno = kept;
		return p;
	}
	return to;
}

exported void *reallocarray(void *p, size_t n, size_t size)
{
	size_t bytes;

	if (__builtin_mul_overflow(n, size, &bytes))
		return no_memory();
	return realloc(p, bytes);
}

static bool is_power(size_t n)
{
	return n && !(n & (n - 1));
}

/* The way of malloc() without its errno. */
inline_ void *linear_block(size_t size)
{
	struct heap *h = thread_state.heap;
	void *p = NULL;

	if (size <= layout.small_limit || (size <= layout.medium_limit && heap_is_home(h)))
		p = heap_pop(h, size);
	return likely(p != NULL) ? p : alloc_slow(size);
}

noinline_ static void *aligned_medium(size_t align, size_t size)
{
	struct heap *h = thread_state.heap;
	unsigned cls = class_aligned(size | (size == 0), align);
	void *p = NULL;

	if (cls && cls < CLASS_WIDE_FIRST && likely(h && heap_is_home(h)))
		p = heap_pop_class(h, cls);
	return likely(p != NULL) ? p : alloc_aligned(align, size);
}

/* align: a power of two.  errno is the caller's affair. */
inline_ void *aligned(size_t align, size_t size)
{
	/* Linear class sizes are the multiples of 16: the block of the rounded size is aligned. */
	if (likely((align | size) <= CLASS_LINEAR_MAX)) {
		size_t rounded = round_up(size | (size == 0), align);

		if (likely(rounded <= CLASS_LINEAR_MAX))
			return linear_block(rounded);
	}
	return aligned_medium(align, size);
}

exported int posix_memalign(void **out, size_t align, size_t size)
{
	if (unlikely(!is_power(align) || align % sizeof(void *)))
		return EINVAL;
	void *p = aligned(align, size);

	if (unlikely(!p))
		return ENOMEM;
	*out = p;
	return 0;
}

exported void *aligned_alloc(size_t align, size_t size)
{
	if (unlikely(!is_power(align))) {
		errno = EINVAL;
		return NULL;
	}
	void *p = aligned(align, size);

	return likely(p != NULL) ? p : no_memory();
}

/* As glibc: an alignment that is no power of two is rounded up to one. */
exported void *memalign(size_t align, size_t size)
{
	if (align > PTRDIFF_MAX) {
		errno = EINVAL;
		return NULL;
	}
	if (!is_power(align))
		align = align < 2 ? 1 : (size_t)2 << log2_floor(align - 1);
	return aligned_alloc(align, size);
}

exported void *valloc(size_t size)
{
	return aligned_alloc((size_t)sysconf(_SC_PAGESIZE), size);
}

exported void *pvalloc(size_t size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	if (size > PTRDIFF_MAX)
		return no_memory();
	return aligned_alloc(page, round_up(size | (size == 0), page));
}

exported size_t malloc_usable_size(void *p)
{
	return alloc_usable(p);
}

exported int malloc_trim(size_t pad)
{
	(void)pad;
	return alloc_trim() > 0;
}

exported int mallopt(int what, int value)
{
	(void)what;
	(void)value;
	return 1; /* glibc's parameters have no counterpart; none is refused */
}

/* --- numaslab.h --- */

exported void *numaslab_malloc_node(size_t size, int node, unsigned flags)
{
	if (flags & ~NUMASLAB_THISNODE || !alloc_node_is_valid(node)) {
		errno = EINVAL;
		return NULL;
	}
	void *p = alloc_on_node(size, node, flags & NUMASLAB_THISNODE);

	return p ? p : no_memory();
}

exported int numaslab_node_of(const void *p)
{
	return alloc_node_of(p);
}

exported int numaslab_set_cpu(int cpu)
{
	if (heap_set_sim_cpu(cpu) == 0)
		return 0;
	errno = EINVAL;
	return -1;
}

exported int numaslab_stats(struct numaslab_node_stats *stats, int max)
{
	return alloc_stats(stats, max);
}
