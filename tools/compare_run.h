/* SPDX-License-Identifier: MIT */
/* numaslab compare: one run of the command, measured. */
#ifndef NUMASLAB_TOOLS_COMPARE_RUN_H
#define NUMASLAB_TOOLS_COMPARE_RUN_H

#include <limits.h>
#include <regex.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/compare_cgroup.h"
#include "tools/compare_judge.h"

/* One of the two allocators. */
struct cmp_allocator {
	char name[64];		/* "glibc", "numaslab", "jemalloc", … */
	char library[PATH_MAX]; /* empty: the C library's own */
	bool is_numaslab;	/* some build of it */
};

/* Fills an allocator from "glibc", a known name, a soname, a path or NAME=PATH; checks in a child
 * that the dynamic loader accepts it.  NULL, or what is wrong (valid until the next call). */
const char *cmp_allocator_find(struct cmp_allocator *a, const char *text);

/* What all runs have in common. */
struct cmp_command {
	char *const *argv;
	const char *path; /* of argv[0], as found */
	int launcher;	  /* descriptor of the small program that starts it, or -1 */
	cpu_set_t *cpus;  /* NULL: as inherited */
	size_t cpus_size;
	double timeout; /* seconds; 0: none */
	bool nodes;	/* sample placement */
	struct cmp_cgroup cgroup;
	regex_t figure[CMP_FIGURES];
	size_t figures;
	size_t pad; /* both environments are padded to what the larger LD_PRELOAD takes */
};

#define CMP_OUTPUT_MAX (64U << 20)

/* What the command wrote: all of it counted and hashed (FNV-1a), the beginning kept. */
struct cmp_output {
	char *data;
	size_t len, room;
	uint64_t total, hash;
};

struct cmp_outcome {
	struct cmp_output out, err;
	int spawn_errno; /* the command could not be started */
	int signal;	 /* that ended it, else 0 */
	bool core, timed_out;
	size_t
	    no_figure; /* the first one (from 1) that the output does not hold; 0: all are there */
	int interrupted; /* a signal to us: nothing was measured, all is cleaned up */
};

/* Blocks the signals that runs wait for, and becomes the reaper.  Once, before the first run. */
bool cmp_run_init(void);
/* Unblocks them; if `signal` is not 0, dies of it. */
void cmp_run_finish(int signal);

/* Runs the command once under `a`; fills s->v and s->status.  False: `o` says why there is no
 * measurement.  The outcome is freed by cmp_outcome_free in any case. */
bool cmp_run(struct cmp_command *c, const struct cmp_allocator *a, struct cmp_sample *s,
	     struct cmp_outcome *o);
void cmp_outcome_free(struct cmp_outcome *o);

/* A command that has been started. */
struct cmp_spawned {
	pid_t pid, group;    /* the command; its process group, whose leader the launcher was */
	int out, err, start; /* pipe ends; start brought the launcher's records */
	double began;	     /* CLOCK_MONOTONIC, right before its exec */
};

/* Starts the command with this signal mask.  False: *error tells why; r holds what is to be closed
 * and reaped all the same. */
bool cmp_spawn(struct cmp_spawned *r, struct cmp_command *c, const struct cmp_allocator *a,
	       const sigset_t *mask, int *error);

/* A descriptor of the launcher's image; -1: the command is started directly. */
int cmp_launcher_open(void);

/* LD_PRELOAD for `a` in this environment; returns the bytes that it takes there. */
size_t cmp_run_preload(const struct cmp_allocator *a, char *text, size_t size);

/* Pure: the last number that the expression matches in text (its first group, if it has one). */
bool cmp_figure_find(const regex_t *re, const char *text, double *value);
/* Pure: LD_PRELOAD for `library` in front of `present` (may be NULL), leaving out any
 * libnumaslab.so already there; empty if nothing is left. */
void cmp_preload_text(char *buf, size_t size, const char *library, const char *present);

#endif
