/* SPDX-License-Identifier: (MIT OR GPL-2.0) */
/* Whose fault it is, on which slab, and the tables that it is added to. */
#ifndef NUMASLAB_HINTS_COUNT_BPF_H
#define NUMASLAB_HINTS_COUNT_BPF_H

#include "tools/hints_types.bpf.h"

const volatile struct hints_config config;

/* --- Maps. --- */

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, __u32);
	__type(value, struct hints_watched);
} watched SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, struct hints_target);
} targets SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, 8192);
	__type(key, struct hints_cell_key);
	__type(value, struct hints_raw);
} cells SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__type(key, struct hints_slab_key);
	__type(value, struct hints_raw);
} slabs SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, struct hints_thread_key);
	__type(value, struct hints_thread_value);
} threads SEC(".maps");

/* One for each task that is in a fault, or was and never came to its end. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 32768);
	__type(key, __u32);
	__type(value, struct hints_pending);
} pending SEC(".maps");

/* The address of a fault on a huge page, where mpol_misplaced only gets the page's beginning. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, __u32);
	__type(value, __u64);
} huge SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct hints_stats);
} stats SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 64 * 1024);
} samples SEC(".maps");

static const struct hints_raw nothing;

static __always_inline struct hints_stats *stats_of_cpu(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&stats, &zero);
}

/* --- Who. --- */

struct who {
	__u32 tgid, tid, image;
	__u32 is_watched;
};

/* In another pid namespace than the first, its own tasks alone have numbers there. */
static __always_inline bool numbers_of_task(struct who *w)
{
	if (config.ns_ino) {
		struct bpf_pidns_info ns;

		if (bpf_get_ns_current_pid_tgid(config.ns_dev, config.ns_ino, &ns, sizeof ns))
			return false;
		w->tgid = ns.tgid;
		w->tid = ns.pid;
	} else {
		__u64 id = bpf_get_current_pid_tgid();

		w->tgid = id >> 32;
		w->tid = (__u32)id;
	}
	return true;
}

/* Whether the present task is to be counted. */
static __always_inline bool who_is_it(struct who *w)
{
	if (!numbers_of_task(w))
		return false;
	struct hints_watched *watch = bpf_map_lookup_elem(&watched, &w->tgid);
	w->is_watched = watch && !watch->exited;
	w->image = w->is_watched ? watch->image : 0;
	return w->is_watched || config.all;
}

/* --- What. --- */

static __always_inline enum hints_decoded read_word(const struct hints_geometry *g, __u32 unit,
						    __u64 *word)
{
	__u32 page = 0;
	__u64 offset;

	if (bpf_probe_read_user(&page, sizeof page, (void *)(g->dir_at + decode_dir_offset(unit))))
		return DECODED_UNREAD;
	if (page == 0)
		return DECODED_FREE;
	if (!decode_word_offset(g, page, unit, &offset))
		return DECODED_DAMAGED;
	if (bpf_probe_read_user(word, sizeof *word, (void *)(g->map_at + offset)))
		return DECODED_UNREAD;
	return DECODED_SLAB;
}

/* By the slab map of the present process. */
static __always_inline void place_of(const struct hints_geometry *g, __u64 address,
				     struct hints_place *p)
{
	__u32 unit = 0;
	__u64 word = 0;

	p->class = DECODE_CLASS_NONE;
	p->pool = DECODE_POOL_NONE;
	p->decoded = decode_address(g, address, &unit);
	p->unit = unit;
	if (p->decoded != DECODED_SLAB)
		return;
	p->decoded = g->map_at ? read_word(g, unit, &word) : DECODED_UNREAD;
	if (p->decoded != DECODED_SLAB)
		return;
	if (DECODE_STATE(word) == DECODE_INNER) {
		p->decoded = DECODED_DAMAGED;
		if (!decode_step_back(word, &unit))
			return;
		p->decoded = read_word(g, unit, &word);
		if (p->decoded != DECODED_SLAB)
			return;
	}
	decode_word(word, unit, p);
}

