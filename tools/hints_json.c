/* SPDX-License-Identifier: MIT */
/* The document of numaslab-hints(1), schema 1. */
#include <stdlib.h>

#include "telemetry/ring.h"
#include "tools/hints_json.h"
#include "tools/hints_session.h"

#define CLASSES_SHOWN 1024u
#define SLABS_SHOWN   1024u
#define THREADS_SHOWN 256u

static const char *const kinds[HINTS_KINDS] = {"slab", "large", "stack", "file", "other"};

static void put_counts(struct json *j, const struct hints_counts *n, uint32_t page_size)
{
	json_number(j, "faults", n->faults);
	json_number(j, "local", n->local);
	json_number(j, "remote", n->remote);
	json_number(j, "unjoined", n->unjoined);
	json_number(j, "pages", n->pages);
	json_number(j, "bytes", n->pages * page_size);
	json_number(j, "migrated", n->migrated);
	json_number(j, "failed", n->failed);
}

static void put_total(struct json *j, const char *key, const struct hints_counts *n,
		      uint32_t page_size)
{
	json_open(j, key, '{');
	put_counts(j, n, page_size);
	json_close(j, '}');
}

static void put_node(struct json *j, const char *key, int node)
{
	if (node < 0)
		json_null(j, key);
	else
		json_int(j, key, node);
}

static void put_size(struct json *j, uint32_t size)
{
	if (size)
		json_number(j, "size", size);
	else
		json_null(j, "size");
}

static void put_history(struct json *j, const struct hints *h, const struct hints_point *point,
			size_t count)
{
	json_open(j, "history", '[');
	for (size_t i = 0; i < count; i++) {
		json_open(j, NULL, '{');
		json_number(j, "ms", point[i].time_ms - h->start_ms);
		put_counts(j, &point[i].n, h->page_size);
		json_close(j, '}');
	}
	json_close(j, ']');
}

/* --- A process. --- */

static void put_matrix(struct json *j, const struct hints *h, const struct hints_process *p)
{
	json_open(j, "matrix", '[');
	for (size_t i = 0; i <= h->node_count; i++) {
		int home = i < h->node_count ? h->node[i] : HINTS_NODE_UNKNOWN;

		for (size_t k = 0; k < h->node_count; k++) {
			struct hints_counts n;

			hints_sum(h, p, HINTS_KINDS, HINTS_CLASS_NONE, home, h->node[k], &n);
			if (n.faults == 0)
				continue;
			json_open(j, NULL, '{');
			put_node(j, "home", home);
			put_node(j, "node", h->node[k]);
			put_counts(j, &n, h->page_size);
			json_close(j, '}');
		}
	}
	json_close(j, ']');
}

static void put_cells(struct json *j, const struct hints *h, const struct hints_process *p)
{
	json_open(j, "cells", '[');
	for (size_t i = 0; i < p->cell_count; i++) {
		const struct hints_cell *c = &p->cell[i];

		json_open(j, NULL, '{');
		json_text(j, "kind", kinds[c->kind]);
		put_size(j, c->block_size);
		put_node(j, "home", c->home);
		put_node(j, "node", c->from);
		put_counts(j, &c->n, h->page_size);
		json_close(j, '}');
	}
	json_close(j, ']');
}

static void put_classes(struct json *j, const struct hints *h, const struct hints_process *p)
{
	struct hints_class *class = calloc(CLASSES_SHOWN, sizeof *class);
	size_t count = class ? hints_classes(h, p, class, CLASSES_SHOWN) : 0;

	json_open(j, "classes", '[');
	for (size_t i = 0; i < count; i++) {
		json_open(j, NULL, '{');
		put_size(j, class[i].block_size);
		put_node(j, "home", class[i].home);
		put_node(j, "node", class[i].from);
		json_number(j, "node_faults", class[i].from_faults);
		json_number(j, "slabs", class[i].slabs);
		json_number(j, "affected_bytes", class[i].affected_bytes);
		put_counts(j, &class[i].n, h->page_size);
		json_close(j, '}');
	}
	json_close(j, ']');
	free(class);
}

