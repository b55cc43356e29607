/* SPDX-License-Identifier: MIT */
#include "allocator/allocator.h"

bool alloc_node_is_valid(int node)
{
	if (node == -1)
		return true;
	if (node < 0 || node >= (int)OS_NODE_BITS || !alloc_boot())
		return false;
	return topology.number[topology.home[node]] == node;
}

int alloc_node_of(const void *p)
{
	uintptr_t addr = (uintptr_t)p;

	if (!layout_owns(&layout, addr))
		return -1;
	const struct slab *s = slab_head(addr);

	if (s->state == SPAN_SLAB)
		return topology.number[s->node];
	if (s->state != SPAN_LARGE || topology.silent)
		return -1;
	if (topology.count == 1)
		return topology.number[0];
	int node = os_page_node(p);

	return node < 0 ? -1 : node;
}

static uint64_t get(unsigned index, unsigned cls, enum counter c)
{
	return atomic_load_explicit(&pools[index].count[cls][c], memory_order_relaxed);
}

static void stats_of_node(unsigned index, struct numaslab_node_stats *to)
{
	*to = (struct numaslab_node_stats){.node = topology.number[index]};
	for (unsigned cls = 0; cls < CLASS_COUNT; cls++) {
		uint64_t size = cls ? class_size(cls) : 0;

		to->active += get(index, cls, COUNT_active);
		to->partial += get(index, cls, COUNT_partial);
		to->full += get(index, cls, COUNT_full);
		to->empty += get(index, cls, COUNT_empty);
		to->objects += get(index, cls, COUNT_used);
		to->slots += get(index, cls, COUNT_slots);
		to->capacity_bytes += get(index, cls, COUNT_slots) * size;
		to->used_bytes += get(index, cls, COUNT_used) * size;
		to->cached_bytes += get(index, cls, COUNT_cached) * size;
		to->held_bytes += get(index, cls, COUNT_held);
		for (unsigned i = 0; i < NUMASLAB_STEPS; i++)
			to->refill[i] += get(index, cls, COUNT_own + i);
		to->remote_frees_in += get(index, cls, COUNT_remote_in);
		to->remote_frees_out += get(index, cls, COUNT_remote_out);
		to->misplaced_slabs += get(index, cls, COUNT_misplaced);
		to->released_bytes += get(index, cls, COUNT_released);
	}
	to->slabs = to->active + to->partial + to->full + to->empty;
}

static void stats_of_large(struct numaslab_node_stats *to)
{
	unsigned index = topology.count;

	*to = (struct numaslab_node_stats){.node = -1};
	uint64_t kept = get(index, 0, COUNT_cached);

	to->large_count = get(index, 0, COUNT_active) - (kept != 0);
	to->large_bytes = get(index, 0, COUNT_used) - kept;
	to->held_bytes = get(index, 0, COUNT_held) + kept;
	to->released_bytes = get(index, 0, COUNT_released);
}

bool alloc_stats_at(int i, struct numaslab_node_stats *stats)
{
	if (!alloc_boot() || i < 0 || i > (int)topology.count)
		return false;
	if (i < (int)topology.count)
		stats_of_node((unsigned)i, stats);
	else
		stats_of_large(stats);
	return true;
}

int alloc_stats(struct numaslab_node_stats *stats, int max)
{
	int n = 0;

	while (n < max && alloc_stats_at(n, &stats[n]))
		n++;
	return n;
}
