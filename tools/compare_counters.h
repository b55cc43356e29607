/* SPDX-License-Identifier: MIT */
/* numaslab compare: numaslab's own counters, from the files that its processes publish. */
#ifndef NUMASLAB_TOOLS_COMPARE_COUNTERS_H
#define NUMASLAB_TOOLS_COMPARE_COUNTERS_H

#include <stdbool.h>
#include <sys/types.h>
#include <time.h>

/* Of one run.  A process publishes after a second or 16 MiB (NUMASLAB_PUBLISH_AFTER_MS), so that
 * short ones are not seen. */
struct cmp_counters;

struct cmp_counters *cmp_counters_begin(void);

/* While sampling: this process belongs to the tree.  Its file is opened when there is one, and
 * stays readable after its end. */
void cmp_counters_see(struct cmp_counters *c, pid_t pid);

/* Reads what is known of all processes, which is one sample; false if none has published yet. */
bool cmp_counters_sample(struct cmp_counters *c);

/* Removes the files of a process that did not end by itself but was ended by us: nobody will look
 * for the reason of its death.  Only those made since `since` (time(2)). */
void cmp_counters_forget(pid_t pid, time_t since);

/* Reads all a last time and frees; fills v[CMP_M_FRAGMENTATION], when the heaps held most, and
 * v[CMP_M_LADDER_...], of the whole run; leaves them alone if no process has published. */
void cmp_counters_end(struct cmp_counters *c, double *v);

#endif
