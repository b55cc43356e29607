/* SPDX-License-Identifier: MIT */
#ifndef NUMASLAB_TOPOLOGY_H
#define NUMASLAB_TOPOLOGY_H

/*
 * The nodes as the allocator uses them.  A node *number* is the machine's; a node *index* counts
 * the nodes that have memory and that this process may use, 0..count-1.  Node numbers without an
 * index (no memory, not allowed, unknown) have a home: the nearest node with one.
 */

#include "allocator/os.h"
#include "allocator/tunables.h"

#define NODE_MAX 128u /* indexes; further nodes have the nearest of these as home */
#define SIM_CPUS 1024u

struct topology {
	unsigned count;
	bool guarded;	/* more than one node: malloc compares where it runs */
	bool simulated;
	bool silent;	/* seccomp: no question about placement is asked */
	bool follow;	/* numactl gave the task a policy, and it wins */
	bool where_unknown; /* no rseq: each slow call asks where it runs */
	int16_t number[NODE_MAX];
	uint8_t home[OS_NODE_BITS];	  /* node number -> index */
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

/* --- Pure parts, for the tests. --- */

struct topology_text {
	unsigned count;			 /* nodes described, with or without memory */
	int16_t number[NODE_MAX];
	uint64_t memory[NODE_MAX];	 /* bytes; 0: none */
	int16_t cpu_node[SIM_CPUS];	 /* cpu -> position in number[], -1: not described */
	uint8_t distance[NODE_MAX][NODE_MAX]; /* by position */
};

/* "0:1G@0;1:1G@1,4-7;2:2G;dist=0:2:30,0:3:40"; false: malformed. */
bool topology_parse(const char *text, struct topology_text *out);

/* A kernel list as "0-3,8"; sets bits below `bits`; false: malformed. */
bool topology_parse_list(const char *text, size_t n, uint64_t *mask, unsigned bits);

#endif
