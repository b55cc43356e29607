/* SPDX-License-Identifier: MIT */
#ifndef NUMASLAB_RING_H
#define NUMASLAB_RING_H

/*
 * The shared-memory file, field by field, and the protocol of its history ring.
 *
 *	page 0          struct ring_header, the table of contents at its end
 *	NAMES           the counters' names, in the order of a row
 *	CLASSES         the size classes
 *	POOLS           one line for each node, the last one for the large blocks
 *	LIVE            rows of counters, row = pool * classes + class; stored at each transition
 *	HISTORY         the ring: one entry for each tick
 *	SLAB_MAP        one word for each 64 KiB unit of slab memory that was ever used, in pages
 *	                of RING_MAP_UNITS units, given out as they are needed
 *	SLAB_DIR        uint32_t for each RING_MAP_UNITS units of address space: 1 + the page,
 *	                or 0: nothing was ever there
 *
 * All numbers are in the machine's byte order, all offsets are from the file's beginning, nothing
 * is a pointer (the addresses of the process resolve its addresses; no reader follows them).  The
 *major version changes when an old reader would misread; the minor one when fields, counters or
 *sections are appended (readers find them by stride, count and type).
 *
 * Beside it lie NAME.pins, struct ring_pin [RING_PINS], which readers of the same user write, and
 * NAME.control, struct ring_control, 0600, by which its user (or root) asks for observation.
 *
 * The process holds an open-file-description write lock on byte RING_LIVE_BYTE for as long as it
 * maps the file: F_OFD_GETLK tells whether it lives.
 *
 * The ring's protocol.  The writer is one thread at a time; a reader is any process.
 *	                                        0 touched := 1, once, in the first pin
 *	writer of entry n                       reader of entry n
 *	 a skip n if a pin names its slot        1 pin := n
 *	 b generation := 0                       2 (full barrier)
 *	 c (full barrier)                        3 generation == n, else unpin and give up
 *	 d a pin names its slot: undo b, skip    4 read the entry in place
 *	 e store the entry                       5 generation == n, else it was overtaken
 *	 f generation := n, head := n            6 pin := 0
 * b, c, d against 1, 2, 3 is the store buffer pattern: either the writer sees the pin or the reader
 * sees that the entry is gone.  Nobody waits: a pinned slot is passed over (n is left out), and a
 * pin that the writer has seen unchanged for RING_STUCK_MS is honoured no more; step 5 tells.
 * While nobody has touched the pins the writer takes them for empty: 0 comes before 1, so that is
 * the same.  A reader that cannot write pins does the rest all the same.  The model is
 * tests/telemetry/ring.pml.
 */

#include <stddef.h>
#include <stdint.h>

#ifndef _LGPL_SOURCE
#define _LGPL_SOURCE /* liburcu's primitives inline: the library links none of it */
#endif
#include <urcu/arch.h>
#include <urcu/pointer.h>

#include "telemetry/counters.h"

#define RING_MAGIC	 UINT64_C(0x62616c73616d756e) /* "numaslab" */
#define RING_MAJOR	 1
#define RING_MINOR	 1
#define RING_LIVE_BYTE	 0
#define RING_PINS	 64
#define RING_STUCK_MS	 60000
#define RING_HEADER_SIZE 4096
#define RING_NAME_SIZE	 24
#define RING_COMM_SIZE	 16
#define RING_HISTORY_MAX ((size_t)4 << 20) /* bytes of the ring */
#define RING_ENTRIES_MAX 2048
#define RING_ENTRIES_MIN 128

enum ring_section_type {
	RING_NONE,
	RING_NAMES,
	RING_CLASSES,
	RING_POOLS,
	RING_LIVE,
	RING_HISTORY,
	RING_SLAB_MAP,
	RING_SLAB_DIR,
	RING_SECTIONS = 8 /* of the table; the rest is RING_NONE */
};

struct ring_section {
	uint32_t type; /* enum ring_section_type */
	uint32_t stride;
	uint64_t offset;
	uint64_t count;
};

/* The last entry of the ring that is complete; 0: none.  A pointer's worth for rcu_assign_pointer.
 */
union ring_head {
	uint64_t entry;
	void *token;
};

#define RING_FLAG_SIMULATED 1u /* the nodes are those of NUMASLAB_TOPOLOGY */

