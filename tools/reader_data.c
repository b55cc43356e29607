/* SPDX-License-Identifier: MIT */
/* Reads the live counters, and the history by the protocol of ring.h. */
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tools/reader_internal.h"

#define STILL_TRIES 200

uint64_t reader_now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* --- Memory that somebody may cut while we read it. --- */

static _Thread_local sigjmp_buf guard_jump;
static _Thread_local volatile sig_atomic_t guard_set;

static void on_bus_error(int number)
{
	if (guard_set)
		siglongjmp(guard_jump, 1);
	signal(number, SIG_DFL); /* not ours: dies of it at the same instruction */
}

void reader_guard_init(void)
{
	static bool done;
	struct sigaction action = {.sa_handler = on_bus_error, .sa_flags = SA_NODEFER};

	if (!__atomic_exchange_n(&done, true, __ATOMIC_RELAXED))
		sigaction(SIGBUS, &action, NULL);
}

bool reader_guarded(void (*read)(struct reader *r, void *data), struct reader *r, void *data)
{
	if (sigsetjmp(guard_jump, 0)) {
		guard_set = 0;
		return false;
	}
	guard_set = 1;
	read(r, data);
	guard_set = 0;
	return true;
}

double reader_fragmentation(const struct reader_counts *c)
{
	uint64_t held = c->counter[COUNT_held];

	if (held == 0 || c->used_bytes >= held)
		return 0;
	return 1 - (double)c->used_bytes / (double)held;
}

struct reader_large reader_large(const struct reader_counts *c)
{
	const uint64_t *n = c->counter;
	uint64_t aside = n[COUNT_cached] < n[COUNT_used] ? n[COUNT_cached] : n[COUNT_used];

	return (struct reader_large){
	    .count = n[COUNT_active] - (aside && n[COUNT_active]),
	    .bytes = n[COUNT_used] - aside,
	    .kept_bytes = n[COUNT_held] + aside,
	    .released_bytes = n[COUNT_released],
	};
}

/* --- The live counters. --- */

static void load_row(const struct reader *r, const uint64_t *row, uint64_t n[COUNTER_COUNT])
{
	for (unsigned c = 0; c < COUNTER_COUNT; c++)
		n[c] = r->column[c] < 0 ? 0 : ring_load(&row[r->column[c]]);
}

/* Nothing is below zero, and no more is used than there is room for. */
static bool row_is_sound(const uint64_t n[COUNTER_COUNT], bool large)
{
	for (unsigned c = 0; c < COUNTER_COUNT; c++)
		if (n[c] >> 63)
			return false;
	return large || n[COUNT_used] <= n[COUNT_slots];
}

static void make_sound(uint64_t n[COUNTER_COUNT], bool large)
{
	for (unsigned c = 0; c < COUNTER_COUNT; c++)
		if (n[c] >> 63)
			n[c] = 0;
	if (!large && n[COUNT_used] > n[COUNT_slots])
		n[COUNT_used] = n[COUNT_slots];
}

/* A row that was the same twice and is sound; after some tries, one that was made so. */
static void load_still_row(const struct reader *r, const uint64_t *row, bool large,
			   uint64_t n[COUNTER_COUNT])
{
	uint64_t again[COUNTER_COUNT];

	load_row(r, row, n);
	for (int tries = 0; tries < STILL_TRIES; tries++) {
		cmm_smp_rmb();
		load_row(r, row, again);
		if (!memcmp(n, again, sizeof again) && row_is_sound(n, large))
			return;
		memcpy(n, again, sizeof again);
	}
	make_sound(n, large);
}

static void add_counts(struct reader_counts *to, const struct reader_counts *c)
{
	for (unsigned i = 0; i < COUNTER_COUNT; i++)
		to->counter[i] += c->counter[i];
	to->used_bytes += c->used_bytes;
	to->capacity_bytes += c->capacity_bytes;
	to->cached_bytes += c->cached_bytes;
	to->asked_bytes += c->asked_bytes;
}

/* What is out, of the mean size of the mallocs that were looked at; their class's if none was. */
static uint64_t asked_bytes(const uint64_t n[COUNTER_COUNT], uint64_t size)
{
	uint64_t out = n[COUNT_used] > n[COUNT_cached] ? n[COUNT_used] - n[COUNT_cached] : 0;
	double mean = n[COUNT_looked] ? (double)n[COUNT_asked] / (double)n[COUNT_looked] : -1;

	if (!(mean >= 0 && mean <= (double)size)) /* none, or a damaged row */
		mean = (double)size;
	return (uint64_t)((double)out * mean);
}

static void load_live(struct reader *r, void *data)
{
	struct reader_snapshot *s = data;

	s->last_ms = ring_load(&((const struct ring_header *)r->map)->last_ms);
	for (unsigned i = 0; i < s->pools; i++) {
		struct reader_pool *pool = &s->pool[i];

		memset(pool, 0, sizeof *pool);
		pool->node = r->node[i];
		for (unsigned cls = 0; cls < s->classes; cls++) {
			uint64_t at = (uint64_t)i * s->classes + cls, size = r->class_size[cls];
			struct reader_counts *c = &s->count[at];
			const char *row = r->map + r->live.offset + at * r->live.stride;

			load_still_row(r, (const uint64_t *)row, pool->node < 0, c->counter);
			c->used_bytes = c->counter[COUNT_used] * size;
			c->capacity_bytes = c->counter[COUNT_slots] * size;
			c->cached_bytes = c->counter[COUNT_cached] * size;
			c->asked_bytes = asked_bytes(c->counter, size);
			add_counts(&pool->sum, c);
		}
	}
}

