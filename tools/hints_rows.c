/* SPDX-License-Identifier: MIT */
#include "tools/hints_rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cmd.h"

struct hints_raw *raw_row(struct raw_table *t, const void *key)
{
	bool fresh;

	if (!array_fit((void **)&t->row, &t->room, t->keys.count, sizeof *t->row))
		return NULL;
	size_t at = table_get(&t->keys, key, &fresh);
	if (at == TABLE_FULL)
		return NULL;
	if (fresh)
		memset(&t->row[at], 0, sizeof *t->row);
	return &t->row[at];
}

void raw_free(struct raw_table *t)
{
	table_free(&t->keys);
	free(t->row);
	t->row = NULL;
	t->room = 0;
}

void raw_add(struct hints_raw *to, const struct hints_raw *n)
{
	to->faults += n->faults;
	to->local += n->local;
	to->remote += n->remote;
	to->unjoined += n->unjoined;
	to->pages += n->pages;
	to->migrated += n->migrated;
	to->failed += n->failed;
}

static struct hints_counts rows_counts(const struct hints_raw *raw)
{
	return (struct hints_counts){
	    .faults = raw->faults,
	    .local = raw->local,
	    .remote = raw->remote,
	    .unjoined = raw->unjoined,
	    .pages = raw->pages,
	    .migrated = raw->migrated,
	    .failed = raw->failed,
	};
}

/* Of the heap, but no slab that could be named, is a slab without a class. */
static enum hints_kind kind_of(uint32_t raw)
{
	return raw >= RAW_FREE ? HINTS_SLAB : (enum hints_kind)raw;
}

static uint32_t size_of(const struct followed *item, uint16_t class)
{
	return item && item->reader ? reader_class_size(item->reader, class) : 0;
}

bool rows_cell(struct hints_session *s, const struct hints_cell_key *key, const struct hints_raw *n)
{
	struct hints_process *p = hints_process_get(&s->model, (int)key->tgid, key->image);
	uint32_t size = size_of(follow_find(&s->follow, (int)key->tgid, key->image), key->class);
	bool damaged = key->kind == RAW_DAMAGED || (key->kind == RAW_SLAB && size == 0);
	struct hints_counts counts = rows_counts(n);

	if (!p)
		return false;
	struct hints_cell *c =
	    hints_cell_get(p, kind_of(key->kind), damaged ? HINTS_CLASS_NONE : key->class,
			   damaged ? HINTS_NODE_UNKNOWN : key->home, key->from);
	if (!c)
		return false;
	c->block_size = damaged ? 0 : size;
	hints_counts_add(&c->n, &counts);
	if (damaged)
		p->damaged += n->faults;
	return true;
}

bool rows_slab(struct hints_session *s, const struct hints_slab_key *key, const struct hints_raw *n,
	       bool late)
{
	const struct followed *item = follow_find(&s->follow, (int)key->tgid, key->image);
	struct hints_process *p = hints_process_get(&s->model, (int)key->tgid, key->image);
	uint32_t size = size_of(item, key->class);
	struct hints_counts counts = rows_counts(n);

	if (!p)
		return false;
	if (size == 0) /* counted as damaged with its cell */
		return true;
	struct hints_slab *slab = hints_slab_get(p, key->unit, key->generation, key->class);
	if (!slab)
		return false;
	slab->address = item->geometry.base + ((uint64_t)key->unit << DECODE_UNIT_SHIFT);
	slab->block_size = size;
	slab->slab_bytes = reader_slab_bytes(item->reader, key->class);
	slab->home = key->home;
	slab->late |= late;
	hints_counts_add(&slab->n, &counts);
	if (n->remote > slab->from_faults || slab->from == HINTS_NODE_UNKNOWN) {
		slab->from = key->from;
		slab->from_faults = n->remote;
	}
	return true;
}

bool rows_thread(struct hints_session *s, const struct hints_thread_key *key,
		 const struct hints_raw *n, const char *comm)
{
	struct hints_process *p = hints_process_get(&s->model, (int)key->tgid, key->image);
	struct hints_counts counts = rows_counts(n);
	struct hints_thread *t;

	if (!p)
		return false;
	t = hints_thread_get(p, (int)key->tid, kind_of(key->kind), key->class, key->from);
	if (!t)
		return false;
	if (comm)
		printable(t->comm, sizeof t->comm, comm);
	else
		snprintf(t->comm, sizeof t->comm, "%s",
			 follow_thread_comm(&s->follow, (int)key->tgid, (int)key->tid));
	t->block_size = size_of(follow_find(&s->follow, (int)key->tgid, key->image), key->class);
	hints_counts_add(&t->n, &counts);
	return true;
}
