/* SPDX-License-Identifier: MIT */
#ifndef TESTS_VM_COMPANION_H
#define TESTS_VM_COMPANION_H

/*
 * `numaslab hints` beside a program of ours: started, told to end, its document read; and what the
 * kernel itself says of the same time, from /proc/vmstat and from a trace of mpol_misplaced.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

double seconds(void);

/* Waits until this process publishes. */
void await_publication(void);

/* What this process says that it observes; 0: nothing. */
uint64_t observed_request(void);

/* Starts it with these arguments (NULL at the end) and --json, waits until it counts. */
void companion_start(const char *const *args);
/* Ends it by SIGINT; its exit status. */
int companion_stop(void);
/* Its process, while it runs. */
pid_t companion_pid(void);

/* The document, after companion_stop(). */
const char *companion_json(void);
/* The number behind "key": at or behind `at` (NULL: the beginning); -1: there is none. */
long long json_number(const char *at, const char *key);
/* The text of the process with that number, and whether "key":WORD stands in it. */
const char *json_process(int pid);
bool json_has(const char *at, const char *key, const char *word);

/* A row of cells[] of a process. */
struct cell {
	char kind[16];
	long long size, home, node; /* -1: null */
	long long faults, local, remote, migrated;
};
/* The next one; *at NULL: the first of `process`.  False: no more. */
bool json_cell(const char *process, const char **at, struct cell *c);
/* A row of slabs[]. */
struct slab_row {
	unsigned long long address;
	long long generation, size, home, node, faults;
};
bool json_slab(const char *process, const char **at, struct slab_row *s);

/* The address of the next of samples[], and how many pages it stood for; 0: no more. */
uint64_t json_sample(const char *process, const char **at, long long *pages);

/* --- The kernel's own account. --- */

/* Every hint fault from here on; false: no tracing here. */
bool trace_start(void);
/* Calls see() for each: the thread, its CPU, the page's address. */
long trace_stop(void (*see)(int tid, int cpu, uint64_t address));

#endif
