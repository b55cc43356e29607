/* SPDX-License-Identifier: MIT */
/*
 * What `numaslab hints` knows: NUMA hint faults by process, home node and accessing node, size
 * class, slab and thread.  Collectors (one for each tier, hints_session.h) fill it, reports read
 * it; pure data, no system calls.  All counts are totals since the session began and never fall;
 * what a tier cannot know stays 0 and is named in its `unknown` text.
 *
 * What adds up, for each process: the counts of its cells = `total` = the sum of kind[] = the sum
 * of its points; those of slabs and threads are at most that (drops say how much they miss).
 * faults = local + remote + unjoined.
 */
#ifndef NUMASLAB_HINTS_H
#define NUMASLAB_HINTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HINTS_NODE_UNKNOWN (-1)
#define HINTS_CLASS_NONE   0xffffu /* not a slab */

/* How faults are seen, the best first; the ladder is tried from the top. */
enum hints_tier {
	HINTS_FENTRY,	  /* every hint fault, exact */
	HINTS_KPROBE,	  /* the same, by kprobes */
	HINTS_TRACEPOINT, /* page faults on slabs, an estimate; migrations by process, exact */
	HINTS_PERF,	  /* page faults on slabs, an estimate; no migrations by process */
	HINTS_PROC,	  /* no faults by process: the machine's counters, where pages lie */
	HINTS_TIERS
};

/* What was touched.  Slabs and large blocks are the heap, the rest is not. */
enum hints_kind {
	HINTS_SLAB,
	HINTS_LARGE,
	HINTS_STACK, /* the stack that the faulting thread ran on, or the main one */
	HINTS_FILE,  /* of a file, or shared */
	HINTS_OTHER, /* other private memory: of programs that do not publish, of other allocators
		      */
	HINTS_KINDS
};

struct hints_counts {
	uint64_t faults;
	uint64_t local, remote; /* the page was on the accessing CPU's node, was on another */
	uint64_t unjoined;	/* no outcome was seen: the kernel gave up on the page meanwhile */
	uint64_t pages;	   /* of the page size, that the faults stood for: 512 for a huge page */
	uint64_t migrated; /* pages that the kernel moved to the accessing node */
	uint64_t failed;   /* faults whose page should have moved and did not */
};

/*
 * One cell: home node x accessing node x kind x class.  Sums over cells give the matrix, the
 * classes, the kinds.  home: of slabs, where the slab landed (as the library's slab map says); of
 * all else, where the page was at the fault, HINTS_NODE_UNKNOWN if that was not seen.  local and
 * remote go by where the page was at the fault: a slab's page that the kernel has moved since is
 * local to its new node.
 */
struct hints_cell {
	enum hints_kind kind;
	uint16_t class;	     /* index; HINTS_CLASS_NONE */
	uint32_t block_size; /* bytes of a block of the class; 0: no slab */
	int home, from;
	struct hints_counts n;
};

/* A slab, one life of it: when its unit is born again, that is another one. */
struct hints_slab {
	uint64_t address; /* where it begins, in its process */
	uint32_t unit, slab_bytes, block_size;
	uint16_t generation, class;
	int home;
	int from;	      /* the node that most remote faults came from */
	uint64_t from_faults; /* remote faults from there */
	bool late;	      /* looked up after the fault: the generation may be a later one */
	struct hints_counts n;
};

/* A thread on one class (or kind) from one node. */
struct hints_thread {
	int tid;
	char comm[32]; /* safe to print; "": it has ended */
	enum hints_kind kind;
	uint16_t class;
	uint32_t block_size;
	int from;
	struct hints_counts n;
};

/* A sampled fault. */
struct hints_sample {
	uint64_t time_ms; /* CLOCK_MONOTONIC, as all times here */
	uint64_t address, ip;
	int tid, from;
	enum hints_kind kind;
	uint32_t block_size;
	uint32_t pages; /* that it stood for */
};

/* What was added since the point before.  local share = local / (local + remote). */
struct hints_point {
	uint64_t time_ms;
	struct hints_counts n;
};

enum hints_state {
	HINTS_LIVE,
	HINTS_EXITED,
	HINTS_REPLACED /* executed another program; that one is an entry of its own */
};

/* Observation, as asked by this session and as the process's header says. */
struct hints_observation {
	bool asked;	 /* by this session */
	uint32_t sample; /* 1 in so many; 0: nobody asks */
	uint32_t seeds; /* samples that were observed one after another, the present one included */
	uint32_t passes;   /* scan passes of the kernel over the present sample, whole ones */
	bool acknowledged; /* the process does what was asked */
	bool silent;	   /* it did not for 5 s: it is not allocating */
	uint32_t how;	   /* enum ring_observe */
	uint64_t observed_bytes;
	/* The cost of the session, of the machine: entries made inaccessible, hint faults, system
	 * time (of this process alone). */
	uint64_t pte_updates, hint_faults, system_ms;
};

/* Where pages lay when they were last looked at (tier proc). */
struct hints_residency {
	int node;
	uint64_t pages, heap_pages;
};

struct hints_process {
	int pid;	/* as we see it */
	uint64_t id;	/* of its telemetry file, as reader_id() says; 0: it does not publish */
	unsigned image; /* from 1: exec makes the next, an entry of its own */
	char comm[64];
	enum hints_state state;
	bool publishes;	       /* its heap is known; else all is "other" */
	char refusal[128];     /* why its telemetry file is not read; "": it is, or there is none */
	const char *placement; /* home, observe, kernel; "" if it does not publish */
	/* The heap takes no hint faults: its policy hides it from NUMA balancing. */
	bool masked;
	struct hints_observation observation;

