/* SPDX-License-Identifier: MIT */
#ifndef NUMASLAB_TOPOLOGY_H
#define NUMASLAB_TOPOLOGY_H

/*
 * The nodes as the allocator uses them.  A node *number* is the machine's; a node *index* counts
 * the nodes that have memory and that this process may use, 0..count-1.  Node numbers without an
 * index (no memory, not allowed, unknown) have a home: the nearest node with one.
 */

#include "allocator/os.h"
#include "allocator/topology_text.h"
#include "allocator/tunables.h"

struct topology {
	unsigned count;
	bool guarded; /* more than one node: malloc compares where it runs */
	bool simulated;
	_Atomic bool filtered; /* a seccomp filter was, or is about to be, installed since start */
	_Atomic bool silent;   /* seccomp: no question about placement is asked */
	bool follow;	       /* numactl gave the task a policy, and it wins */
	bool where_unknown;    /* no rseq: each slow call asks where it runs */
	int16_t number[NODE_MAX];
	uint8_t home[OS_NODE_BITS];	   /* node number -> index */
	uint8_t order[NODE_MAX][NODE_MAX]; /* order[i][0] = i, then by distance */
};

extern hidden_ struct topology topology;

/* The machine's nodes, or the simulated ones of `text` ("" or malformed: the machine's). */
void topology_init(const char *text);

/* The node number where a thread "on" cpu runs, simulated topologies only; -1: no such CPU. */
int topology_sim_node(int cpu);

/* The described CPU that a real one stands for. */
int topology_sim_cpu(unsigned real_cpu);

/* The index where the caller's memory belongs.  One system call (or none: one node). */
unsigned topology_here(void);

/* What the node has and what of it is free, bytes; false: the system does not say. */
bool topology_memory(unsigned index, uint64_t *total, uint64_t *free);

#endif
