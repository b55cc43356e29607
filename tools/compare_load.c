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

static const char *add_sample(struct cmp_document *d, const cJSON *o, int side)
{
	const cJSON *nodes = cJSON_GetObjectItemCaseSensitive(o, "node_bytes");
	struct cmp_sample *s;

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

static const char *load_sample(struct cmp_document *d, const cJSON *o)
{
	static const char *const sides[] = {"before", "after", "control"};
	char name[16];

	get_text(o, "side", name, sizeof name);
	for (int side = 0; side < CMP_PEER; side++)
		if (!strcmp(name, sides[side]))
			return add_sample(d, o, side);
	return "a sample has no valid side";
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

static void load_problem(struct cmp_problem *p, const cJSON *o)
{
	const cJSON *output;

	get_text(o, "what", p->what, sizeof p->what);
	get_text(o, "how", p->how, sizeof p->how);
	/* Several lines; each is made safe where it is shown. */
	output = cJSON_GetObjectItemCaseSensitive(o, "output");
	if (cJSON_IsString(output))
		snprintf(p->output, sizeof p->output, "%s", output->valuestring);
}

static const char *load_peers(struct cmp_document *d, const cJSON *list)
{
	const char *why = NULL;
	const cJSON *o, *sample;

	cJSON_ArrayForEach(o, list)
	{
		struct cmp_peer *p = &d->peer[d->peers];

		if (d->peers == CMP_PEERS)
			return "it has too many peers";
		get_text(o, "name", p->name, sizeof p->name);
		get_text(o, "library", p->library, sizeof p->library);
		load_problem(&p->problem, cJSON_GetObjectItemCaseSensitive(o, "problem"));
		cJSON_ArrayForEach(sample, cJSON_GetObjectItemCaseSensitive(o, "samples"))
		{
			why = why ? why : add_sample(d, sample, CMP_PEER + (int)d->peers);
		}
		d->peers++;
	}
	return why;
}

/* One comparison. */
static const char *load_document(struct cmp_document *d, const cJSON *root)
{
	const cJSON *sample;
	const char *why;

	if (get_integer(root, "schema", 0, 1 << 30, -1) != 1)
		return "its schema is not 1";
	why = load_command(d, cJSON_GetObjectItemCaseSensitive(root, "command"));
	if (why)
		return why;
	load_machine(&d->machine, cJSON_GetObjectItemCaseSensitive(root, "machine"));
	load_names(d, root);
	load_problem(&d->problem, cJSON_GetObjectItemCaseSensitive(root, "problem"));
	cJSON_ArrayForEach(sample, cJSON_GetObjectItemCaseSensitive(root, "samples"))
	{
		why = why ? why : load_sample(d, sample);
	}
	why = why ? why : load_peers(d, cJSON_GetObjectItemCaseSensitive(root, "peers"));
	if (!why && !d->problem.what[0] && (!d->runs.n[CMP_BEFORE] || !d->runs.n[CMP_AFTER]))
		why = "it holds no samples of both sides";
	return why;
}

static bool same_command(const struct cmp_document *d, const cJSON *argv)
{
	int n = 0;
	const cJSON *arg;

	cJSON_ArrayForEach(arg, argv)
	{
		if (n == d->argc || !cJSON_IsString(arg) || strcmp(arg->valuestring, d->argv[n]))
			return false;
		n++;
	}
	return n == d->argc;
}

/* Of a file that holds several comparisons the one with the command of `like`. */
static const cJSON *choose(const cJSON *list, const struct cmp_document *like, const char **why)
{
	const cJSON *o;

	cJSON_ArrayForEach(o, list)
	{
		if (like && same_command(like, cJSON_GetObjectItemCaseSensitive(o, "command")))
			return o;
	}
	*why = like ? "none of the comparisons that it holds is about this command"
		    : "it holds several comparisons, so it can serve as base only";
	return NULL;
}

const char *cmp_read_json(struct cmp_document *d, const char *text, const struct cmp_document *like)
{
	cJSON *root = cJSON_Parse(text);
	const cJSON *chosen = root, *list = cJSON_GetObjectItemCaseSensitive(root, "comparisons");
	const char *why = NULL;

	memset(d, 0, sizeof *d);
	if (!cJSON_IsObject(root))
		why = "it is not JSON";
	else if (list)
		chosen = choose(list, like, &why);
	if (!why)
		why = load_document(d, chosen);
	cJSON_Delete(root);
	return why;
}
