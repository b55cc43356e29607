/* SPDX-License-Identifier: MIT */
/* The report as JSON, schema 1 (described in numaslab-compare(1)): everything, raw samples too, so
 * that --replay and --base can judge it again. */
#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cmd.h"
#include "tools/compare_report.h"

/* Invalid UTF-8 would make the document unreadable, so printable() goes over all of it but the
 * controls, which JSON escapes. */
static cJSON *string_json(const char *text)
{
	size_t used = 0, size = strlen(text) + 1;
	char *out = malloc(size), *run = malloc(size);
	cJSON *string;

	if (!out || !run)
		abort();
	while (*text) {
		size_t n = 0;

		while ((unsigned char)text[n] >= ' ')
			n++;
		memcpy(run, text, n);
		run[n] = '\0';
		printable(out + used, size - used, run);
		used += strlen(out + used);
		text += n;
		if (*text)
			out[used++] = *text++;
	}
	out[used] = '\0';
	string = cJSON_CreateString(out);
	free(out);
	free(run);
	return string;
}

static void put_text(cJSON *o, const char *key, const char *text)
{
	cJSON_AddItemToObject(o, key, string_json(text));
}

static cJSON *machine_json(const struct cmp_machine *m)
{
	cJSON *o = cJSON_CreateObject(), *nodes, *excluded;

	put_text(o, "kernel", m->kernel);
	put_text(o, "arch", m->arch);
	put_text(o, "cpu", m->cpu);
	put_text(o, "libc", m->libc);
	cJSON_AddNumberToObject(o, "cpus_online", m->cpus_online);
	cJSON_AddNumberToObject(o, "cpus_allowed", m->cpus_allowed);
	cJSON_AddNumberToObject(o, "memory_bytes", m->memory);
	cJSON_AddNumberToObject(o, "load", m->load);
	if (m->numa_balancing >= 0)
		cJSON_AddNumberToObject(o, "numa_balancing", m->numa_balancing);
	else
		cJSON_AddNullToObject(o, "numa_balancing");
	put_text(o, "thp", m->thp);
	put_text(o, "governor", m->governor);
	nodes = cJSON_AddArrayToObject(o, "nodes");
	for (size_t i = 0; i < m->nodes; i++) {
		cJSON *n = cJSON_CreateObject();

		cJSON_AddNumberToObject(n, "node", m->node[i].number);
		cJSON_AddNumberToObject(n, "memory_bytes", m->node[i].memory);
		put_text(n, "cpus", m->node[i].cpus);
		cJSON_AddItemToArray(nodes, n);
	}
	excluded = cJSON_AddArrayToObject(o, "excluded_nodes");
	for (size_t i = 0; i < m->excluded_n; i++)
		cJSON_AddItemToArray(excluded, cJSON_CreateNumber(m->excluded[i]));
	return o;
}

static cJSON *allocator_json(const char *name, const char *library)
{
	cJSON *o = cJSON_CreateObject();

	put_text(o, "name", name);
	if (library[0])
		put_text(o, "library", library);
	else
		cJSON_AddNullToObject(o, "library");
	return o;
}

static cJSON *summary_json(const struct cmp_summary *s)
{
	cJSON *o = cJSON_CreateObject();

	cJSON_AddNumberToObject(o, "runs", (double)s->n);
	cJSON_AddNumberToObject(o, "min", s->min);
	cJSON_AddNumberToObject(o, "max", s->max);
	cJSON_AddNumberToObject(o, "mean", s->mean);
	cJSON_AddNumberToObject(o, "stddev", s->stddev);
	cJSON_AddNumberToObject(o, "median", s->median);
	return o;
}

/* change, interval: in the direction of the value; as a share, or in units when the limit is. */
static void put_estimate(cJSON *o, const struct cmp_estimate *e, int dir)
{
	double range[2] = {dir > 0 ? e->low : -e->high, dir > 0 ? e->high : -e->low};

	cJSON_AddNumberToObject(o, "change", dir * e->point);
	cJSON_AddItemToObject(o, "interval", cJSON_CreateDoubleArray(range, 2));
	cJSON_AddBoolToObject(o, "exact", e->exact);
}

static cJSON *metric_json(const struct cmp_report *r, int m)
{
	static const char *const units[] = {[CMP_SECONDS] = "s",
					    [CMP_BYTES] = "bytes",
					    [CMP_COUNT] = "count",
					    [CMP_SHARE] = "share",
					    [CMP_FIGURE] = "figure"};
	static const char *const tendency[] = {"better", "same", "worse"};
	const struct cmp_judgement *j = &r->m[m];
	cJSON *o = cJSON_CreateObject(), *control;

	put_text(o, "name", cmp_metrics[m].name);
	put_text(o, "unit", units[cmp_metrics[m].unit]);
	put_text(o, "better", j->dir > 0 ? "lower" : "higher");
	cJSON_AddItemToObject(o, "before", summary_json(&j->before));
	cJSON_AddItemToObject(o, "after", summary_json(&j->after));
	put_text(o, "scale", j->threshold.scale == CMP_RELATIVE ? "relative" : "absolute");
	if (j->threshold.judged)
		cJSON_AddNumberToObject(o, "limit", j->threshold.limit);
	else
		cJSON_AddNullToObject(o, "limit");
	put_estimate(o, &j->effect, j->dir);
	control = j->control_ran ? cJSON_AddObjectToObject(o, "control")
				 : cJSON_AddNullToObject(o, "control");
	if (j->control_ran) {
		put_estimate(control, &j->control, j->dir);
		cJSON_AddBoolToObject(control, "passed", j->control_ok);
	}
	if (j->threshold.judged) {
		cJSON_AddNumberToObject(o, "p", j->p);
		put_text(o, "verdict", cmp_verdict_text(j->verdict));
	}
	cJSON_AddNumberToObject(o, "p_no_change", j->p_zero);
	put_text(o, "tendency", tendency[j->tendency + 1]);
	return o;
}

