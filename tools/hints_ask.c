/* SPDX-License-Identifier: MIT */
/* Sums and rankings of the model; pure. */
#include <stdlib.h>
#include <string.h>

#include "tools/hints.h"

static bool is_heap(enum hints_kind kind)
{
	return kind == HINTS_SLAB || kind == HINTS_LARGE;
}

static void sum_process(const struct hints_process *p, enum hints_kind kind, uint16_t class,
			int home, int from, struct hints_counts *out)
{
	for (size_t i = 0; i < p->cell_count; i++) {
		const struct hints_cell *c = &p->cell[i];

		if ((kind == HINTS_KINDS ? is_heap(c->kind) : c->kind == kind) &&
		    (class == HINTS_CLASS_NONE || c->class == class) &&
		    (home == HINTS_ANY || c->home == home) &&
		    (from == HINTS_ANY || c->from == from))
			hints_counts_add(out, &c->n);
	}
}

void hints_sum(const struct hints *h, const struct hints_process *p, enum hints_kind kind,
	       uint16_t class, int home, int from, struct hints_counts *out)
{
	memset(out, 0, sizeof *out);
	for (size_t i = 0; i < h->process_count; i++)
		if (!p || p == &h->process[i])
			sum_process(&h->process[i], kind, class, home, from, out);
}

/* Classes of different processes are the same if their blocks are. */
static struct hints_class *class_of(struct hints_class *all, size_t *count, size_t max,
				    uint32_t block_size, uint16_t class)
{
	for (size_t i = 0; i < *count; i++)
		if (all[i].block_size == block_size)
			return &all[i];
	if (*count == max)
		return NULL;
	all[*count] = (struct hints_class){.class = class,
					   .block_size = block_size,
					   .home = HINTS_NODE_UNKNOWN,
					   .from = HINTS_NODE_UNKNOWN};
	return &all[(*count)++];
}

static int by_class_remote(const void *a, const void *b)
{
	const struct hints_class *x = a, *y = b;

	if (x->n.remote != y->n.remote)
		return x->n.remote < y->n.remote ? 1 : -1;
	return x->block_size < y->block_size ? -1 : x->block_size > y->block_size;
}

static void add_classes(const struct hints_process *p, struct hints_class *all, size_t *count,
			size_t max)
{
	for (size_t i = 0; i < p->cell_count; i++) {
		const struct hints_cell *c = &p->cell[i];
		struct hints_class *to;

		if (c->class == HINTS_CLASS_NONE ||
		    !(to = class_of(all, count, max, c->block_size, c->class)))
			continue;
		hints_counts_add(&to->n, &c->n);
		if (c->n.remote > to->from_faults) {
			to->from_faults = c->n.remote;
			to->home = c->home;
			to->from = c->from;
		}
	}
	for (size_t i = 0; i < p->slab_count; i++) {
		const struct hints_slab *s = &p->slab[i];
		struct hints_class *to;

		if (s->n.remote == 0 || !(to = class_of(all, count, max, s->block_size, s->class)))
			continue;
		to->slabs++;
		to->affected_bytes += s->slab_bytes;
	}
}

#define CLASSES_MAX 1024u

size_t hints_classes(const struct hints *h, const struct hints_process *p, struct hints_class *out,
		     size_t max)
{
	struct hints_class *all = calloc(CLASSES_MAX, sizeof *all);
	size_t count = 0;

	for (size_t i = 0; all && i < h->process_count; i++)
		if (!p || p == &h->process[i])
			add_classes(&h->process[i], all, &count, CLASSES_MAX);
	if (count)
		qsort(all, count, sizeof *all, by_class_remote);
	if (count > max)
		count = max;
	if (count)
		memcpy(out, all, count * sizeof *all);
	free(all);
	return count;
}

double hints_local_share(const struct hints_counts *n)
{
	uint64_t known = n->local + n->remote;

	return known ? (double)n->local / (double)known : -1;
}

/* --- Slabs and threads. --- */

static int by_slab_remote(const void *a, const void *b)
{
	const struct hints_slab *x = *(const struct hints_slab *const *)a;
	const struct hints_slab *y = *(const struct hints_slab *const *)b;

	if (x->n.remote != y->n.remote)
		return x->n.remote < y->n.remote ? 1 : -1;
	if (x->n.faults != y->n.faults)
		return x->n.faults < y->n.faults ? 1 : -1;
	return x->unit != y->unit ? (x->unit < y->unit ? -1 : 1)
				  : (int)x->generation - (int)y->generation;
}

size_t hints_slabs(const struct hints_process *p, const struct hints_slab **out, size_t max)
{
	const struct hints_slab **all = malloc((p->slab_count + 1) * sizeof(void *));
	size_t count = p->slab_count < max ? p->slab_count : max;

	if (!all)
		return 0;
	for (size_t i = 0; i < p->slab_count; i++)
		all[i] = &p->slab[i];
	qsort(all, p->slab_count, sizeof(void *), by_slab_remote);
	memcpy(out, all, count * sizeof(void *));
	free(all);
	return count;
}

static int by_thread_remote(const void *a, const void *b)
{
	const struct hints_thread *x = *(const struct hints_thread *const *)a;
	const struct hints_thread *y = *(const struct hints_thread *const *)b;

	if (x->n.remote != y->n.remote)
		return x->n.remote < y->n.remote ? 1 : -1;
	if (x->n.faults != y->n.faults)
		return x->n.faults < y->n.faults ? 1 : -1;
	return x->tid < y->tid ? -1 : x->tid > y->tid;
}

size_t hints_threads(const struct hints_process *p, const struct hints_thread **out, size_t max)
{
	const struct hints_thread **all = malloc((p->thread_count + 1) * sizeof(void *));
	size_t count = p->thread_count < max ? p->thread_count : max;

	if (!all)
		return 0;
	for (size_t i = 0; i < p->thread_count; i++)
		all[i] = &p->thread[i];
	qsort(all, p->thread_count, sizeof(void *), by_thread_remote);
	memcpy(out, all, count * sizeof(void *));
	free(all);
	return count;
}
