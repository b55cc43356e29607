/* SPDX-License-Identifier: MIT */
/* Fills the model and sums it up; pure. */
#include <stdlib.h>
#include <string.h>

#include "tools/hints.h"
#include "tools/hints_table.h"

#define POINTS_MAX  1024u /* then two become one */
#define SAMPLES_MAX 256u

struct cell_key {
	int home, from;
	uint32_t kind;
	uint32_t class;
};

struct slab_key {
	uint32_t unit;
	uint16_t generation, class;
};

struct thread_key {
	int tid, from;
	uint32_t kind;
	uint32_t class;
};

struct hints_private {
	struct table cells, slabs, threads;
	size_t cell_room, slab_room, thread_room, point_room;
	size_t sample_next;	    /* once there are SAMPLES_MAX */
	struct hints_counts before; /* total at the last point */
};

void hints_counts_add(struct hints_counts *to, const struct hints_counts *n)
{
	to->faults += n->faults;
	to->local += n->local;
	to->remote += n->remote;
	to->unjoined += n->unjoined;
	to->pages += n->pages;
	to->migrated += n->migrated;
	to->failed += n->failed;
}

void hints_counts_take(struct hints_counts *from, const struct hints_counts *n)
{
#define TAKE(field) from->field -= n->field < from->field ? n->field : from->field
	TAKE(faults);
	TAKE(local);
	TAKE(remote);
	TAKE(unjoined);
	TAKE(pages);
	TAKE(migrated);
	TAKE(failed);
#undef TAKE
}

static struct hints_counts counts_since(const struct hints_counts *now,
					const struct hints_counts *before)
{
	struct hints_counts n = *now;

	hints_counts_take(&n, before);
	return n;
}

/* --- Rows. --- */

struct hints_process *hints_process_get(struct hints *h, int pid, unsigned image)
{
	if (image == 0) /* before it was followed */
		image = 1;
	for (size_t i = 0; i < h->process_count; i++)
		if (h->process[i].pid == pid && h->process[i].image == image)
			return &h->process[i];
	struct hints_process *more = realloc(h->process, (h->process_count + 1) * sizeof *more);
	if (more)
		h->process = more;
	struct hints_private *private = calloc(1, sizeof *private);
	if (!more || !private) {
		free(private);
		return NULL;
	}
	private->cells.key_size = sizeof(struct cell_key);
	private->slabs.key_size = sizeof(struct slab_key);
	private->threads.key_size = sizeof(struct thread_key);
	h->process[h->process_count] =
	    (struct hints_process){.pid = pid, .image = image, .placement = "", .private = private};
	return &h->process[h->process_count++];
}

void hints_clear(struct hints *h)
{
	for (size_t i = 0; i < h->process_count; i++) {
		struct hints_process *p = &h->process[i];

		table_clear(&p->private->cells);
		table_clear(&p->private->slabs);
		table_clear(&p->private->threads);
		p->cell_count = p->slab_count = p->thread_count = 0;
		p->damaged = p->resolve_failed = p->resolve_late = 0;
	}
}

struct hints_cell *hints_cell_get(struct hints_process *p, enum hints_kind kind, uint16_t class,
				  int home, int from)
{
	struct cell_key key = {home, from, kind, class};
	bool fresh;

	if (!array_fit((void **)&p->cell, &p->private->cell_room, p->cell_count, sizeof *p->cell))
		return NULL;
	size_t at = table_get(&p->private->cells, &key, &fresh);
	if (at == TABLE_FULL)
		return NULL;
	if (fresh) {
		p->cell[at] =
		    (struct hints_cell){.kind = kind, .class = class, .home = home, .from = from};
		p->cell_count++;
	}
	return &p->cell[at];
}

struct hints_slab *hints_slab_get(struct hints_process *p, uint32_t unit, uint16_t generation,
				  uint16_t class)
{
	struct slab_key key = {unit, generation, class};
	bool fresh;

	if (!array_fit((void **)&p->slab, &p->private->slab_room, p->slab_count, sizeof *p->slab))
		return NULL;
	size_t at = table_get(&p->private->slabs, &key, &fresh);
	if (at == TABLE_FULL)
		return NULL;
	if (fresh) {
		p->slab[at] = (struct hints_slab){.unit = unit,
						  .generation = generation,
						  .class = class,
						  .home = HINTS_NODE_UNKNOWN,
						  .from = HINTS_NODE_UNKNOWN};
		p->slab_count++;
	}
	return &p->slab[at];
}

