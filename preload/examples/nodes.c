/* SPDX-License-Identifier: MIT */
/*
 * The API of numaslab, used where it is there: one binary, with the library and without it.
 *
 *	cc nodes.c -o nodes $(pkg-config --cflags numaslab)
 *	./nodes                                  plain malloc
 *	numaslab run -- ./nodes                  with the library
 *
 * With $(pkg-config --cflags --libs numaslab) it is linked to the library and always has it.
 */
#include <numaslab.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NODES_MAX 64
#define RECORDS	  10000
#define RECORD	  128

/* A block of memory on the node, or wherever malloc has it. */
static void *record_new(int node)
{
	void *record =
	    numaslab_malloc_node ? numaslab_malloc_node(RECORD, node, 0) : malloc(RECORD);

	if (record)
		memset(record, 0, RECORD);
	return record;
}

/* Takes records for a node and counts those that lie on it; frees them as any other memory. */
static int records_try(int node)
{
	static void *record[RECORDS];
	int there = 0;

	for (int i = 0; i < RECORDS; i++) {
		record[i] = record_new(node);
		if (record[i] && numaslab_node_of && numaslab_node_of(record[i]) == node)
			there++;
	}
	for (int i = 0; i < RECORDS; i++)
		free(record[i]);
	return there;
}

int main(void)
{
	struct numaslab_node_stats stats[NODES_MAX];
	int count;

	if (!numaslab_stats) {
		records_try(-1);
		puts("without libnumaslab.so: plain malloc; try 'numaslab run -- ./nodes'");
		return 0;
	}
	count = numaslab_stats(stats, NODES_MAX);
	for (int i = 0; i < count && i < NODES_MAX; i++)
		if (stats[i].node >= 0)
			printf("node %d: %d of %d records on it\n", stats[i].node,
			       records_try(stats[i].node), RECORDS);
	count = numaslab_stats(stats, NODES_MAX);
	for (int i = 0; i < count && i < NODES_MAX; i++) {
		const struct numaslab_node_stats *s = &stats[i];

		if (s->node >= 0)
			printf("node %d: %llu slabs hold %llu KiB; refills: own %llu, new %llu\n",
			       s->node, (unsigned long long)s->slabs,
			       (unsigned long long)s->held_bytes >> 10,
			       (unsigned long long)s->refill[NUMASLAB_OWN],
			       (unsigned long long)s->refill[NUMASLAB_NODE_NEW]);
		else
			printf("large blocks: %llu of %llu KiB\n",
			       (unsigned long long)s->large_count,
			       (unsigned long long)s->large_bytes >> 10);
	}
	return 0;
}