static void put_slabs(struct json *j, const struct hints *h, const struct hints_process *p)
{
	const struct hints_slab *slab[SLABS_SHOWN];
	size_t count = hints_slabs(p, slab, SLABS_SHOWN);

	json_open(j, "slabs", '[');
	for (size_t i = 0; i < count; i++) {
		json_open(j, NULL, '{');
		json_number(j, "address", slab[i]->address);
		json_number(j, "slab_bytes", slab[i]->slab_bytes);
		json_number(j, "generation", slab[i]->generation);
		put_size(j, slab[i]->block_size);
		put_node(j, "home", slab[i]->home);
		put_node(j, "node", slab[i]->from);
		json_number(j, "node_faults", slab[i]->from_faults);
		json_bool(j, "late", slab[i]->late);
		put_counts(j, &slab[i]->n, h->page_size);
		json_close(j, '}');
	}
	json_close(j, ']');
}

static void put_threads(struct json *j, const struct hints *h, const struct hints_process *p)
{
	const struct hints_thread *thread[THREADS_SHOWN];
	size_t count = hints_threads(p, thread, THREADS_SHOWN);

	json_open(j, "threads", '[');
	for (size_t i = 0; i < count; i++) {
		json_open(j, NULL, '{');
		json_int(j, "tid", thread[i]->tid);
		json_text(j, "comm", thread[i]->comm);
		json_text(j, "kind", kinds[thread[i]->kind]);
		put_size(j, thread[i]->block_size);
		put_node(j, "node", thread[i]->from);
		put_counts(j, &thread[i]->n, h->page_size);
		json_close(j, '}');
	}
	json_close(j, ']');
}

static void put_samples(struct json *j, const struct hints *h, const struct hints_process *p)
{
	json_open(j, "samples", '[');
	for (size_t i = 0; i < p->sample_count; i++) {
		const struct hints_sample *s = &p->sample[i];

		json_open(j, NULL, '{');
		json_number(j, "ms", s->time_ms > h->start_ms ? s->time_ms - h->start_ms : 0);
		json_number(j, "address", s->address);
		json_number(j, "ip", s->ip);
		json_int(j, "tid", s->tid);
		put_node(j, "node", s->from);
		json_text(j, "kind", kinds[s->kind]);
		put_size(j, s->block_size);
		json_number(j, "pages", s->pages);
		json_close(j, '}');
	}
	json_close(j, ']');
}

static void put_observation(struct json *j, const struct hints_observation *o)
{
	static const char *const how[] = {[RING_OBSERVE_NONE] = "none",
					  [RING_OBSERVE_PREFERRED] = "preferred",
					  [RING_OBSERVE_BIND] = "bind",
					  [RING_OBSERVE_REFUSED] = "refused"};

	if (!o->asked) {
		json_null(j, "observation");
		return;
	}
	json_open(j, "observation", '{');
	json_number(j, "sample", o->sample);
	json_number(j, "seeds", o->seeds);
	json_number(j, "passes", o->passes);
	json_bool(j, "acknowledged", o->acknowledged);
	json_text(j, "how", how[o->how]);
	json_number(j, "observed_bytes", o->observed_bytes);
	json_number(j, "pte_updates", o->pte_updates);
	json_number(j, "hint_faults", o->hint_faults);
	json_number(j, "system_ms", o->system_ms);
	json_close(j, '}');
}

static void put_residency(struct json *j, const struct hints_process *p)
{
	json_open(j, "residency", '[');
	for (size_t i = 0; i < p->residency_count; i++) {
		json_open(j, NULL, '{');
		json_int(j, "node", p->residency[i].node);
		json_number(j, "pages", p->residency[i].pages);
		json_number(j, "heap_pages", p->residency[i].heap_pages);
		json_close(j, '}');
	}
	json_close(j, ']');
}