struct hints_thread *hints_thread_get(struct hints_process *p, int tid, enum hints_kind kind,
				      uint16_t class, int from)
{
	struct thread_key key = {tid, from, kind, class};
	bool fresh;

	if (!array_fit((void **)&p->thread, &p->private->thread_room, p->thread_count,
		       sizeof *p->thread))
		return NULL;
	size_t at = table_get(&p->private->threads, &key, &fresh);
	if (at == TABLE_FULL)
		return NULL;
	if (fresh) {
		p->thread[at] =
		    (struct hints_thread){.tid = tid, .kind = kind, .class = class, .from = from};
		p->thread_count++;
	}
	return &p->thread[at];
}

bool hints_sample_add(struct hints_process *p, const struct hints_sample *sample)
{
	struct hints_private *private = p->private;

	if (!p->sample)
		p->sample = calloc(SAMPLES_MAX, sizeof *p->sample);
	if (!p->sample)
		return false;
	p->sample[private->sample_next] = *sample;
	private->sample_next = (private->sample_next + 1) % SAMPLES_MAX;
	if (p->sample_count < SAMPLES_MAX)
		p->sample_count++;
	return true;
}

/* --- Settling. --- */

/* Two points become one, so that a long session keeps its shape. */
static size_t points_halve(struct hints_point *point, size_t count)
{
	for (size_t i = 0; i + 1 < count; i += 2) {
		point[i / 2] = point[i + 1];
		hints_counts_add(&point[i / 2].n, &point[i].n);
	}
	if (count % 2)
		point[count / 2] = point[count - 1];
	return (count + 1) / 2;
}

static bool point_add(struct hints_point **point, size_t *count, uint64_t now_ms,
		      const struct hints_counts *n)
{
	if (!*point)
		*point = calloc(POINTS_MAX, sizeof **point);
	if (!*point)
		return false;
	if (*count == POINTS_MAX)
		*count = points_halve(*point, *count);
	(*point)[(*count)++] = (struct hints_point){.time_ms = now_ms, .n = *n};
	return true;
}

static bool process_settle(struct hints_process *p, uint64_t now_ms)
{
	struct hints_counts fresh;

	memset(&p->total, 0, sizeof p->total);
	memset(p->kind, 0, sizeof p->kind);
	for (size_t i = 0; i < p->cell_count; i++) {
		hints_counts_add(&p->total, &p->cell[i].n);
		hints_counts_add(&p->kind[p->cell[i].kind], &p->cell[i].n);
	}
	fresh = counts_since(&p->total, &p->private->before);
	p->private->before = p->total;
	return (p->state != HINTS_LIVE && fresh.faults == 0) ||
	       point_add(&p->point, &p->point_count, now_ms, &fresh);
}

static int by_remote(const void *a, const void *b)
{
	const struct hints_process *x = a, *y = b;

	if (x->total.remote != y->total.remote)
		return x->total.remote < y->total.remote ? 1 : -1;
	if (x->total.faults != y->total.faults)
		return x->total.faults < y->total.faults ? 1 : -1;
	return x->pid != y->pid ? (x->pid < y->pid ? -1 : 1) : (int)x->image - (int)y->image;
}

bool hints_settle(struct hints *h, uint64_t now_ms)
{
	struct hints_counts before = h->total, fresh;
	bool good = true;

	h->now_ms = now_ms;
	memset(&h->total, 0, sizeof h->total);
	for (size_t i = 0; i < h->process_count; i++) {
		good &= process_settle(&h->process[i], now_ms);
		hints_counts_add(&h->total, &h->process[i].total);
	}
	if (h->process_count)
		qsort(h->process, h->process_count, sizeof *h->process, by_remote);
	fresh = counts_since(&h->total, &before);
	return point_add(&h->point, &h->point_count, now_ms, &fresh) && good;
}

void hints_free(struct hints *h)
{
	for (size_t i = 0; i < h->process_count; i++) {
		struct hints_process *p = &h->process[i];

		table_free(&p->private->cells);
		table_free(&p->private->slabs);
		table_free(&p->private->threads);
		free(p->private);
		free(p->cell);
		free(p->slab);
		free(p->thread);
		free(p->sample);
		free(p->point);
		free(p->residency);
	}
	free(h->process);
	free(h->point);
	free(h->node);
	memset(h, 0, sizeof *h);
}
