/* SPDX-License-Identifier: MIT */
/* The nodes of a machine: memory, CPUs, distances; from libnuma, or from a tree like /sys. */
#ifndef NUMASLAB_MACHINE_H
#define NUMASLAB_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MACHINE_NODES 1024 /* node numbers are below it, as in the kernel */

struct node {
	int id;
	uint64_t memory, free;		   /* bytes */
	bool has_memory, has_cpu, allowed; /* allowed: in this process's mems_allowed */
	char cpus[128];			   /* as 0-3,8; cut with "..." where that is too long */
};

struct machine {
	size_t count; /* online nodes, by rising number, gaps left out */
	struct node *nodes;
	int *distances;	    /* [from * count + to], 0 where it is unknown */
	const char *source; /* "libnuma" or "sysfs" */
};

/*
 * From root/sys/devices/system/node and root/proc/self/status; without a node directory (no
 * NUMA in the kernel, no /sys) one node 0 with what root/proc/meminfo says.  False: no memory
 * to hold the answer.  Free with machine_free.
 */
bool machine_read_sysfs(struct machine *m, const char *root);

/*
 * From libnuma; false if it is not built in, not installed, or says that the system has no NUMA
 * interface.  Not to be called under a seccomp filter, which may kill for libnuma's calls.
 */
bool machine_read_libnuma(struct machine *m);

void machine_free(struct machine *m);

static inline bool node_is_empty(const struct node *n)
{
	return !n->has_memory || !n->allowed;
}

int machine_distance(const struct machine *m, size_t from, size_t to);

/* The nearest usable node to a node, or -1; indexes into nodes[]. */
int machine_nearest(const struct machine *m, size_t from);

/* Why a node is left out of the tables, in words. */
void node_reason(const struct machine *m, size_t index, char *buf, size_t size);

/* Calls see(number, data) for each number of a list such as 0,3-5; false if it is malformed. */
bool list_each(const char *list, int below, void (*see)(int number, void *data), void *data);

/* Reads root/path into buf, without the final newline; false if it cannot be read. */
bool read_text(const char *root, const char *path, char *buf, size_t size);
/* The first number in root/path, or -1. */
long long read_number(const char *root, const char *path);
/* The rest of the line of text behind `key`, or NULL. */
const char *text_field(const char *text, const char *key, char *buf, size_t size);

#endif