static void put_process(struct json *j, const struct hints *h, const struct hints_process *p)
{
	static const char *const states[] = {"live", "exited", "replaced"};
	char advice[HINTS_ADVICE_SIZE];

	json_open(j, NULL, '{');
	json_int(j, "pid", p->pid);
	json_text(j, "comm", p->comm);
	json_text(j, "state", states[p->state]);
	json_bool(j, "publishes", p->publishes);
	if (*p->refusal)
		json_text(j, "refusal", p->refusal);
	else
		json_null(j, "refusal");
	if (*p->placement)
		json_text(j, "placement", p->placement);
	else
		json_null(j, "placement");
	json_bool(j, "masked", p->masked);
	json_number(j, "heap_bytes", p->heap_bytes);
	put_total(j, "total", &p->total, h->page_size);
	json_open(j, "kinds", '{');
	for (int k = 0; k < HINTS_KINDS; k++)
		put_total(j, kinds[k], &p->kind[k], h->page_size);
	json_close(j, '}');
	put_matrix(j, h, p);
	put_cells(j, h, p);
	put_classes(j, h, p);
	put_slabs(j, h, p);
	put_threads(j, h, p);
	put_samples(j, h, p);
	json_open(j, "resolve", '{');
	json_number(j, "late", p->resolve_late);
	json_number(j, "failed", p->resolve_failed);
	json_number(j, "damaged", p->damaged);
	json_close(j, '}');
	put_observation(j, &p->observation);
	put_residency(j, p);
	put_history(j, h, p->point, p->point_count);
	json_text(j, "advice", hints_advice(h, p, advice, sizeof advice));
	json_close(j, '}');
}

/* --- The document. --- */

static void put_drops(struct json *j, const struct hints_drops *d)
{
	json_open(j, "drops", '{');
	json_number(j, "cells", d->cells);
	json_number(j, "slabs", d->slabs);
	json_number(j, "threads", d->threads);
	json_number(j, "samples", d->samples);
	json_number(j, "events", d->events);
	json_close(j, '}');
}

static void put_kernel(struct json *j, const char *key, const struct hints_kernel_count *c)
{
	if (!c->known) {
		json_null(j, key);
		return;
	}
	json_open(j, key, '{');
	json_number(j, "low", c->low);
	json_number(j, "high", c->high);
	json_close(j, '}');
}

static void put_tier(struct json *j, const struct hints *h)
{
	json_text(j, "tier", h->tier_name);
	json_bool(j, "exact", h->exact);
	json_text(j, "unknown", h->tier_unknown);
}

static void put_balancing(struct json *j, const struct hints *h)
{
	if (h->balancing < 0)
		json_null(j, "balancing");
	else
		json_int(j, "balancing", h->balancing);
}

static void put_session(struct json *j, const struct hints *h)
{
	put_tier(j, h);
	json_open(j, "better_tiers", '[');
	for (int i = 0; i < (int)h->tier; i++) {
		json_open(j, NULL, '{');
		json_text(j, "tier", hints_tier_name(i));
		json_text(j, "why", h->tier_why[i]);
		json_close(j, '}');
	}
	json_close(j, ']');
	put_balancing(j, h);
	json_number(j, "page_bytes", h->page_size);
	json_number(j, "duration_ms", h->now_ms - h->start_ms);
	json_bool(j, "all", h->all);
	json_open(j, "nodes", '[');
	for (size_t i = 0; i < h->node_count; i++)
		json_int(j, NULL, h->node[i]);
	json_close(j, ']');
	put_drops(j, &h->drops);
	json_open(j, "kernel", '{');
	put_kernel(j, "numa_hint_faults", &h->faults);
	put_kernel(j, "numa_hint_faults_local", &h->local);
	put_kernel(j, "numa_pages_migrated", &h->migrated);
	json_close(j, '}');
	json_number(j, "thread_moves", h->task_moves);
}

void hints_json(FILE *out, const struct hints *h)
{
	struct json j = {.out = out};

	json_open(&j, NULL, '{');
	json_number(&j, "schema", 1);
	put_session(&j, h);
	put_total(&j, "total", &h->total, h->page_size);
	put_history(&j, h, h->point, h->point_count);
	json_open(&j, "processes", '[');
	for (size_t i = 0; i < h->process_count; i++)
		put_process(&j, h, &h->process[i]);
	json_close(&j, ']');
	json_close(&j, '}');
	fputc('\n', out);
}

/* --- Parts, for the document of top. --- */

void hints_json_session(struct json *j, const struct hints *h)
{
	put_tier(j, h);
	put_balancing(j, h);
	json_number(j, "duration_ms", h->now_ms - h->start_ms);
	put_drops(j, &h->drops);
}

void hints_json_heap(struct json *j, const struct hints *h, const struct hints_process *p)
{
	struct hints_counts heap;

	json_bool(j, "masked", p->masked);
	hints_sum(h, p, HINTS_KINDS, HINTS_CLASS_NONE, HINTS_ANY, HINTS_ANY, &heap);
	put_counts(j, &heap, h->page_size);
	put_matrix(j, h, p);
}
