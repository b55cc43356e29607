/* SPDX-License-Identifier: MIT */
/* What doctor gathers about a machine and this process, before anything is judged. */
#ifndef NUMASLAB_FACTS_H
#define NUMASLAB_FACTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include "tools/library.h"
#include "tools/machine.h"

/* The answer of a tried system call: 0, an errno, or one of these. */
#define PROBE_SKIPPED (-1) /* not this machine (another root) */
#define PROBE_KILLED  (-2) /* the caller was killed for it (seccomp) */

/* Where a file or a number is missing, numbers are -1 and texts "". */
struct facts {
	const char *root; /* in front of /sys, /proc and /dev; "" for the running machine */
	char *const *envp;
	char release[65], arch[65];
	long page;
	unsigned uid;

	struct machine machine;
	char mems_allowed[256];
	char cgroup[256]; /* this process's, below /sys/fs/cgroup */
	char cpuset_file[64];

	unsigned long rseq_feature_size; /* AT_RSEQ_FEATURE_SIZE; 0 before Linux 6.3 */
	unsigned rseq_size;		 /* what the C library registered; 0 if it did not */
	int mbind, get_mempolicy, move_pages, populate;
	int policy; /* of this task, MPOL_*; -1 if it is not known */

	char thp[64]; /* the chosen word */
	long long huge_total, huge_free, huge_kb;
	long long balancing, overcommit, max_map_count;

	bool shm_exists, shm_writable;
	uint64_t shm_size, shm_free; /* bytes; 0 0 where another root is looked at */
	int shm_owner;		     /* of the directory of this user's files; -1: none yet */
	char shm_dir[320];

	bool btf;
	bool caps_known;
	uint64_t caps; /* effective */
	int seccomp;   /* 0 none, 1 strict, 2 filter, -1 unknown */

	struct rlimit limit_as, limit_data, limit_fsize, limit_memlock, limit_nofile;

	bool library_found;
	struct library library;
};

/* root "" looks at the running machine and tries the system calls; false: no memory. */
bool facts_gather(struct facts *f, const char *root, char *const *envp);
void facts_free(struct facts *f);

/* Tries the four calls, each in a child, because a filter may kill the caller. */
void facts_probe(struct facts *f);

const char *facts_variable(const struct facts *f, const char *name);

#endif