struct ring_header {
	uint64_t magic;
	uint16_t major, minor;
	uint8_t word_size; /* 8 */
	uint8_t placement; /* enum tunable_placement */
	uint16_t reserved;
	uint32_t flags;	     /* RING_FLAG_* */
	uint32_t generation; /* of this name: publishers of one process, as exec makes them */
	uint64_t file_size;
	uint64_t pid_namespace; /* inode of /proc/self/ns/pid; 0: not known */
	uint64_t start_ticks;	/* field 22 of /proc/self/stat; 0: not known */
	int32_t pid;		/* in that namespace */
	uint32_t uid;		/* effective */
	uint64_t publish_ms;	/* CLOCK_MONOTONIC, as all times here */
	uint32_t tick_ms;
	uint32_t page_size;
	char boot_id[40];	   /* text of /proc/sys/kernel/random/boot_id; "": not known */
	char comm[RING_COMM_SIZE]; /* as the kernel knows it; any bytes */
	uint32_t section_count;	   /* RING_SECTIONS */
	uint32_t pin_count;	   /* RING_PINS, or 0: there is no file of pins */
	uint32_t pool_stride;	   /* bytes of a pool's part of a history entry */
	uint32_t reserved2;
	struct ring_section sections[RING_SECTIONS];
	/* Since minor 1.  unit of an address = (address - base) >> 16, its window (= pool) =
	 * (address - base) >> window_shift; the last window holds the large blocks. */
	uint64_t base, span; /* of all windows */
	uint64_t map_at;     /* where SLAB_MAP and SLAB_DIR are read in the process (eBPF); */
	uint64_t dir_at;     /* 0: there is none */
	uint32_t window_shift, window_count;
	uint64_t reserved3;
	/* From here on it changes; a line of its own. */
	union ring_head head;
	uint64_t last_ms; /* of the last tick, also one that was passed over */
	uint64_t skipped; /* entries left out for pins, ever */
	/* Since minor 1. */
	uint64_t observe_request; /* acknowledged: struct ring_control; 0: nobody asks */
	uint64_t observed_bytes;  /* under observation now */
	uint32_t observe_how;	  /* enum ring_observe */
	uint32_t reserved4;
	uint64_t map_lost; /* pages of the map that there was no memory or room for */
	uint64_t reserved5;
};

enum ring_observe {
	RING_OBSERVE_NONE,
	RING_OBSERVE_PREFERRED, /* PREFERRED_MANY | NUMA_BALANCING */
	RING_OBSERVE_BIND,	/* BIND | NUMA_BALANCING, only where the node has room (6.1) */
	RING_OBSERVE_REFUSED	/* the kernel takes neither, or no node has room for it */
};

/*
 * A word of the map, uint64_t: bits 0-2 the state, 3 misplaced, 8-15 the class, 16-23 the pool
 * where it landed.  Slabs: 32-47 objects used (as the counters know), 48-63 the generation: how
 * often a slab was born in this unit (mod 65536), kept while it is free.  INNER: 32-47 units back
 * to the slab's first; all else, but the generation, stands there alone.  LARGE: 32-63 how many
 * units; those behind the first have no words of their own, also when they are free.
 *
 * Unit u of address space:
 *	page = dir[u / RING_MAP_UNITS]; 0: nothing was ever there
 *	word = map[(page - 1) * RING_MAP_UNITS + u % RING_MAP_UNITS]
 * A word is exact once its transition is over (stored, and looked at again, by whoever made it);
 * at any time it is a word that the slab's fields gave, perhaps some of before and some of after.
 */
enum ring_map_state {
	RING_MAP_FREE, /* nothing there, or it was given back */
	RING_MAP_ACTIVE,
	RING_MAP_PARTIAL,
	RING_MAP_FULL,
	RING_MAP_EMPTY, /* free, and memory kept */
	RING_MAP_INNER, /* not the first unit of a slab of several */
	RING_MAP_LARGE
};

#define RING_MAP_UNITS 512u /* a page of 4 KiB of the map */

#define RING_MAP_STATE(w)      ((unsigned)((w)&7))
#define RING_MAP_MISPLACED(w)  ((unsigned)((w) >> 3 & 1))
#define RING_MAP_CLASS(w)      ((unsigned)((w) >> 8 & 255))
#define RING_MAP_POOL(w)       ((unsigned)((w) >> 16 & 255))
#define RING_MAP_USED(w)       ((unsigned)((w) >> 32 & 0xffff))
#define RING_MAP_GENERATION(w) ((unsigned)((w) >> 48))
#define RING_MAP_BACK(w)       RING_MAP_USED(w)
#define RING_MAP_LENGTH(w)     ((uint32_t)((w) >> 32))

