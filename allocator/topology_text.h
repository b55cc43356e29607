/* SPDX-License-Identifier: MIT */
#ifndef NUMASLAB_TOPOLOGY_TEXT_H
#define NUMASLAB_TOPOLOGY_TEXT_H

/* Descriptions of machines as text: NUMASLAB_TOPOLOGY, and the kernel's lists.  Pure. */

#include "allocator/base.h"

#define NODE_MAX     128u /* nodes that are told apart; others have the nearest of these as home */
#define NODE_NUMBERS 1024u
#define SIM_CPUS     1024u

struct topology_text {
	unsigned count; /* nodes described, with or without memory */
	int16_t number[NODE_MAX];
	uint64_t memory[NODE_MAX];	      /* bytes; 0: none */
	int16_t cpu_node[SIM_CPUS];	      /* cpu -> position in number[], -1: not described */
	uint8_t distance[NODE_MAX][NODE_MAX]; /* by position */
};

/* "0:1G@0;1:1G@1,4-7;2:2G;dist=0:2:30,0:3:40"; false: malformed. */
bool topology_parse(const char *text, struct topology_text *out);

/* A kernel list as "0-3,8"; sets bits below `bits`; false: malformed. */
bool topology_parse_list(const char *text, size_t n, uint64_t *mask, unsigned bits);

/* Digits at *at, which moves behind them; -1 if there are none or the number exceeds max. */
int64_t text_number(const char **at, const char *end, int64_t max);

/* Where the node number stands in number[]; -1: it is not described. */
int topology_position(const struct topology_text *t, int64_t number);
void topology_describe_nothing(struct topology_text *out);

#endif
