/* SPDX-License-Identifier: MIT */
#ifndef NUMASLAB_HEAP_H
#define NUMASLAB_HEAP_H

/*
 * A thread's heap, and the two fast paths.
 *
 *	bin[c]		list of blocks ready for class c, all of one slab; the last one leads to
 *			the slab's end, an empty bin to heap_empty_word
 *	cls[c].current	the slab that bin[c] was filled from
 *	cls[c].room	a slab not yet extended to its end, put off while others have room
 *	cls[c].partial	the other OWNED slabs of the class, each with something to give
 *	cls[c].spent	OWNED slabs with nothing to give, or little since.  With some frees more
 *			they are partial; when they are too many, or no other is left, those with
 *			nothing become FULL: a program that replaces its blocks at random frees
 *			into most of them before that
 *
 * A heap belongs to one node.  A thread that moves takes another heap and gives up this one.
 * Heaps are never unmapped: .owner of a slab is compared, never followed, by other threads.
 */

#include "allocator/node.h"

struct slab_queue {
	struct slab *first, *last;
	uint32_t count;
};

struct class_heap {
	struct slab *current, *room;
	struct slab_queue partial, spent;
	uint16_t cached;      /* put into the bin at the last refill, as counted */
	uint16_t cached_node; /* where that was counted */
	uint16_t filled; /* slabs in a row that were used to their end: how boldly to populate */
	bool away;	 /* may have slabs of another node (steps 4, 5) */
	uint8_t strange; /* how often it frees into slabs that others filled (release.c) */
	uint8_t churn;	 /* slabs that came and went without filling: look ever more rarely */
	/* Not yet in the node's counters: refills of steps 1 and 2; blocks freed by others that
	 * they found; slow mallocs, what they asked for. */
	uint64_t own, took, remote_in, looked, asked;
	uint32_t refills;
};

struct heap {
	uintptr_t bin[CLASS_COUNT];
	int32_t where;	     /* what the rseq word says while we are at home */
	uint16_t index;	     /* of the pool */
	uint32_t number;     /* from 1 */
	unsigned drain_from; /* the next class to drain */
	struct class_heap cls[CLASS_COUNT];
	uint64_t remote_out; /* objects not yet in the node's counters */
	struct heap *next;   /* idle ones of a pool */
	struct heap *left;   /* the heap this thread gave up last, still to drain */
	struct heap *every;  /* all heaps (salvage.c) */
	_Atomic bool orphan; /* fork removed its thread */
	size_t warm;	     /* bytes of the slabs that it kept as its thread ended */
};

extern hidden_ const uint64_t heap_empty_word;
extern hidden_ struct heap heap_none; /* a thread without a heap: every bin empty, owns nothing */
extern hidden_ bool alloc_checked;    /* NUMASLAB_CHECK=1 */
extern hidden_ bool alloc_forked;     /* we are the child of a process with several threads */
extern hidden_ _Atomic bool heaps_several; /* there has been more than one heap; a hint */

struct thread_state {
	struct heap *heap;
	int32_t sim_cpu; /* numaslab_set_cpu() + 1; 0: the real one */
	bool keyed;	 /* its end will be told */
	bool counted;	 /* among the threads that there have been */
	uint8_t exits;	 /* rounds of thread-specific destructors seen */
	uint8_t turns;	 /* slow calls of malloc, mod 256 */
};

extern hidden_ tls_fast struct thread_state thread_state;

/* The heap of the thread, or heap_none; thread-local storage may still be all zero. */
inline_ struct heap *thread_heap(void)
{
	struct heap *h = thread_state.heap;

	return likely(h != NULL) ? h : &heap_none;
}

/* A thread, before it changes what others may see: it may be one that libc does not know of. */
void thread_count_slow(void);

inline_ void thread_count(void)
{
	if (unlikely(!thread_state.counted))
		thread_count_slow();
}

inline_ uintptr_t bin_empty(void)
{
	return (uintptr_t)&heap_empty_word;
}

/* The value, in the register that a function returns: spares malloc a move. */
inline_ uintptr_t in_result(uintptr_t block)
{
#ifdef __x86_64__
	__asm__("" : "+a"(block));
#endif
	return block;
}

