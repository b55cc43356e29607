/* SPDX-License-Identifier: MIT */
/* Reads JSON schema 1 back.  The file may come from anywhere: every type and size is checked. */
#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cmd.h"
#include "tools/compare_report.h"

#define SAMPLES_MAX 100000

static void get_text(const cJSON *o, const char *key, char *out, size_t size)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(o, key);

	printable(out, size, cJSON_IsString(item) ? item->valuestring : "");
}

static double get_number(const cJSON *o, const char *key, double otherwise)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(o, key);

	return cJSON_IsNumber(item) && isfinite(item->valuedouble) ? item->valuedouble : otherwise;
}

/* A number that must be an integer from low to high, else `otherwise`. */
static int get_integer(const cJSON *o, const char *key, int low, int high, int otherwise)
{
	double v = get_number(o, key, NAN);

	return v >= low && v <= high && v == floor(v) ? (int)v : otherwise;
}

static void load_machine(struct cmp_machine *m, const cJSON *o)
{
	const cJSON *node;

	get_text(o, "kernel", m->kernel, sizeof m->kernel);
	get_text(o, "arch", m->arch, sizeof m->arch);
	get_text(o, "cpu", m->cpu, sizeof m->cpu);
	get_text(o, "libc", m->libc, sizeof m->libc);
	get_text(o, "thp", m->thp, sizeof m->thp);
	get_text(o, "governor", m->governor, sizeof m->governor);
	m->cpus_online = get_integer(o, "cpus_online", 0, 1 << 20, 0);
	m->cpus_allowed = get_integer(o, "cpus_allowed", 0, 1 << 20, 0);
	m->memory = get_number(o, "memory_bytes", 0);
	m->load = get_number(o, "load", 0);
	m->numa_balancing = get_integer(o, "numa_balancing", -1, 255, -1);
	cJSON_ArrayForEach(node, cJSON_GetObjectItemCaseSensitive(o, "nodes"))
	{
		struct cmp_node *n = &m->node[m->nodes];

		if (m->nodes == CMP_NODES_MAX)
			break;
		n->number = get_integer(node, "node", 0, 1 << 20, 0);
		n->memory = get_number(node, "memory_bytes", 0);
		get_text(node, "cpus", n->cpus, sizeof n->cpus);
		m->nodes++;
	}
	cJSON_ArrayForEach(node, cJSON_GetObjectItemCaseSensitive(o, "excluded_nodes"))
	{
		if (m->excluded_n < CMP_NODES_MAX && cJSON_IsNumber(node))
			m->excluded[m->excluded_n++] =
			    (int)fmin(fmax(node->valuedouble, 0), 1 << 20);
	}
}

static const char *load_sample(struct cmp_document *d, const cJSON *o)
{
	static const char *const sides[] = {"before", "after", "control"};
	const cJSON *nodes = cJSON_GetObjectItemCaseSensitive(o, "node_bytes");
	struct cmp_sample *s;
	char name[16];
	int side = 0;

	get_text(o, "side", name, sizeof name);
	while (side < CMP_SIDES && strcmp(name, sides[side]) != 0)
		side++;
	if (side == CMP_SIDES)
		return "a sample has no valid side";
	if (d->runs.n[side] == SAMPLES_MAX)
		return "too many samples";
	s = cmp_runs_next(&d->runs, side);
	s->order = (unsigned)get_integer(o, "order", 0, 1 << 30, 0);
	s->status = get_integer(o, "status", 0, 255, 0);
	for (int m = 0; m < CMP_M_COUNT; m++)
		s->v[m] = get_number(o, cmp_metrics[m].name, NAN);
	if (isnan(s->v[CMP_M_CPU])) /* older files tell the two apart only; NAN stays NAN */
		s->v[CMP_M_CPU] = s->v[CMP_M_USER] + s->v[CMP_M_SYS];
	for (int i = 0; i < CMP_NODES_MAX; i++) {
		const cJSON *bytes = cJSON_GetArrayItem(nodes, i);

		if (cJSON_IsNumber(bytes))
			s->node_bytes[i] = bytes->valuedouble;
	}
	d->runs.n[side]++;
	return NULL;
}

static const char *load_command(struct cmp_document *d, const cJSON *list)
{
	const cJSON *arg;

	if (!cJSON_IsArray(list) || !cJSON_GetArraySize(list))
		return "it has no command";
	d->argv = calloc((size_t)cJSON_GetArraySize(list) + 1, sizeof *d->argv);
	if (!d->argv)
		abort();
	cJSON_ArrayForEach(arg, list)
	{
		if (!cJSON_IsString(arg))
			return "its command is not a list of strings";
		d->argv[d->argc] = strdup(arg->valuestring);
		if (!d->argv[d->argc++])
			abort();
	}
	return NULL;
}

static void load_names(struct cmp_document *d, const cJSON *root)
{
	static const char *const keys[] = {"before", "after"};
	char better[16];

	for (int i = 0; i < 2; i++) {
		const cJSON *o = cJSON_GetObjectItemCaseSensitive(root, keys[i]);

		get_text(o, "name", d->name[i], sizeof d->name[i]);
		get_text(o, "library", d->library[i], sizeof d->library[i]);
	}
	get_text(root, "rss_source", d->rss_source, sizeof d->rss_source);
	for (int i = 0; i < CMP_FIGURES; i++) {
		const char *name = cmp_metrics[CMP_M_FIGURE + i].name;
		char key[32];

		snprintf(key, sizeof key, "%s_better", name);
		get_text(root, name, d->figure[i], sizeof d->figure[i]);
		get_text(root, key, better, sizeof better);
		d->plan.figure_higher[i] = !strcmp(better, "higher");
	}
	get_text(root, "started", d->machine.started, sizeof d->machine.started);
}

static void load_problem(struct cmp_document *d, const cJSON *o)
{
	const cJSON *output;

	get_text(o, "what", d->problem.what, sizeof d->problem.what);
	get_text(o, "how", d->problem.how, sizeof d->problem.how);
	/* Several lines; each is made safe where it is shown. */
	output = cJSON_GetObjectItemCaseSensitive(o, "output");
	if (cJSON_IsString(output))
		snprintf(d->problem.output, sizeof d->problem.output, "%s", output->valuestring);
}

const char *cmp_read_json(struct cmp_document *d, const char *text)
{
	cJSON *root = cJSON_Parse(text);
	const cJSON *sample;
	const char *why = NULL;

	memset(d, 0, sizeof *d);
	if (!cJSON_IsObject(root))
		why = "it is not JSON";
	else if (get_integer(root, "schema", 0, 1 << 30, -1) != 1)
		why = "its schema is not 1";
	if (!why)
		why = load_command(d, cJSON_GetObjectItemCaseSensitive(root, "command"));
	if (!why) {
		load_machine(&d->machine, cJSON_GetObjectItemCaseSensitive(root, "machine"));
		load_names(d, root);
		load_problem(d, cJSON_GetObjectItemCaseSensitive(root, "problem"));
		cJSON_ArrayForEach(sample, cJSON_GetObjectItemCaseSensitive(root, "samples"))
		{
			why = why ? why : load_sample(d, sample);
		}
	}
	if (!why && !d->problem.what[0] && (!d->runs.n[CMP_BEFORE] || !d->runs.n[CMP_AFTER]))
		why = "it holds no samples of both sides";
	cJSON_Delete(root);
	return why;
}
