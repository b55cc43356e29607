/* SPDX-License-Identifier: MIT */
#ifndef TESTS_VM_GUEST_H
#define TESTS_VM_GUEST_H

/*
 * What the guest programs share.  Where memory lies is asked of the kernel by raw move_pages calls;
 * nothing here calls malloc, so that it disturbs no measurement.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "preload/numaslab.h"

#define GUEST_NODES 64
#define GUEST_PAGE  4096ul

/* First thing in main: unbuffered output, killable when memory runs out. */
void guest_start(void);

/* One TAP result (printf-like name); returns cond. */
bool check(bool cond, const char *name, ...) __attribute__((format(printf, 2, 3)));
/* A comment line. */
void note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* A result that cannot be had: "not ok" and exit 1. */
void die(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));

/* Zeroed memory that is no allocator's, populated, on node if it has room there (-1: anywhere). */
void *map_pages(size_t bytes, int node);

int node_count(void);	   /* highest node + 1 */
int node_of_cpu(int cpu);  /* -1: no such cpu */
int cpu_of_node(int node); /* its first CPU, -1: none */
bool node_has_memory(int node);
void pin_cpu(int cpu);			   /* the calling thread */
long node_kb(int node, const char *field); /* a line of the node's meminfo, e.g. "MemFree" */
long vmstat(const char *name);		   /* a line of /proc/vmstat, -1: no such line */
long status_kb(const char *field);	   /* a line of /proc/self/status, e.g. "RssAnon" */

/* Pseudo-random numbers, repeatable. */
uint64_t next_random(uint64_t *state);

/*
 * node[i] = the node of addr[i]'s page, or -errno (-ENOENT: not there).  A page that NUMA balancing
 * has made inaccessible also answers -ENOENT; it is read once and asked again.
 */
void landing(void *const *addr, size_t count, int *node);
/* The same for one address. */
int landing_of(const void *addr);
/* Starts the process that asks for landing() on our behalf, for when a filter forbids it to us. */
void probe_start(void);

/* objects[i] counted by node; [GUEST_NODES] counts those not on any. */
struct tally {
	uint64_t on[GUEST_NODES + 1];
	uint64_t total;
	uint64_t disagree; /* numaslab_node_of says another node than the kernel */
};
void tally_objects(struct tally *t, void *const *objects, size_t count);
double tally_share(const struct tally *t, int node); /* per cent on node */
void tally_note(const struct tally *t, const char *what);

#endif
