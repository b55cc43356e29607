/* SPDX-License-Identifier: MIT */
/* numaslab compare: exact peak memory of a tree from a cgroup (version 2, kernel 5.19 or newer). */
#ifndef NUMASLAB_TOOLS_COMPARE_CGROUP_H
#define NUMASLAB_TOOLS_COMPARE_CGROUP_H

#include <limits.h>
#include <stdbool.h>

struct cmp_cgroup {
	char parent[PATH_MAX]; /* where groups can be made; empty: nowhere */
	char path[PATH_MAX];   /* the present run's group; empty: none */
};

/* Looks for a place below `mount` (/sys/fs/cgroup) where this user may make a group with a
 * memory.peak and move processes into it: below our own group, else beside it.  `self` is the text
 * of /proc/self/cgroup.  False: there is none, and why is told in *why. */
bool cmp_cgroup_open(struct cmp_cgroup *cg, const char *mount, const char *self, const char **why);

/* A fresh group for one run. */
bool cmp_cgroup_begin(struct cmp_cgroup *cg);
/* In the child, before exec: from here on its memory is charged to the group. */
bool cmp_cgroup_enter(const struct cmp_cgroup *cg);
/* The peak in bytes, or NAN; kills what is left in the group and removes it. */
double cmp_cgroup_end(struct cmp_cgroup *cg);

/* Pure: the version 2 path in the text of /proc/self/cgroup; false if there is none. */
bool cmp_cgroup_own(const char *self, char *out, unsigned long size);

#endif