/* Fills class, home, kind of the keys from the heap of the process; false: not on it. */
static __always_inline bool key_of_heap(const struct who *w, __u64 address, struct hints_pending *p)
{
	struct hints_place place = {};

	if (!w->is_watched)
		return false;
	struct hints_target *target = bpf_map_lookup_elem(&targets, &w->tgid);
	if (!target || target->image != w->image)
		return false;
	place_of(&target->geometry, address, &place);
	switch (place.decoded) {
	case DECODED_OUTSIDE:
		return false;
	case DECODED_LARGE:
		p->cell.kind = RAW_LARGE;
		break;
	case DECODED_FREE:
		p->cell.kind = RAW_FREE;
		break;
	case DECODED_UNREAD:
		p->cell.kind = RAW_UNREAD;
		break;
	case DECODED_SLAB:
		p->cell.kind = RAW_SLAB;
		p->cell.class = place.class;
		p->cell.home = target->node[place.pool];
		if (p->cell.home >= 0)
			break;
		/* fallthrough */
	default:
		p->cell.kind = RAW_DAMAGED;
		p->cell.class = DECODE_CLASS_NONE;
	}
	p->slab.unit = place.unit;
	p->slab.generation = place.generation;
	return true;
}

/* --- Adding up. --- */

struct outcome {
	__u64 faults, local, remote, unjoined, pages, migrated, failed;
};

#define ADD(to, n)                                                                                 \
	do {                                                                                       \
		__sync_fetch_and_add(&(to)->faults, (n)->faults);                                  \
		__sync_fetch_and_add(&(to)->local, (n)->local);                                    \
		__sync_fetch_and_add(&(to)->remote, (n)->remote);                                  \
		__sync_fetch_and_add(&(to)->unjoined, (n)->unjoined);                              \
		__sync_fetch_and_add(&(to)->pages, (n)->pages);                                    \
		__sync_fetch_and_add(&(to)->migrated, (n)->migrated);                              \
		__sync_fetch_and_add(&(to)->failed, (n)->failed);                                  \
	} while (0)

/* The value of a key, made if there is none; NULL: the map is full. */
static __always_inline struct hints_raw *value_of(void *map, const void *key)
{
	struct hints_raw *value = bpf_map_lookup_elem(map, key);

	if (value)
		return value;
	bpf_map_update_elem(map, key, &nothing, BPF_NOEXIST);
	return bpf_map_lookup_elem(map, key);
}

static __always_inline void sample(const struct hints_pending *p, __u64 pages,
				   struct hints_stats *s)
{
	/* Those on huge pages stand for many, and are few. */
	if (!config.sample_every || (pages <= 1 && s->begun % config.sample_every))
		return;
	struct hints_event *e = bpf_ringbuf_reserve(&samples, sizeof *e, 0);
	if (!e) {
		s->lost_samples++;
		return;
	}
	e->time_ns = bpf_ktime_get_ns();
	e->address = p->address;
	e->ip = p->ip;
	e->tgid = p->cell.tgid;
	e->image = p->cell.image;
	e->tid = p->tid;
	e->class = p->cell.class;
	e->from = p->cell.from;
	e->kind = p->cell.kind;
	e->pages = (__u32)pages;
	bpf_ringbuf_submit(e, 0);
}

static __always_inline void count_thread(const struct hints_pending *p, const struct outcome *n,
					 struct hints_stats *s)
{
	struct hints_thread_key key = {
	    .tgid = p->cell.tgid,
	    .image = p->cell.image,
	    .tid = p->tid,
	    .class = p->cell.class,
	    .from = p->cell.from,
	    .kind = p->cell.kind,
	};
	struct hints_thread_value *value = bpf_map_lookup_elem(&threads, &key);

	if (!value) {
		struct hints_thread_value fresh = {};

		bpf_get_current_comm(fresh.comm, sizeof fresh.comm);
		bpf_map_update_elem(&threads, &key, &fresh, BPF_NOEXIST);
		value = bpf_map_lookup_elem(&threads, &key);
	}
	if (value)
		ADD(&value->n, n);
	else
		s->lost_threads += n->faults;
}

static __always_inline void count(struct hints_pending *p, const struct outcome *n)
{
	struct hints_stats *s = stats_of_cpu();

	if (!s)
		return;
	/* What could not be read is a slab of the table alone: user space looks it up. */
	bool is_slab = p->cell.kind == RAW_SLAB || p->cell.kind == RAW_UNREAD;
	if (is_slab) {
		p->slab.tgid = p->cell.tgid;
		p->slab.image = p->cell.image;
		p->slab.class = p->cell.class;
		p->slab.from = p->cell.from;
		p->slab.home = p->cell.home;
		p->slab.kind = p->cell.kind;
		struct hints_raw *slab = value_of(&slabs, &p->slab);
		if (slab)
			ADD(slab, n);
		else
			s->lost_slabs += n->faults;
	}
	struct hints_raw *cell = value_of(&cells, &p->cell);
	if (cell)
		ADD(cell, n);
	else
		s->lost_cells += n->faults;
	count_thread(p, n, s);
	if (n->faults)
		sample(p, n->pages, s);
}

#endif
