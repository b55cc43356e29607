/* SPDX-License-Identifier: MIT */
#ifndef NUMASLAB_SLAB_H
#define NUMASLAB_SLAB_H

/*
 * A slab: one unit (64 KiB) of blocks of one class, or eight for the wide classes.
 *
 *	state       owner  on which list             who may change it
 *	FREE        -      a window's free spans     holder of the window's lock
 *	OWNED       heap   that heap's (or in a bin) the owner; others push to .remote
 *	FULL        NULL   none                      a free: wins by compare-and-swap; others push
 *	LISTED      NULL   the node's partial list   holder of the node's lock; others push
 *
 *	FREE -> OWNED       slab birth, under the node lock
 *	OWNED -> FULL       owner, one CAS, only if less than a few were freed remotely meanwhile
 *	FULL -> OWNED       any free by a heap of the slab's node that filled it and keeps to
 *			    itself, or only frees: it adopts the slab (release.c)
 *	FULL -> LISTED      anybody else's that makes a few on .remote: CAS to OWNED, then the
 *			    node's list
 *	OWNED -> LISTED     owner gives it up (moved, exits, has too many), under the node lock
 *	LISTED -> OWNED     refill, under the node lock
 *	OWNED, LISTED -> FREE   nothing is out any more, under the node lock
 *
 * OWNED, FULL and LISTED live in .remote beside the list that others push to, so that a push and
 * a change of state cannot pass each other.  Conservation, for an OWNED slab:
 *	extended = used + blocks on .free + blocks in .hidden
 *	used     = out to the program + in the heap's bin + on the remote list
 */

#include "allocator/layout.h"
#include "allocator/link.h"

struct heap;

enum span_state {
	SPAN_FREE = 0, /* zero: untouched descriptors are free ones */
	SPAN_SLAB,
	SPAN_LARGE,
	SPAN_INNER, /* not a first unit; .head_units back is */
	SPAN_BUSY   /* in nobody's list: being purged or handed over */
};

/*
 * What the telemetry's map says of a unit (telemetry/ring.h).  Unlike .state, which is sound only
 * in the first and last unit of a free span, .part is sound in every unit of the nodes' windows:
 * who stored to the map may look again whatever became of the unit meanwhile.  In the large
 * window only a block's first unit has one.
 */
enum unit_part {
	UNIT_FREE, /* zero */
	UNIT_KEPT, /* of a dirty free span */
	UNIT_FIRST,
	UNIT_INNER /* and units back to the first */
};

struct slab {
	/* The owner's line: every free reads .owner, only the owner writes. */
	struct heap *_Atomic owner;
	uintptr_t free; /* local list, or slab_end() */
	int32_t left;	/* local frees until the next look (release.c); used = base + left */
	uint32_t base;
	uint32_t size; /* of a block, bytes */
	uint16_t capacity, extended;
	uint8_t cls, state;
	uint16_t node;	/* index of the node where it landed */
	uint32_t units; /* of the span; of a free span in its first and last unit */
	struct slab *next, *prev;
	uint16_t births; /* of slabs in this unit, ever (mod 65536) */
	uint8_t part;	 /* enum unit_part */
	bool spent;	 /* on its heap's list of those */
	uint32_t last;	 /* number of the heap that it was FULL by; 0: not yet.  Others read it as a
			  * hint, relaxed: any value it had is safe */

	/* The others' line. */
	_Atomic uint64_t remote cache_aligned;
	uint64_t hidden; /* classes >= 1 KiB: free blocks that are on no list (pages given back) */
	uint32_t head_units; /* SPAN_INNER, or last of a free span: units back to the first */
	uint16_t resident;   /* of this unit: a bit for each sixteenth populated by us */
	uint16_t tallied;    /* used, as the node's counters know it */
	uint16_t late;	     /* freed since, as the node's .late knows it */
	uint16_t step;	     /* pushes onto a LISTED slab that are counted at once; 2^n */
	uint8_t dirty;	     /* SPAN_FREE: may hold data (and memory) */
	uint8_t misplaced;   /* landed elsewhere than asked, or over two nodes */
	uint8_t patience;    /* looks in vain: the next is 2^patience frees away */
	uint8_t idle;	     /* granules counted in mem.idle; 0: not counted */
	uint8_t moved;	     /* SPAN_LARGE: a mapping or policy of its own */
	_Atomic uint8_t chunk_full, chunk_huge; /* of the first unit of 2 MiB (huge.c) */
	_Atomic uint64_t *out; /* NUMASLAB_CHECK: a bit for each block that is out */
	size_t bytes;	       /* SPAN_LARGE: asked, rounded to pages */
};

