/* SPDX-License-Identifier: MIT */
#include "allocator/allocator.h"

#include <errno.h>
#include <limits.h>
#include <malloc.h>
#include <stdio.h>

/* What programs ask malloc about itself, answered with our figures. */

/* One node at a time: a thread's stack may be small. */

static struct mallinfo2 sum_up(void)
{
	static const struct mallinfo2 none;
	struct numaslab_node_stats s;
	struct mallinfo2 m = none;

	for (int i = 0; alloc_stats_at(i, &s); i++) {
		m.arena += s.held_bytes;
		m.ordblks += s.slots - s.objects;
		m.uordblks += s.used_bytes;
		m.hblks += s.large_count;
		m.hblkhd += s.large_bytes;
	}
	m.fordblks = m.arena > m.uordblks ? m.arena - m.uordblks : 0;
	m.keepcost = atomic_load_explicit(&mem.dirty, memory_order_relaxed);
	return m;
}

exported struct mallinfo2 mallinfo2(void)
{
	return sum_up();
}

static int clip(size_t n)
{
	return n > INT_MAX ? INT_MAX : (int)n;
}

/* The old form: fields that do not fit say INT_MAX rather than wrap. */
exported struct mallinfo mallinfo(void)
{
	struct mallinfo2 m = sum_up();

	return (struct mallinfo){
	    .arena = clip(m.arena),
	    .ordblks = clip(m.ordblks),
	    .hblks = clip(m.hblks),
	    .hblkhd = clip(m.hblkhd),
	    .uordblks = clip(m.uordblks),
	    .fordblks = clip(m.fordblks),
	    .keepcost = clip(m.keepcost),
	};
}

static void print_node(const struct numaslab_node_stats *s)
{
	if (s->node < 0) {
		fprintf(stderr, "large: %lu blocks, %lu bytes\n", s->large_count, s->large_bytes);
		return;
	}
	double gone = s->held_bytes ? 1.0 - (double)s->used_bytes / (double)s->held_bytes : 0;

	fprintf(stderr,
		"node %d: slabs %lu (active %lu, partial %lu, full %lu, empty %lu), used %lu, "
		"held %lu, fragmentation %.3f, refills own %lu node_partial %lu node_new %lu "
		"any_partial %lu any_new %lu, remote frees in %lu out %lu, misplaced %lu, "
		"released %lu\n",
		s->node, s->slabs, s->active, s->partial, s->full, s->empty, s->used_bytes,
		s->held_bytes, gone < 0 ? 0 : gone, s->refill[0], s->refill[1], s->refill[2],
		s->refill[3], s->refill[4], s->remote_frees_in, s->remote_frees_out,
		s->misplaced_slabs, s->released_bytes);
}

exported void malloc_stats(void)
{
	struct numaslab_node_stats s;

	for (int i = 0; alloc_stats_at(i, &s); i++)
		print_node(&s);
}

exported int malloc_info(int options, FILE *to)
{
	struct numaslab_node_stats s;

	if (options != 0)
		return EINVAL;
	fprintf(to, "<malloc version=\"numaslab-" NUMASLAB_VERSION "\">\n");
	for (int i = 0; alloc_stats_at(i, &s); i++) {
		if (s.node < 0) {
			fprintf(to, "<large count=\"%lu\" size=\"%lu\"/>\n", s.large_count,
				s.large_bytes);
			continue;
		}
		fprintf(to,
			"<heap nr=\"%d\">\n<slabs active=\"%lu\" partial=\"%lu\" full=\"%lu\" "
			"empty=\"%lu\" misplaced=\"%lu\"/>\n"
			"<system type=\"current\" size=\"%lu\"/>\n"
			"<aspace type=\"used\" size=\"%lu\"/>\n</heap>\n",
			s.node, s.active, s.partial, s.full, s.empty, s.misplaced_slabs,
			s.held_bytes, s.used_bytes);
	}
	fprintf(to, "</malloc>\n");
	return 0;
}