/*
 * Asks for observation: 1 chunk of 2 MiB of slabs in `sample` reports remote access to NUMA
 * balancing until the lease ends.  Any value is safe: what is out of range asks for nothing.  The
 * writer stores lease 0, the request, the lease.  Another seed is another sample.  The process
 * looks at it when it ticks, and says in its header what it does about it.
 */
struct ring_control {
	uint64_t request;  /* sample (1..RING_SAMPLE_MAX) << 32 | seed; 0: nothing */
	uint64_t lease_ms; /* CLOCK_MONOTONIC; at most RING_LEASE_MS ahead */
	uint64_t reserved[6];
};

#define RING_SAMPLE_MAX 65536u
#define RING_LEASE_MS	60000

struct ring_name {
	char name[RING_NAME_SIZE];
};

struct ring_class {
	uint32_t size;	     /* bytes of a block; 0: no class (spans kept ready, large blocks) */
	uint32_t slab_bytes; /* of a slab of this class; 0 with size 0 */
};

#define RING_POOL_LARGE 1u

struct ring_pool {
	int32_t node; /* the machine's number; -1: large blocks */
	uint32_t flags;
	uint64_t reserved;
};

/* Words of a row of LIVE: the counters, room to the next multiple of 64 bytes. */
#define RING_ROW_WORDS ((COUNTER_COUNT + 7u) & ~7u)

/* What a history entry has of one pool.  Bytes are sums over the classes, object counts times size.
 */
struct ring_totals {
	uint64_t used_bytes;
	uint64_t capacity_bytes;
	uint64_t cached_bytes;
	uint64_t reserved[5];
	uint64_t counter[RING_ROW_WORDS];
};

struct ring_entry {
	uint64_t generation; /* its number, from 1; slot = number % count; 0: not to be read */
	uint64_t time_ms;
	uint64_t reserved[6];
	struct ring_totals pool[]; /* stride header.pool_stride */
};

struct ring_pin {
	uint64_t entry;	  /* being read; 0: none */
	uint64_t touched; /* in the first pin: not 0 once a reader maps the file.  Since minor 1. */
};

_Static_assert(sizeof(struct ring_section) == 24, "format");
_Static_assert(sizeof(union ring_head) == 8, "format; pointers are words");
_Static_assert(offsetof(struct ring_header, pid_namespace) == 32, "format");
_Static_assert(offsetof(struct ring_header, boot_id) == 72, "format");
_Static_assert(offsetof(struct ring_header, comm) == 112, "format");
_Static_assert(offsetof(struct ring_header, section_count) == 128, "format");
_Static_assert(offsetof(struct ring_header, sections) == 144, "format");
_Static_assert(offsetof(struct ring_header, base) == 336, "format");
_Static_assert(offsetof(struct ring_header, head) == 384, "format");
_Static_assert(offsetof(struct ring_header, observe_request) == 408, "format");
_Static_assert(sizeof(struct ring_header) == 448, "format");
_Static_assert(sizeof(struct ring_header) <= RING_HEADER_SIZE, "format");
_Static_assert(sizeof(struct ring_name) == 24, "format");
_Static_assert(sizeof(struct ring_class) == 8, "format");
_Static_assert(sizeof(struct ring_pool) == 16, "format");
_Static_assert(COUNTER_COUNT == 19 && RING_ROW_WORDS == 24,
	       "a counter more is a new minor version: mend RING_MINOR and this line");
_Static_assert(sizeof(struct ring_totals) == 256, "format");
_Static_assert(sizeof(struct ring_entry) == 64, "format");
_Static_assert(sizeof(struct ring_pin) == 16, "format");
_Static_assert(sizeof(struct ring_control) == 64, "format");

/* Words that two processes share: each access whole, in the order that barriers give. */
#define ring_load(p)	 __atomic_load_n(p, __ATOMIC_RELAXED)
#define ring_store(p, v) __atomic_store_n(p, v, __ATOMIC_RELAXED)
#ifdef __SANITIZE_THREAD__ /* which takes liburcu's volatile store for a race */
#define ring_publish(p, v) __atomic_store_n(&(p), v, __ATOMIC_RELEASE)
#else
#define ring_publish(p, v) rcu_assign_pointer(p, v)
#endif

#endif
