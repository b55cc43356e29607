/* SPDX-License-Identifier: MIT */
/* From the maps of the eBPF programs to the model. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "tools/hints_ebpf.h"

#define BATCH 1024u

/* --- All entries of a map. --- */

struct walk {
	int fd;
	size_t key_size, value_size; /* of all CPUs */
	bool (*see)(struct hints_session *s, const void *key, const void *value);
};

/* A bucket that is longer than a batch is asked for again with a longer one. */
static bool walk_batches(struct hints_session *s, const struct walk *w, uint32_t batch, void *keys,
			 void *values)
{
	uint64_t in = 0, out = 0;
	bool first = true, good = true;

	for (;;) {
		uint32_t count = batch;
		int error = bpf_map_lookup_batch(w->fd, first ? NULL : &in, &out, keys, values,
						 &count, NULL);

		if (error && errno != ENOENT)
			return errno != ENOSPC ? true : false;
		for (uint32_t i = 0; good && i < count; i++)
			good = w->see(s, (char *)keys + i * w->key_size,
				      (char *)values + i * w->value_size);
		if (error || !good)
			return good;
		in = out;
		first = false;
	}
}

static bool walk_map(struct hints_session *s, const struct walk *w)
{
	void *keys = malloc(BATCH * w->key_size), *values = malloc(BATCH * w->value_size);
	bool good = keys && values && walk_batches(s, w, BATCH, keys, values);

	free(keys);
	free(values);
	return good;
}

static struct hints_counts counts_of(const struct hints_raw *raw)
{
	struct hints_counts n;

	_Static_assert(sizeof n == sizeof *raw, "the same counts");
	memcpy(&n, raw, sizeof n);
	return n;
}

/* --- Entries. --- */

/* Where faults stand whose slab is not known (yet). */
static struct hints_cell *unread_cell(struct hints_process *p, int from)
{
	return hints_cell_get(p, HINTS_SLAB, HINTS_CLASS_NONE, HINTS_NODE_UNKNOWN, from);
}

static bool see_cell(struct hints_session *s, const void *k, const void *v)
{
	const struct hints_cell_key *key = k;
	const struct hints_raw *of_cpu = v;
	struct hints_cell_key unread = *key;
	struct hints_raw sum = {0};

	for (int i = 0; i < libbpf_num_possible_cpus(); i++)
		raw_add(&sum, &of_cpu[i]);
	if (sum.faults + sum.migrated + sum.failed == 0)
		return true;
	if (key->kind == RAW_UNREAD) {
		struct hints_process *p = hints_process_get(&s->model, (int)key->tgid, key->image);

		if (!p)
			return false;
		p->resolve_failed += sum.faults;
		unread.home = HINTS_NODE_UNKNOWN;
		key = &unread;
	}
	return rows_cell(s, key, &sum);
}

static bool see_slab(struct hints_session *s, const void *k, const void *v)
{
	const struct hints_slab_key *key = k;
	struct ebpf *e = s->state;

	return key->kind == RAW_UNREAD ? late_see(&e->late, &s->follow, key, v)
				       : rows_slab(s, key, v, false);
}

/* What was looked up late moves from the cell of the unread to its own. */
static bool add_late(struct hints_session *s)
{
	struct ebpf *e = s->state;

	for (size_t i = 0; i < e->late.found.keys.count; i++) {
		const struct hints_slab_key *key = table_key(&e->late.found.keys, i);
		const struct hints_raw *raw = &e->late.found.row[i];
		struct hints_counts n = counts_of(raw);
		struct hints_cell_key cell = {.tgid = key->tgid,
					      .image = key->image,
					      .class = key->class,
					      .home = key->home,
					      .from = key->from,
					      .kind = (uint16_t)key->kind};
		struct hints_process *p = hints_process_get(&s->model, (int)key->tgid, key->image);
		struct hints_cell *unread = p ? unread_cell(p, key->from) : NULL;

		if (!unread)
			return false;
		if (key->kind == RAW_UNREAD)
			continue;
		hints_counts_take(&unread->n, &n);
		p->resolve_failed -= n.faults < p->resolve_failed ? n.faults : p->resolve_failed;
		p->resolve_late += n.faults;
		if (!rows_cell(s, &cell, raw) ||
		    (key->kind == RAW_SLAB && !rows_slab(s, key, raw, true)))
			return false;
	}
	return true;
}

static bool see_thread(struct hints_session *s, const void *key, const void *v)
{
	const struct hints_thread_value *value = v;
	char comm[sizeof value->comm + 1] = {0};

	memcpy(comm, value->comm, sizeof value->comm);
	return rows_thread(s, key, &value->n, comm);
}

/* Faults that never came to their end, once nothing is attached any more. */
static bool see_pending(struct hints_session *s, const void *k, const void *v)
{
	const struct hints_pending *pending = v;
	struct hints_raw n = {.faults = 1, .unjoined = 1, .pages = 1};

	(void)k;
	return rows_cell(s, &pending->cell, &n);
}

static void read_stats(struct hints_session *s, int fd)
{
	struct ebpf *e = s->state;
	int cpus = libbpf_num_possible_cpus();
	struct hints_stats *of_cpu = calloc((size_t)cpus, sizeof *of_cpu), sum = {0};
	uint32_t zero = 0;

	if (of_cpu && bpf_map_lookup_elem(fd, &zero, of_cpu) == 0)
		for (int i = 0; i < cpus; i++) {
			sum.lost_cells += of_cpu[i].lost_cells;
			sum.lost_slabs += of_cpu[i].lost_slabs;
			sum.lost_threads += of_cpu[i].lost_threads;
			sum.lost_samples += of_cpu[i].lost_samples;
			sum.moves += of_cpu[i].moves;
		}
	free(of_cpu);
	s->model.drops = (struct hints_drops){
	    .cells = sum.lost_cells,
	    .slabs = sum.lost_slabs,
	    .threads = sum.lost_threads,
	    .samples = sum.lost_samples,
	    .events = ebpf_missed(e),
	};
	s->model.task_moves = sum.moves;
}

bool ebpf_read(struct hints_session *s)
{
	struct ebpf *e = s->state;
	size_t cpus = (size_t)libbpf_num_possible_cpus();
	struct ebpf_maps maps;

	ebpf_maps(e, &maps);
	struct walk cells = {maps.cells, sizeof(struct hints_cell_key),
			     cpus * sizeof(struct hints_raw), see_cell};
	struct walk slabs = {maps.slabs, sizeof(struct hints_slab_key), sizeof(struct hints_raw),
			     see_slab};
	struct walk threads = {maps.threads, sizeof(struct hints_thread_key),
			       sizeof(struct hints_thread_value), see_thread};
	struct walk pending = {maps.pending, sizeof(uint32_t), sizeof(struct hints_pending),
			       see_pending};
	read_stats(s, maps.stats);
	return walk_map(s, &slabs) && walk_map(s, &cells) && add_late(s) && walk_map(s, &threads) &&
	       (!s->stopped || e->tier == HINTS_TRACEPOINT || walk_map(s, &pending));
}