	struct hints_counts total, kind[HINTS_KINDS];
	uint64_t resolve_failed; /* faults on the heap whose slab could not be read in time... */
	uint64_t resolve_late;	 /* ...of these, looked up afterwards */
	uint64_t damaged;	 /* words of its slab map that contradict themselves */
	uint64_t heap_bytes;	 /* held in slabs now, to set bytes affected against */

	size_t cell_count, slab_count, thread_count, sample_count, point_count, residency_count;
	struct hints_cell *cell;
	struct hints_slab *slab;
	struct hints_thread *thread;
	struct hints_sample *sample; /* the newest ones */
	struct hints_point *point;   /* by rising time */
	struct hints_residency *residency;
	struct hints_private *private; /* of hints_model.c */
};

/* What was lost, and where. */
struct hints_drops {
	uint64_t cells;	  /* faults that no cell had room for: missing from everything */
	uint64_t slabs;	  /* faults missing from the slabs */
	uint64_t threads; /* faults missing from the threads */
	uint64_t samples; /* sampled addresses that the ring buffer had no room for */
	uint64_t events;  /* faults that the kernel did not tell us about */
};

/* A row of /proc/vmstat while the session ran: surely at least low, at most high. */
struct hints_kernel_count {
	bool known;
	uint64_t low, high;
};

struct hints {
	enum hints_tier tier;
	const char *tier_name;		 /* as --tier takes it */
	const char *tier_unknown;	 /* what this tier cannot know, a sentence; "" if nothing */
	char tier_why[HINTS_TIERS][160]; /* why each better tier is not live; "": not tried */
	bool exact;    /* counts are hint faults, not an estimate from page faults */
	int balancing; /* kernel.numa_balancing; -1: not known */
	bool all;      /* all processes; else those named */
	uint32_t page_size;
	uint64_t start_ms, now_ms;
	struct hints_drops drops;
	struct hints_kernel_count faults, local,
	    migrated;		   /* numa_hint_faults, _local, numa_pages_migrated */
	struct hints_counts total; /* of all processes */
	uint64_t task_moves;	   /* threads that balancing moved to another node */
	size_t node_count;
	int *node; /* the machine's node numbers */
	size_t process_count, point_count;
	struct hints_process *process; /* most remote faults first */
	struct hints_point *point;     /* of all processes together */
};

/*
 * --- Filling (hints_model.c).  A collector clears what it fills anew, gets the rows of its keys,
 * which are made empty when they are new, adds to their counts, and settles.  NULL, false: no
 * memory.  A row is good until the next one of its kind is got.
 */
struct hints_process *hints_process_get(struct hints *h, int pid, unsigned image);
/* Rows of all processes but samples, points and residency. */
void hints_clear(struct hints *h);
struct hints_cell *hints_cell_get(struct hints_process *p, enum hints_kind kind, uint16_t class,
				  int home, int from);
/* The same slab from each accessing node: from and from_faults are the caller's to keep. */
struct hints_slab *hints_slab_get(struct hints_process *p, uint32_t unit, uint16_t generation,
				  uint16_t class);
struct hints_thread *hints_thread_get(struct hints_process *p, int tid, enum hints_kind kind,
				      uint16_t class, int from);
bool hints_sample_add(struct hints_process *p, const struct hints_sample *sample);
void hints_counts_add(struct hints_counts *to, const struct hints_counts *n);
void hints_counts_take(struct hints_counts *from, const struct hints_counts *n); /* not below 0 */
/* Sums totals and kinds from the cells, appends points for what is new, sorts. */
bool hints_settle(struct hints *h, uint64_t now_ms);
void hints_free(struct hints *h);

/* --- Asking. --- */

/* The sum of the cells of a process (NULL: of all) that match; -2: any node, HINTS_KINDS: any kind
 * of the heap (slabs and large blocks), HINTS_CLASS_NONE: any class. */
#define HINTS_ANY (-2)
void hints_sum(const struct hints *h, const struct hints_process *p, enum hints_kind kind,
	       uint16_t class, int home, int from, struct hints_counts *out);

/* A size class of one process, or of all. */
struct hints_class {
	uint16_t class;
	uint32_t block_size;
	int home, from;		 /* the pair with most remote faults */
	uint64_t from_faults;	 /* its remote faults */
	uint64_t slabs;		 /* that had remote faults */
	uint64_t affected_bytes; /* of these slabs */
	struct hints_counts n;
};
/* The classes by remote faults, at most max; how many. */
size_t hints_classes(const struct hints *h, const struct hints_process *p, struct hints_class *out,
		     size_t max);

/* Slabs and threads by remote faults, at most max; how many. */
size_t hints_slabs(const struct hints_process *p, const struct hints_slab **out, size_t max);
size_t hints_threads(const struct hints_process *p, const struct hints_thread **out, size_t max);

/* local / (local + remote); -1: neither was seen. */
double hints_local_share(const struct hints_counts *n);

/* --- Reports. --- */

#include <stdio.h>

void hints_text(FILE *out, const struct hints *h);
/* Its parts: what is said of the session, and of one process (begins with an empty line). */
void hints_text_session(FILE *out, const struct hints *h);
void hints_text_process(FILE *out, const struct hints *h, const struct hints_process *p);
/* What the last poll added, in a line. */
void hints_line(FILE *out, const struct hints *h);
void hints_json(FILE *out, const struct hints *h);
#define HINTS_ADVICE_SIZE 1024
/* Advice about a process, in a sentence or two, computed from what was counted; returns buf. */
char *hints_advice(const struct hints *h, const struct hints_process *p, char *buf, size_t size);

#endif