/* side: NULL where the place tells it. */
static cJSON *sample_json(const struct cmp_document *d, const struct cmp_sample *s, size_t pair,
			  const char *side)
{
	cJSON *o = cJSON_CreateObject(), *nodes;

	cJSON_AddNumberToObject(o, "pair", (double)pair);
	if (side)
		put_text(o, "side", side);
	cJSON_AddNumberToObject(o, "order", s->order);
	cJSON_AddNumberToObject(o, "status", s->status);
	for (int m = 0; m < CMP_M_COUNT; m++)
		if (!isnan(s->v[m]))
			cJSON_AddNumberToObject(o, cmp_metrics[m].name, s->v[m]);
	if (d->machine.nodes > 1) {
		nodes = cJSON_CreateDoubleArray(s->node_bytes, (int)d->machine.nodes);
		cJSON_AddItemToObject(o, "node_bytes", nodes);
	}
	return o;
}

static void put_problem(cJSON *root, const struct cmp_problem *p)
{
	cJSON *o;

	if (!p->what[0]) {
		cJSON_AddNullToObject(root, "problem");
		return;
	}
	o = cJSON_AddObjectToObject(root, "problem");
	put_text(o, "what", p->what);
	put_text(o, "how", p->how);
	put_text(o, "output", p->output);
}

static void put_metrics(cJSON *o, const struct cmp_report *r)
{
	cJSON *list = cJSON_AddArrayToObject(o, "metrics");

	for (int m = 0; m < CMP_M_COUNT; m++)
		if (r->m[m].present || r->m[m].after.n)
			cJSON_AddItemToArray(list, metric_json(r, m));
}

static cJSON *peer_json(const struct cmp_document *d, size_t i)
{
	const struct cmp_peer *p = &d->peer[i];
	cJSON *o = allocator_json(p->name, p->library), *list;

	put_problem(o, &p->problem);
	put_metrics(o, &p->report);
	list = cJSON_AddArrayToObject(o, "samples");
	for (size_t k = 0; k < d->runs.n[CMP_PEER + i]; k++)
		cJSON_AddItemToArray(list, sample_json(d, &d->runs.side[CMP_PEER + i][k], k, NULL));
	return o;
}

static void put_plan(cJSON *root, const struct cmp_document *d)
{
	double looks[3];

	for (size_t i = 0; i < d->plan.nlooks; i++)
		looks[i] = (double)d->plan.looks[i];
	cJSON_AddNumberToObject(root, "seed", (double)d->plan.seed);
	cJSON_AddItemToObject(root, "looks", cJSON_CreateDoubleArray(looks, (int)d->plan.nlooks));
	cJSON_AddNumberToObject(root, "alpha", CMP_ALPHA);
	put_text(root, "rss_source", d->rss_source);
	for (int i = 0; i < CMP_FIGURES; i++) {
		const char *name = cmp_metrics[CMP_M_FIGURE + i].name;
		char better[32];

		if (!d->figure[i][0])
			continue;
		snprintf(better, sizeof better, "%s_better", name);
		put_text(root, name, d->figure[i]);
		put_text(root, better, d->plan.figure_higher[i] ? "higher" : "lower");
	}
}

void cmp_write_json(FILE *f, const struct cmp_document *d)
{
	static const char *const sides[] = {"before", "after", "control"};
	cJSON *root = cJSON_CreateObject(), *list;
	char *text;

	cJSON_AddNumberToObject(root, "schema", 1);
	put_text(root, "tool", "numaslab compare " NUMASLAB_VERSION);
	put_text(root, "started", d->machine.started);
	put_text(root, "verdict", cmp_verdict_text(cmp_document_verdict(d)));
	cJSON_AddNumberToObject(root, "exit_status", cmp_exit_status(d));
	put_problem(root, &d->problem);
	list = cJSON_AddArrayToObject(root, "command");
	for (int i = 0; i < d->argc; i++)
		cJSON_AddItemToArray(list, string_json(d->argv[i]));
	cJSON_AddItemToObject(root, "before", allocator_json(d->name[0], d->library[0]));
	cJSON_AddItemToObject(root, "after", allocator_json(d->name[1], d->library[1]));
	if (d->base)
		put_text(root, "base_started", d->base->machine.started);
	cJSON_AddItemToObject(root, "machine", machine_json(&d->machine));
	put_plan(root, d);
	cJSON_AddNumberToObject(root, "pairs", (double)d->report.pairs);
	put_metrics(root, &d->report);
	list = cJSON_AddArrayToObject(root, "notes");
	for (size_t i = 0; i < d->notes; i++)
		cJSON_AddItemToArray(list, string_json(d->note[i]));
	list = cJSON_AddArrayToObject(root, "samples");
	for (int side = 0; side < CMP_PEER; side++)
		for (size_t i = 0; i < d->runs.n[side]; i++)
			cJSON_AddItemToArray(
			    list, sample_json(d, &d->runs.side[side][i], i, sides[side]));
	list = cJSON_AddArrayToObject(root, "peers");
	for (size_t i = 0; i < d->peers; i++)
		cJSON_AddItemToArray(list, peer_json(d, i));
	text = cJSON_Print(root);
	if (text)
		fprintf(f, "%s\n", text);
	cJSON_free(text);
	cJSON_Delete(root);
}