/*
 * Pops a block of the linear class of `size` <= 1024, or NULL: look closer (an empty bin, the last
 * block, a corrupt link).  Valid links stay inside the block's 64 KiB.
 */
inline_ void *heap_pop(struct heap *h, size_t size)
{
	uintptr_t *bin = &h->bin[(size + 15) >> CLASS_LINEAR_SHIFT];
	uintptr_t block = in_result(*bin), next = link_read((void *)block);

	if (unlikely((next ^ block) >= UNIT_SIZE))
		return NULL;
	*bin = next;
	__builtin_prefetch((const void *)next); /* the next call waits for its link */
	return (void *)block;
}

/* The same for any class whose slabs are one unit. */
inline_ void *heap_pop_class(struct heap *h, unsigned cls)
{
	uintptr_t block = in_result(h->bin[cls]), next = link_read((void *)block);

	if (unlikely((next ^ block) >= UNIT_SIZE))
		return NULL;
	h->bin[cls] = next;
	__builtin_prefetch((const void *)next);
	return (void *)block;
}

/* Whether the thread still runs where its heap's memory is; always true on one node. */
inline_ int32_t heap_where_word(void)
{
#if defined(__SEG_FS)
	return *(const volatile __seg_fs int32_t *)layout.where_offset;
#else
	const char *tp = __builtin_thread_pointer();

	return *(const volatile int32_t *)(tp + layout.where_offset);
#endif
}

inline_ bool heap_is_home(const struct heap *h)
{
	return h->where == heap_where_word();
}

/* --- Slow parts (heap.c, refill.c, release.c, large.c). --- */

/* The calling thread's heap on the node where it runs: made, or moved to, if need be.  NULL: no
 * memory. */
struct heap *heap_here(void);

/* As free, every pointer but what the fast path took. */
void free_slow(void *p);

/* The look after .left local frees (release.c). */
void free_look(struct heap *h, struct slab *s);

/* Gives up slabs of the class that lie elsewhere (refill.c). */
void heap_come_home(struct heap *h, unsigned cls);

/* Fills the (empty) bin and returns a block; NULL: no memory.  strict: this node or none. */
void *heap_refill(struct heap *h, unsigned cls, bool strict);

/* A block from node `index`, for a thread that need not be there, or has no heap. */
void *node_alloc(unsigned index, unsigned cls, bool strict);

/* The bin of s's class, just emptied, takes what s has on its own list (refill.c). */
void bin_top_up(struct heap *h, struct slab *s);

/* Pops from a bin of any class, the last block too; NULL: it is empty. */
void *heap_pop_any(struct heap *h, unsigned cls);

/* Gives the slab, of which the heap has nothing in a bin, to its node's list (or frees it). */
void heap_give_up(struct heap *h, struct slab *s);

/* Blocks of the bin go back to their slab's own list. */
void heap_flush_bin(struct heap *h, unsigned cls);

/* Gives up what the heap has of one class, up to `effort` slabs; how many. */
unsigned heap_drain_class(struct heap *h, unsigned cls, unsigned effort);

/* Gives up up to about `effort` slabs of a heap; true: it owns nothing any more. */
bool heap_drain(struct heap *h, unsigned effort);

/* The thread keeps no memory ready: bins back, slabs with nothing out freed (malloc_trim). */
void heap_trim(struct heap *h);

/* Counters the heap keeps to itself, into the node's. */
void heap_settle_class(struct heap *h, unsigned cls);

/* What a bin holds after a block of s: the next one, or nothing.  Dies of a corrupt link. */
uintptr_t bin_after(const struct slab *s, uintptr_t block);

/* Links s behind the partial (spent) slabs of its class; takes it off the list it is on. */
void heap_partial_add(struct heap *h, struct slab *s);
void heap_spent_add(struct heap *h, struct slab *s);
void heap_unlink(struct heap *h, struct slab *s);

/*
 * The class's current slab has nothing (more) to give.  It gives again after some frees, not after
 * one: a refill of one block costs a slow malloc for each.
 */
void heap_spend_current(struct heap *h, struct class_heap *c);

/* The slab that has been spent longest, of those with something by now, is partial; false: none
 * has. */