_Static_assert(sizeof(struct slab) == SLAB_DESC_SIZE, "layout.h addresses descriptors by shift");

inline_ struct slab *slab_of(uintptr_t addr)
{
	return (struct slab *)layout_desc_of(&layout, addr);
}

inline_ uintptr_t slab_addr(const struct slab *s)
{
	return layout_addr_of(&layout, (uintptr_t)s);
}

inline_ uintptr_t slab_end(const struct slab *s)
{
	return LINK_END + slab_addr(s);
}

inline_ bool link_is_end(uintptr_t link)
{
	return link >> 62 & 1;
}

/* Also asked by a thread whose slab may be dying meanwhile (pool_reap_slab). */
inline_ unsigned slab_node(const struct slab *s)
{
	return __atomic_load_n(&s->node, __ATOMIC_RELAXED);
}

inline_ void slab_set_node(struct slab *s, unsigned node)
{
	__atomic_store_n(&s->node, (uint16_t)node, __ATOMIC_RELAXED);
}

/*
 * .state of a span that is not free is read by whoever frees its neighbour (span.c), who wants to
 * know only that it is not free.
 */
inline_ void slab_set_state(struct slab *s, enum span_state state)
{
	__atomic_store_n(&s->state, (uint8_t)state, __ATOMIC_RELAXED);
}

/* Fields that telemetry_map() or observe_step() reads while their owner is another thread. */
#define slab_write(field, value) __atomic_store_n(&(field), value, __ATOMIC_RELAXED)

/* All units of a slab that is born, or of a span that is or becomes free. */
inline_ void slab_set_part(struct slab *s, enum unit_part part)
{
	for (unsigned i = 0; i < s->units; i++) {
		slab_write(s[i].part,
			   (uint8_t)(part == UNIT_FIRST && i ? UNIT_INNER + i : (unsigned)part));
		if (part == UNIT_FIRST)
			slab_write(s[i].births, (uint16_t)(s[i].births + 1));
	}
}

inline_ size_t slab_bytes(const struct slab *s)
{
	return (size_t)s->units << UNIT_SHIFT;
}

/* Whether link is a block of s, by address alone. */
inline_ bool slab_has(const struct slab *s, uintptr_t link)
{
	return link - slab_addr(s) < slab_bytes(s);
}

inline_ uint32_t slab_used(const struct slab *s)
{
	return s->base + (uint32_t)s->left;
}

_Static_assert(offsetof(struct slab, late) == offsetof(struct slab, tallied) + 2 &&
		   __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
	       "both are one number below");

/* The counters know that so much is used, and nothing is late: one comparison. */
inline_ bool slab_is_told(const struct slab *s, uint32_t used)
{
	uint32_t both;

	__builtin_memcpy(&both, &s->tallied, sizeof both);
	return both == used;
}

/* One local free counted; true: it is time to look (release.c). */
inline_ bool slab_count_down(struct slab *s)
{
#if defined(__x86_64__) && defined(__GCC_ASM_FLAG_OUTPUTS__)
	bool due;

	/* subl, jle: compilers make four instructions of it. */
	__asm__("subl $1, %0" : "+m"(s->left), "=@ccle"(due));
	return due;
#else
	return --s->left <= 0;
#endif
}

/*
 * The remote word, a value: bits 0-15 first block in 16-byte steps from the slab (0xffff: none),
 * 16-31 how many, 32-47 used when it was LISTED (FULL: how many on the list are enough), 48-49
 * state, 50-63 counts state changes, so that a word seen before a change never equals one after it
 * (mod 2^14).
 */
enum slab_state { SLAB_OWNED = 0, SLAB_FULL = 1, SLAB_LISTED = 2 };

#define REMOTE_NONE 0xffffu

inline_ enum slab_state remote_state(uint64_t w)
{
	return (enum slab_state)(w >> 48 & 3);
}

inline_ unsigned remote_first(uint64_t w)
{
	return w & 0xffff;
}

inline_ unsigned remote_count(uint64_t w)
{
	return w >> 16 & 0xffff;
}

inline_ unsigned remote_used(uint64_t w)
{
	return w >> 32 & 0xffff;
}

/*
 * Frees after which a slab with nothing to give is looked at again: a refill of a block or two
 * costs a slow malloc, a change of state and a lock for each.
 */
#define SLAB_FEW_MAX 16u

