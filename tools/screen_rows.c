/* SPDX-License-Identifier: MIT */
#include "tools/screen_rows.h"

#include <stdlib.h>
#include <string.h>

const enum counter rate_counter[RATE_COUNT] = {
    COUNT_own,	   COUNT_node_partial, COUNT_node_new,	 COUNT_any_partial,
    COUNT_any_new, COUNT_remote_in,    COUNT_remote_out,
};

uint64_t counts_slabs(const struct reader_counts *c)
{
	return c->counter[COUNT_active] + c->counter[COUNT_partial] + c->counter[COUNT_full] +
	       c->counter[COUNT_empty];
}

void rates_of(const struct process *p, const struct reader_counts *now,
	      const struct reader_counts *before, double rate[RATE_COUNT])
{
	uint64_t since = p->before.pool ? p->before.now_ms : p->info->publish_ms;
	uint64_t until = p->now.live ? p->now.now_ms : p->now.last_ms;
	double seconds = until > since ? (double)(until - since) / 1000 : 0;

	for (unsigned i = 0; i < RATE_COUNT; i++) {
		uint64_t a = before ? before->counter[rate_counter[i]] : 0;
		uint64_t b = now->counter[rate_counter[i]];

		rate[i] = seconds > 0 && b > a ? (double)(b - a) / seconds : 0;
	}
}

static struct row *row_add(struct rows *rows, const struct process *p)
{
	if (rows->count == rows->room) {
		size_t room = rows->room ? 2 * rows->room : 64;
		struct row *more = realloc(rows->row, room * sizeof *more);

		if (!more)
			return NULL;
		rows->row = more;
		rows->room = room;
	}
	struct row *row = &rows->row[rows->count++];
	memset(row, 0, sizeof *row);
	row->process = p;
	row->node = -1;
	return row;
}

static void add(struct reader_counts *to, const struct reader_counts *c)
{
	for (unsigned i = 0; i < COUNTER_COUNT; i++)
		to->counter[i] += c->counter[i];
	to->used_bytes += c->used_bytes;
	to->capacity_bytes += c->capacity_bytes;
	to->cached_bytes += c->cached_bytes;
}

static void add_rates(struct row *row, const struct reader_counts *now,
		      const struct reader_counts *before)
{
	double rate[RATE_COUNT];

	rates_of(row->process, now, before, rate);
	for (unsigned i = 0; i < RATE_COUNT; i++)
		row->rate[i] += rate[i];
}

bool rows_processes(struct rows *rows, const struct process_set *set)
{
	rows->count = 0;
	for (size_t i = 0; i < set->count; i++) {
		const struct process *p = &set->process[i];
		struct row *row = row_add(rows, p);

		if (!row)
			return false;
		for (unsigned k = 0; k < p->now.pools; k++) {
			const struct reader_pool *pool = &p->now.pool[k];

			if (pool->node < 0) {
				struct reader_large large = reader_large(&pool->sum);

				row->large_count = large.count;
				row->large_bytes = large.bytes;
				continue;
			}
			add(&row->counts, &pool->sum);
			add_rates(row, &pool->sum, p->before.pool ? &p->before.pool[k].sum : NULL);
		}
	}
	return true;
}

bool rows_nodes(struct rows *rows, const struct process *p)
{
	rows->count = 0;
	for (unsigned k = 0; k < p->now.pools; k++) {
		const struct reader_pool *pool = &p->now.pool[k];
		struct row *row = pool->node < 0 ? NULL : row_add(rows, p);

		if (pool->node < 0)
			continue;
		if (!row)
			return false;
		row->node = pool->node;
		row->pool = k;
		row->counts = pool->sum;
		add_rates(row, &pool->sum, p->before.pool ? &p->before.pool[k].sum : NULL);
	}
	return true;
}

bool rows_classes(struct rows *rows, const struct process *p, int node)
{
	rows->count = 0;
	for (unsigned cls = 0; cls < p->now.classes; cls++) {
		struct row *row = NULL;

		for (unsigned k = 0; k < p->now.pools; k++) {
			size_t at = (size_t)k * p->now.classes + cls;
			const struct reader_counts *c = &p->now.count[at];

			if (p->now.pool[k].node < 0 || (node >= 0 && p->now.pool[k].node != node) ||
			    (counts_slabs(c) == 0 && c->counter[COUNT_held] == 0))
				continue;
			if (!row && !(row = row_add(rows, p)))
				return false;
			row->size = p->now.class_size[cls];
			row->node = node;
			add(&row->counts, c);
			add_rates(row, c, p->before.pool ? &p->before.count[at] : NULL);
		}
	}
	return true;
}

void rows_free(struct rows *rows)
{
	free(rows->row);
	memset(rows, 0, sizeof *rows);
}