bool heap_find_spent(struct heap *h, struct class_heap *c);

/* The slab that has been spent longest becomes FULL, or partial if it was freed into. */
void heap_retire_spent(struct heap *h, struct class_heap *c);

/* A new heap; the child of a fork (whether there are heaps without a thread); one of these is
 * emptied (false: there is none). */
void heap_register(struct heap *h);
bool heaps_fork_child(void);
bool heaps_salvage(void);

/*
 * The thread has ended: the heap keeps what it owns for the next one; false: that is too much, or
 * memory is scarce (warm.c).  And it belongs to a thread again, or is about to be emptied.
 */
bool heap_stay_warm(struct heap *h);
void heap_cool(struct heap *h);

/* A heap for node `index` that no thread has: an idle one (it may own slabs), or new. */
struct heap *heap_acquire(unsigned index);
void heap_rest(struct heap *h);

/* What .owner of a slab of h is: not h itself where every free shall be looked at. */
inline_ struct heap *heap_tag(struct heap *h)
{
	return alloc_checked ? (struct heap *)((uintptr_t)h | 1) : h;
}

/* The slab (first unit) that an address of ours lies in; it may be no slab at all. */
inline_ struct slab *slab_head(uintptr_t addr)
{
	struct slab *s = slab_of(addr);

	/* A stale inner unit (inside a free span, or of a large block) leads nowhere. */
	if (s->state == SPAN_INNER && (s - s->head_units)->units > s->head_units)
		s -= s->head_units;
	return s;
}

/* A heap keeps empty slabs of at most so many bytes, all heaps together. */
#define IDLE_MAX ((size_t)256 << 10)

/* An empty slab that its heap keeps: counted in mem.idle while .idle. */
bool slab_set_idle(struct slab *s);
void slab_set_busy(struct slab *s);

/*
 * Local frees until the next look at an empty slab that is kept: a look walks the bin, which at
 * most doubles the memory touched.
 */
inline_ unsigned slab_idle_left(unsigned cached)
{
	return 16 + 2 * cached;
}

/* Free pages inside a slab of large blocks (hide.c). */
#define HIDE_SIZE_MIN 1024u

/* Local frees until the next look at a slab that is not current, of which `out` are out. */
inline_ unsigned slab_look_step(const struct slab *s, unsigned out)
{
	size_t step = s->size >= HIDE_SIZE_MIN ? max_size(s->capacity / 8u, 2)
					       : max_size(s->capacity / 4u, 16);

	return (unsigned)min_size(out, step);
}

bool slab_is_sparse(const struct slab *s);
void slab_hide(struct slab *s);
void pool_trim_partial(struct pool *p);
uintptr_t slab_unhide(struct slab *s, unsigned *count);

/* A slab was born (check.c); for alloc_checked. */
void check_birth(struct slab *s);

/* Prints one line about a pointer and aborts. */
_Noreturn void die(const char *what, const void *p);

/* The bin of s's class holds n blocks of s now. */
inline_ void heap_set_cached(struct heap *h, const struct slab *s, unsigned n)
{
	struct class_heap *c = &h->cls[s->cls];

	if (c->cached_node != s->node) {
		tally(c->cached_node, s->cls, COUNT_cached, -(int64_t)c->cached);
		c->cached_node = s->node;
		c->cached = 0;
	}
	if (n != c->cached)
		tally(s->node, s->cls, COUNT_cached, (int64_t)n - c->cached);
	c->cached = (uint16_t)n;
}

/* What the node's counters do not know of what the slab uses; the caller tells them. */
inline_ int64_t slab_retally(struct slab *s)
{
	uint32_t used = slab_used(s);
	int64_t by = (int64_t)used - s->tallied;

	slab_write(s->tallied, (uint16_t)used);
	if (unlikely(s->late))
		slab_set_late(s, 0);
	return by;
}

/* Tells the node's counters what the slab uses now. */
inline_ void slab_settle(struct slab *s)
{
	int64_t by = slab_retally(s);

	if (by)
		tally_used(s, by);
}

inline_ void slab_set_used(struct slab *s, uint32_t used, uint32_t left)
{
	s->left = (int32_t)left;
	s->base = used - left;
}

#endif
