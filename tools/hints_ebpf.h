/* SPDX-License-Identifier: MIT */
/* The eBPF collector: hints_ebpf.c loads and attaches, hints_ebpf_read.c reads the maps. */
#ifndef NUMASLAB_HINTS_EBPF_H
#define NUMASLAB_HINTS_EBPF_H

#include "tools/hints_internal.h"
#include "tools/hints_kernel.h"
#include "tools/hints_late.h"

struct bpf_link;
struct bpf_map;
struct ring_buffer;
struct hints_bpf; /* the skeleton */

#define EBPF_LINKS_MAX 16

struct ebpf {
	struct hints_bpf *skeleton;
	struct hints_kernel kernel;
	struct ring_buffer *ring;
	struct bpf_link *link[EBPF_LINKS_MAX];
	size_t link_count;
	struct late late;
	enum hints_tier tier;
};

/* The maps that are read, by their descriptors. */
struct ebpf_maps {
	int cells, slabs, threads, pending, stats, watched, targets, samples;
};
void ebpf_maps(const struct ebpf *e, struct ebpf_maps *m);
/* Faults that the programs missed because another one ran on that CPU. */
uint64_t ebpf_missed(const struct ebpf *e);

bool ebpf_read(struct hints_session *s);

#endif
