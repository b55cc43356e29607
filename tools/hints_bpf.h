/* SPDX-License-Identifier: MIT */
/* What the eBPF programs of hints.bpf.c and their loader share: keys and values of the maps. */
#ifndef NUMASLAB_HINTS_BPF_H
#define NUMASLAB_HINTS_BPF_H

#include "tools/hints_decode.h"

/* A process that is followed.  Images are counted by the kernel: exec makes the next. */
struct hints_watched {
	uint32_t image;
	uint32_t exited;
};

/* The slab map of one image of it; of no use for another. */
struct hints_target {
	struct hints_geometry geometry;
	uint32_t image;
	uint32_t unused;
	int16_t node[256]; /* of the pools; -1: there is no such pool */
};

enum hints_raw_kind { /* as enum hints_kind, and what is not known yet */
		      RAW_SLAB,
		      RAW_LARGE,
		      RAW_STACK,
		      RAW_FILE,
		      RAW_OTHER,
		      RAW_FREE,	  /* of the heap, no slab at that time */
		      RAW_UNREAD, /* of the heap, its word could not be read; in the table of slabs
				     alone */
		      RAW_DAMAGED
};

/* As struct hints_counts. */
struct hints_raw {
	uint64_t faults, local, remote, unjoined, pages, migrated, failed;
};

/* home: of slabs, where they landed; else where the page was; -1: not known. */
struct hints_cell_key {
	uint32_t tgid, image;
	uint16_t class, from;
	int16_t home;
	uint16_t kind; /* enum hints_raw_kind */
};

struct hints_slab_key {
	uint32_t tgid, image, unit;
	uint16_t generation, class, from;
	int16_t home;
	uint32_t kind; /* RAW_SLAB, RAW_UNREAD */
};

struct hints_thread_key {
	uint32_t tgid, image, tid;
	uint16_t class, from;
	uint32_t kind;
};

struct hints_thread_value {
	struct hints_raw n;
	char comm[16]; /* at its first fault; it may have ended since */
};

/* Between mpol_misplaced and task_numa_fault of one task. */
struct hints_pending {
	struct hints_cell_key cell;
	struct hints_slab_key slab;
	uint64_t address, ip;
	uint64_t page_flags; /* struct page; 0: not read */
	uint32_t tid;
	uint32_t counted; /* tracepoint tier: the fault was added already */
};

/* One to a CPU. */
struct hints_stats {
	uint64_t begun; /* faults that the first probe saw and that are ours to count */
	uint64_t lost_cells, lost_slabs, lost_threads, lost_samples;
	uint64_t moves; /* tasks that balancing moved to another node */
};

struct hints_event {
	uint64_t time_ns, address, ip;
	uint32_t tgid, image, tid;
	uint16_t class, from;
	uint32_t kind, pages;
};

/* What the loader finds out about the kernel (hints_kernel.c) and the session. */
struct hints_config {
	uint64_t ns_dev, ns_ino; /* 0: pids are those of the first namespace */
	uint32_t all;		 /* processes that are not watched, too */
	uint32_t has_vmf;	 /* mpol_misplaced's second argument is a struct vm_fault */
	uint32_t reason_numa;	 /* MR_NUMA_MISPLACED of the tracepoint mm_migrate_pages */
	uint32_t unused;
	uint32_t sample_every; /* one fault in so many of a CPU is sampled, and each on a huge page;
				  0: none */
	uint32_t huge_shift;   /* of a huge page */
};

#endif