inline_ unsigned slab_few(const struct slab *s)
{
	return (unsigned)min_size(max_size(s->capacity / 8u, 1), SLAB_FEW_MAX);
}

/* Pushes onto a slab of `capacity` blocks that are counted at once: at most an eighth of it. */
inline_ unsigned slab_step(unsigned capacity)
{
	return 1u << log2_floor(capacity / 8u | 1u);
}

/*
 * How many of the blocks pushed onto a slab, LISTED as .remote says, were taken off the node's
 * count: whoever makes the list a whole number of steps long takes off one step (release.c).
 */
inline_ unsigned slab_told(const struct slab *s, uint64_t remote)
{
	unsigned step = __atomic_load_n(&s->step, __ATOMIC_RELAXED);

	return remote_count(remote) & -step;
}

/* Nothing of a LISTED slab is out any more. */
inline_ bool remote_is_empty(uint64_t w)
{
	return remote_state(w) == SLAB_LISTED && remote_count(w) == remote_used(w);
}

inline_ uint64_t remote_make(unsigned first, unsigned count)
{
	return (uint64_t)count << 16 | first;
}

/* One more block at the head; state and version kept. */
inline_ uint64_t remote_push(uint64_t w, unsigned first)
{
	return (w & ~(uint64_t)0xffff) + ((uint64_t)1 << 16) + first;
}

/* The list taken off; state and version kept. */
inline_ uint64_t remote_taken(uint64_t w)
{
	return (w & ~(uint64_t)0xffffffff) | REMOTE_NONE;
}

/* Another state, the list kept. */
inline_ uint64_t remote_turn(uint64_t w, enum slab_state state, unsigned used)
{
	uint64_t version = (w >> 50) + 1;

	return version << 50 | (uint64_t)state << 48 | (uint64_t)used << 32 | (w & 0xffffffff);
}

/* --- Transitions (slab.c).  None allocates, locks or makes a system call. --- */

/* A span of class_slab_units(cls) units becomes an empty OWNED slab with nothing extended. */
void slab_init(struct slab *s, unsigned cls, unsigned node);

/*
 * The owner takes what can be handed out: own frees, else remote ones.  Returns the first block of
 * a list that ends in slab_end(), *count blocks long; 0 if there are none.
 */
uintptr_t slab_take_free(struct slab *s, unsigned *count);
uintptr_t slab_take_remote(struct slab *s, unsigned *count);

/*
 * Threads the blocks that lie wholly below `bytes` of the slab and were never handed out, as a
 * list in address order; 0 if there are none.  The memory must be there.
 */
uintptr_t slab_extend(struct slab *s, size_t bytes, unsigned *count);
void slab_thread(const struct slab *s, uintptr_t first, unsigned count);

/*
 * OWNED -> FULL, of a slab of which something is out; false if a few were freed remotely meanwhile
 * (then nothing changed).
 */
bool slab_set_full(struct slab *s, bool scarce);

/*
 * Pushes a block from any thread; returns what there is to be done about it (release.c), any of:
 * PUSHED_ENOUGH: the slab was FULL, is OWNED now and the caller's to place.  PUSHED_STEP: it is
 * LISTED, and its node's counters shall learn of .step blocks more.  PUSHED_LAST: it is LISTED and
 * may be empty: look again under the node lock.  scarce: one block is enough.  *node: of a LISTED
 * slab, the node whose counters these are.
 */
enum slab_push { PUSHED_ENOUGH = 1, PUSHED_STEP = 2, PUSHED_LAST = 4 };
unsigned slab_push_remote(struct slab *s, void *block, bool scarce, unsigned *node);

/* FULL -> OWNED without a push, what was pushed before kept; false: somebody was first. */
bool slab_claim_full(struct slab *s);

/* OWNED -> LISTED, under the node lock; returns the word, for remote_is_empty(). */
uint64_t slab_set_listed(struct slab *s);

/* LISTED -> OWNED, under the node lock. */
void slab_set_owned(struct slab *s);

/*
 * Whether the slab's own list has `expect` blocks, looked at as far as SLAB_LOOK of them: a block
 * freed twice is there twice, and what follows it is lost.
 */
#define SLAB_LOOK 12u /* freed lately, so in the cache: further on each step would be a miss */
bool slab_list_is_sound(const struct slab *s, unsigned expect);

/* Walks a list of s; how many links are sound (all of them, unless memory was overwritten). */
unsigned slab_list_length(const struct slab *s, uintptr_t first);

#endif
