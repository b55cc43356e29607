/* SPDX-License-Identifier: MIT */
/*
 * Reads what processes publish (telemetry/ring.h has the format).  A library of its own: it prints
 * nothing and trusts nothing.  Whatever a file says, results are within the bounds named here; a
 * file that is cut while it is read is an error, not a signal.  Not for signal handlers; one
 * reader is for one thread at a time.
 */
#ifndef NUMASLAB_READER_H
#define NUMASLAB_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "telemetry/counters.h"

#define READER_POOLS_MAX   1025u
#define READER_CLASSES_MAX 1024u
#define READER_WHY_SIZE	   256

enum reader_result {
	READER_OK,
	READER_ABSENT,	/* no such file */
	READER_DENIED,	/* not permitted */
	READER_VERSION, /* a format of another major version */
	READER_DAMAGED, /* not such a file, cut, or it contradicts itself */
	READER_FAILED	/* no memory, no descriptor: ours, not the file's fault */
};

struct reader_info {
	int pid; /* in its own pid namespace */
	uint32_t uid, generation, minor;
	uint64_t pid_namespace, start_ticks, publish_ms;
	uint32_t tick_ms;
	char comm[64];		       /* safe to print */
	const char *placement;	       /* home, observe, kernel, or "unknown" */
	bool simulated;		       /* the nodes are invented */
	bool has_pins;		       /* this reader can hold entries of the history */
	unsigned pools, classes;       /* pools: the nodes, and the large blocks */
	uint64_t bytes, inode, device; /* on disk */
};

/* Sums of a pool, or one class of one. */
struct reader_counts {
	uint64_t counter[COUNTER_COUNT];
	uint64_t used_bytes, capacity_bytes, cached_bytes;
	uint64_t asked_bytes; /* of what is out, estimated; snapshots only */
};

struct reader_pool {
	int node; /* its number; -1: the large blocks */
	struct reader_counts sum;
};

/*
 * All live counters at one time.  In every snapshot used <= slots, nothing is negative and sums
 * over the classes are the pool's: where a transition was caught between two of its stores (the
 * row did not hold still), what contradicts is cut.
 */
struct reader_snapshot {
	uint64_t now_ms, last_ms; /* CLOCK_MONOTONIC; the writer's last tick */
	bool live;
	unsigned pools, classes;
	struct reader_pool *pool;    /* [pools] */
	uint32_t *class_size;	     /* [classes]; 0: no class */
	struct reader_counts *count; /* [pool * classes + class] */
};

/* One entry of the history. */
struct reader_point {
	uint64_t entry, time_ms;
	struct reader_pool *pool; /* [pools] */
};

struct reader_history {
	unsigned pools;
	size_t count;
	struct reader_point *point; /* by rising time */
	size_t overtaken;	    /* entries that were rewritten under our eyes */
};

struct reader;

/* Opens and validates; on failure *why says what is wrong, without control characters. */
enum reader_result reader_open(struct reader **out, const char *path, char why[READER_WHY_SIZE]);
void reader_close(struct reader *r);

const struct reader_info *reader_info(const struct reader *r);

/* Of the file: the same however and whenever it is opened, no other's; never 0. */
uint64_t reader_id(const struct reader_info *info);

/* Whether the process still maps the file: told by its lock, not by its pid. */
bool reader_is_live(const struct reader *r);

/* Fills s (zeros, or from an earlier call: memory is used again); READER_DAMAGED: it was cut. */
enum reader_result reader_snapshot(struct reader *r, struct reader_snapshot *s);
void reader_snapshot_free(struct reader_snapshot *s);

/* The newest `max` entries after number `after`, oldest first; as reader_snapshot. */
enum reader_result reader_history(struct reader *r, uint64_t after, size_t max,
				  struct reader_history *h);
void reader_history_free(struct reader_history *h);

/* --- The slab map (reader_slabs.c). --- */

enum reader_unit_state { /* as enum ring_map_state */
			 READER_UNIT_FREE,
			 READER_UNIT_ACTIVE,
			 READER_UNIT_PARTIAL,
			 READER_UNIT_FULL,
			 READER_UNIT_EMPTY,
			 READER_UNIT_LARGE = 6,
			 READER_UNIT_STATES
};

/* A slab, a run of free units of one kind, or a large block. */
struct reader_unit {
	uint32_t unit, units; /* from 0, of 64 KiB, in address space from .base on */
	uint16_t used;	      /* objects; at most as many as the slab has room for */
	uint16_t generation;  /* of the slab in this place */
	uint16_t pool;	      /* where it landed; free units: of whose window they are */
	uint8_t cls;
	uint8_t state : 7, misplaced : 1;
};

/* Of a pool: slabs by state, free units by kind, large blocks. */
struct reader_map_sum {
	uint64_t state[READER_UNIT_STATES];
	uint64_t used, misplaced, large_units;
};

#define READER_UNITS_MAX   ((size_t)1 << 22) /* 256 GiB of slabs of one unit */
#define READER_MAP_CLASSES 256

/*
 * All slabs by rising address.  Free units that were never used are not among them.  Of a process
 * at rest it is exact; words caught in a transition, and those of a damaged file, may contradict
 * their neighbours: they are left out and counted.
 */
struct reader_map {
	bool there; /* false: the process has none (an older library, no room for it) */
	uint64_t base;
	uint64_t lost;	   /* stretches of 32 MiB that there was no room or memory to map */
	uint64_t odd;	   /* words, or pages, that were left out */
	uint64_t left_out; /* beyond READER_UNITS_MAX; they are in the sums */
	size_t count, room;
	struct reader_unit *unit; /* [count] */
	unsigned pools;
	struct reader_map_sum *pool;	    /* [pools] */
	uint32_t size[READER_MAP_CLASSES];  /* of a block of the class */
	uint16_t slots[READER_MAP_CLASSES]; /* blocks of a slab of it; 0: no class */
};

/* As reader_snapshot. */
enum reader_result reader_map(struct reader *r, struct reader_map *m);
void reader_map_free(struct reader_map *m);

uint64_t reader_now_ms(void);

/* 1 - used/held in bytes, 0 when nothing is held; large blocks: 0. */
double reader_fragmentation(const struct reader_counts *c);

/* Of the pool of the large blocks; the block kept aside for the next call is not out. */
struct reader_large {
	uint64_t count, bytes, kept_bytes, released_bytes;
};

struct reader_large reader_large(const struct reader_counts *c);

/* --- Finding files (reader_find.c). --- */

struct reader_files {
	size_t count;
	char **path;
	bool denied; /* some directory could not be read */
};

/*
 * The files in NUMASLAB_DIR if it is set, else in every user's directory that we may read.
 * False: no memory.  Directories that are links, or not their user's, are passed over.
 */
bool reader_find_all(struct reader_files *files);

/* The file that process pid maps, from /proc/PID/maps, through its own root; false: none. */
bool reader_find_pid(struct reader_files *files, int pid);
void reader_files_free(struct reader_files *files);

/* Inode of our pid namespace; 0: not known. */
uint64_t reader_pid_namespace(void);

/* Removes this user's files whose process is gone; how many. */
size_t reader_remove_dead(void);

#endif