static bool snapshot_fit(const struct reader *r, struct reader_snapshot *s)
{
	size_t rows = (size_t)r->info.pools * r->info.classes;

	if (s->pools != r->info.pools || s->classes != r->info.classes) {
		reader_snapshot_free(s);
		s->pool = calloc(r->info.pools, sizeof *s->pool);
		s->class_size = calloc(r->info.classes, sizeof *s->class_size);
		s->count = calloc(rows, sizeof *s->count);
		if (!s->pool || !s->class_size || !s->count) {
			reader_snapshot_free(s);
			return false;
		}
		s->pools = r->info.pools;
		s->classes = r->info.classes;
	}
	memcpy(s->class_size, r->class_size, s->classes * sizeof *s->class_size);
	return true;
}

enum reader_result reader_snapshot(struct reader *r, struct reader_snapshot *s)
{
	if (!snapshot_fit(r, s))
		return READER_FAILED;
	s->live = reader_is_live(r);
	s->now_ms = reader_now_ms();
	return reader_guarded(load_live, r, s) ? READER_OK : READER_DAMAGED;
}

void reader_snapshot_free(struct reader_snapshot *s)
{
	free(s->pool);
	free(s->class_size);
	free(s->count);
	memset(s, 0, sizeof *s);
}

/* --- The history: the reader's side of the protocol in ring.h, its numbers at the lines. --- */

struct history_job {
	uint64_t after;
	size_t max;
	struct reader_history *to;
};

static void pin(struct reader *r, uint64_t entry)
{
	if (!r->pins)
		return;
	if (entry == 0)
		cmm_smp_mb(); /* what was read is read */
	ring_store(&r->pins[r->pin_slot].entry, entry);
}

static void load_entry(const struct reader *r, const struct ring_entry *e, struct reader_point *p)
{
	p->time_ms = ring_load(&e->time_ms);
	for (unsigned i = 0; i < r->info.pools; i++) {
		const struct ring_totals *t =
		    (const void *)((const char *)e->pool + (size_t)i * r->pool_stride);
		struct reader_pool *pool = &p->pool[i];

		pool->node = r->node[i];
		pool->sum.used_bytes = ring_load(&t->used_bytes);
		pool->sum.capacity_bytes = ring_load(&t->capacity_bytes);
		pool->sum.cached_bytes = ring_load(&t->cached_bytes);
		load_row(r, t->counter, pool->sum.counter);
		make_sound(pool->sum.counter, pool->node < 0);
		if (pool->node >= 0 && pool->sum.used_bytes > pool->sum.capacity_bytes)
			pool->sum.used_bytes = pool->sum.capacity_bytes;
	}
}

/*
 * 5.  With a pin, 0 may mean that the writer is between b and d and about to hand the entry back;
 * a writer that stopped just there makes it a lost one.
 */
static bool is_still(const struct reader *r, const struct ring_entry *e, uint64_t n)
{
	uint64_t seen = ring_load(&e->generation);

	for (int tries = 0; r->pins && seen == 0 && tries < STILL_TRIES; tries++) {
		caa_cpu_relax();
		seen = ring_load(&e->generation);
	}
	return seen == n;
}

static void load_point(struct reader *r, uint64_t n, struct reader_history *h)
{
	const struct ring_entry *e =
	    (const void *)(r->map + r->history.offset + n % r->history.count * r->history.stride);
	struct reader_point *p = &h->point[h->count];

	pin(r, n);			      /* 1 */
	cmm_smp_mb();			      /* 2, with the writer's c */
	if (ring_load(&e->generation) == n) { /* 3 */
		cmm_smp_rmb();
		load_entry(r, e, p); /* 4 */
		p->entry = n;
		cmm_smp_rmb();
		if (is_still(r, e, n)) /* 5 */
			h->count++;
		else
			h->overtaken++;
	}
	pin(r, 0); /* 6 */
}

static void load_history(struct reader *r, void *data)
{
	struct history_job *job = data;
	union ring_head head = {
	    .token = rcu_dereference(((const struct ring_header *)r->map)->head.token)};
	uint64_t count = r->history.count, first = job->after + 1;

	/* The slot after the newest is the next to be written: it is not asked for. */
	if (head.entry >= count && first < head.entry - count + 2)
		first = head.entry - count + 2;
	if (head.entry >= job->max && first < head.entry - job->max + 1)
		first = head.entry - job->max + 1;
	for (uint64_t n = first; n <= head.entry && n >= first && job->to->count < job->max; n++)
		load_point(r, n, job->to);
}

static bool history_fit(const struct reader *r, struct reader_history *h, size_t max)
{
	reader_history_free(h);
	h->pools = r->info.pools;
	h->point = calloc(max + 1, sizeof *h->point);
	struct reader_pool *pools = calloc((max + 1) * h->pools, sizeof *pools);
	if (!h->point || !pools) {
		free(pools);
		reader_history_free(h);
		return false;
	}
	for (size_t i = 0; i <= max; i++)
		h->point[i].pool = pools + i * h->pools;
	return true;
}

enum reader_result reader_history(struct reader *r, uint64_t after, size_t max,
				  struct reader_history *h)
{
	if (max > r->history.count)
		max = r->history.count;
	if (!history_fit(r, h, max))
		return READER_FAILED;
	if (r->history.count == 0)
		return READER_OK;
	struct history_job job = {after, max, h};
	return reader_guarded(load_history, r, &job) ? READER_OK : READER_DAMAGED;
}

void reader_history_free(struct reader_history *h)
{
	if (h->point)
		free(h->point[0].pool);
	free(h->point);
	memset(h, 0, sizeof *h);
}
