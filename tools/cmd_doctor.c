/* SPDX-License-Identifier: MIT */
/* numaslab doctor: prints the machine's nodes and the verdicts, as text or as JSON. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef HAVE_CJSON
#include <cjson/cJSON.h>
#endif
#include "tools/cmd.h"
#include "tools/commands.h"
#include "tools/findings.h"

extern char **environ;

enum { OPT_JSON = 256, OPT_ROOT, OPT_VERSION };

static const struct option options[] = {
    {"json", no_argument, NULL, OPT_JSON},
    {"root", required_argument, NULL, OPT_ROOT},
    {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, OPT_VERSION},
    {NULL, 0, NULL, 0},
};

static const char *const status_words[] = {"ok", "warn", "missing"};

struct report {
	struct facts facts;
	struct finding findings[FINDINGS_MAX];
	size_t count, by_status[3];
};

static int print_help(void)
{
	puts("Usage: numaslab doctor [--json]\n"
	     "Show this machine's nodes and what it offers to numaslab: what is there, what is\n"
	     "missing, what that costs, and the command that mends it.\n\n"
	     "      --json     one JSON document (schema 1, see numaslab-doctor(1))\n"
	     "      --root DIR look at DIR/sys, DIR/proc and DIR/dev; no system call is tried\n"
	     "      --help     show this text\n"
	     "      --version  show the version\n\n"
	     "Exit status: 0 whatever was found, 2 wrong usage, 77 --json is not built in.");
	return STATUS_DONE;
}

static void print_colored(const char *color, const char *word, int width)
{
	const char *no_color = getenv("NO_COLOR");

	if (isatty(STDOUT_FILENO) && !(no_color && *no_color))
		printf("\033[%sm%-*s\033[0m", color, width, word);
	else
		printf("%-*s", width, word);
}

static void print_node_row(const struct machine *m, size_t index, bool with_distances)
{
	const struct node *n = &m->nodes[index];
	char cpus[128];

	printf("%6d %9llu MiB %9llu MiB  %-12s", n->id, (unsigned long long)n->memory >> 20,
	       (unsigned long long)n->free >> 20,
	       n->has_cpu ? printable(cpus, sizeof cpus, n->cpus) : "none");
	for (size_t i = 0; with_distances && i < m->count; i++)
		if (!node_is_empty(&m->nodes[i]))
			printf(" %4d", machine_distance(m, index, i));
	putchar('\n');
}

/* Beyond this the rows leave the screen; --json has the distances all the same. */
#define DISTANCE_COLUMNS 12

static void print_nodes(const struct machine *m)
{
	size_t usable = 0;
	bool wide;

	for (size_t i = 0; i < m->count; i++)
		usable += !node_is_empty(&m->nodes[i]);
	wide = usable > DISTANCE_COLUMNS;
	printf("%6s %13s %13s  %-12s", "node", "memory", "free", "CPUs");
	printf(wide || !usable ? "\n" : " distance to\n%49s", "");
	for (size_t i = 0; !wide && i < m->count; i++)
		if (!node_is_empty(&m->nodes[i]))
			printf(" %4d", m->nodes[i].id);
	if (!wide && usable)
		putchar('\n');
	for (size_t i = 0; i < m->count; i++)
		if (!node_is_empty(&m->nodes[i]))
			print_node_row(m, i, !wide);
	for (size_t i = 0; i < m->count; i++) {
		char reason[256], shown[256];

		if (!node_is_empty(&m->nodes[i]))
			continue;
		node_reason(m, i, reason, sizeof reason);
		printf("Left out: node %d (%s)\n", m->nodes[i].id,
		       printable(shown, sizeof shown, reason));
	}
}

static void print_finding(const struct finding *f)
{
	static const char *const colors[] = {"32", "33", "31"};
	char shown[600];

	print_colored(colors[f->status], status_words[f->status], 8);
	printf("%-15s ", f->name);
	print_wrapped(stdout, printable(shown, sizeof shown, f->have), 24, 24, 80);
	if (*f->cost) {
		printf("%24scost: ", "");
		print_wrapped(stdout, printable(shown, sizeof shown, f->cost), 30, 30, 80);
	}
	if (*f->mend) /* not wrapped: it is to be copied */
		printf("%24smend: %s\n", "", printable(shown, sizeof shown, f->mend));
}

static void print_text(const struct report *r)
{
	char release[80], arch[80];

	printf("numaslab " NUMASLAB_VERSION " on Linux %s %s, pages of %ld KiB\n\n",
	       printable(release, sizeof release, r->facts.release),
	       printable(arch, sizeof arch, r->facts.arch), r->facts.page >> 10);
	print_nodes(&r->facts.machine);
	putchar('\n');
	for (size_t i = 0; i < r->count; i++)
		print_finding(&r->findings[i]);
	printf("\n%zu checked: %zu ok, %zu warn, %zu missing\n", r->count, r->by_status[FINDING_OK],
	       r->by_status[FINDING_WARN], r->by_status[FINDING_MISSING]);
}

#ifdef HAVE_CJSON

static void add_text(cJSON *to, const char *name, const char *text)
{
	char shown[600];

	cJSON_AddStringToObject(to, name, printable(shown, sizeof shown, text));
}

static cJSON *append_object(cJSON *array)
{
	cJSON *object = cJSON_CreateObject();

	cJSON_AddItemToArray(array, object);
	return object;
}

static void add_node(cJSON *array, const struct machine *m, size_t index)
{
	const struct node *n = &m->nodes[index];
	cJSON *object = append_object(array), *distances;

	cJSON_AddNumberToObject(object, "id", n->id);
	cJSON_AddNumberToObject(object, "memory_bytes", (double)n->memory);
	cJSON_AddNumberToObject(object, "free_bytes", (double)n->free);
	add_text(object, "cpus", n->cpus);
	distances = cJSON_AddArrayToObject(object, "distances");
	for (size_t i = 0; i < m->count; i++)
		if (!node_is_empty(&m->nodes[i]))
			cJSON_AddItemToArray(distances,
					     cJSON_CreateNumber(machine_distance(m, index, i)));
}

static void add_nodes(cJSON *root, const struct machine *m)
{
	cJSON *nodes = cJSON_AddArrayToObject(root, "nodes");
	cJSON *excluded = cJSON_AddArrayToObject(root, "excluded_nodes");
	char reason[256];

	for (size_t i = 0; i < m->count; i++) {
		cJSON *object;

		if (!node_is_empty(&m->nodes[i])) {
			add_node(nodes, m, i);
			continue;
		}
		object = append_object(excluded);
		node_reason(m, i, reason, sizeof reason);
		cJSON_AddNumberToObject(object, "id", m->nodes[i].id);
		add_text(object, "cpus", m->nodes[i].cpus);
		add_text(object, "reason", reason);
	}
}

static void add_findings(cJSON *root, const struct report *r)
{
	cJSON *checks = cJSON_AddArrayToObject(root, "checks"), *summary;

	for (size_t i = 0; i < r->count; i++) {
		cJSON *object = append_object(checks);

		add_text(object, "name", r->findings[i].name);
		add_text(object, "status", status_words[r->findings[i].status]);
		add_text(object, "have", r->findings[i].have);
		add_text(object, "cost", r->findings[i].cost);
		add_text(object, "mend", r->findings[i].mend);
	}
	summary = cJSON_AddObjectToObject(root, "summary");
	for (int i = 0; i < 3; i++)
		cJSON_AddNumberToObject(summary, status_words[i], (double)r->by_status[i]);
}

static int print_json(const struct report *r)
{
	cJSON *root = cJSON_CreateObject();
	char *text;

	cJSON_AddNumberToObject(root, "schema", 1);
	add_text(root, "version", NUMASLAB_VERSION);
	add_text(root, "kernel", r->facts.release);
	add_text(root, "arch", r->facts.arch);
	cJSON_AddNumberToObject(root, "page_bytes", (double)r->facts.page);
	add_text(root, "source", r->facts.machine.source);
	add_nodes(root, &r->facts.machine);
	add_findings(root, r);
	text = cJSON_Print(root);
	cJSON_Delete(root);
	if (!text)
		return cmd_fail(STATUS_UNABLE, "doctor", "out of memory");
	puts(text);
	free(text);
	return STATUS_DONE;
}

#else

static int print_json(const struct report *r)
{
	(void)r;
	return cmd_fail(STATUS_UNABLE, "doctor",
			"--json is not built in: install libcjson-dev and run 'make' again");
}

#endif

static int report(const char *root, bool json)
{
	struct report r = {.count = 0};
	int status = STATUS_DONE;

	if (!facts_gather(&r.facts, root, environ))
		return cmd_fail(STATUS_UNABLE, "doctor", "out of memory");
	r.count = findings_judge(&r.facts, r.findings);
	for (size_t i = 0; i < r.count; i++)
		r.by_status[r.findings[i].status]++;
	if (json)
		status = print_json(&r);
	else
		print_text(&r);
	facts_free(&r.facts);
	if (fflush(stdout) && status == STATUS_DONE)
		status = cmd_fail(STATUS_UNABLE, "doctor", "cannot write the report: %m");
	return status;
}

int cmd_doctor(int argc, char **argv)
{
	const char *root = "";
	bool json = false;
	char shown[256];
	int got;

	opterr = 0;
	while ((got = getopt_long(argc, argv, "+:h", options, NULL)) != -1) {
		switch (got) {
		case OPT_JSON:
			json = true;
			break;
		case OPT_ROOT:
			root = optarg;
			break;
		case OPT_VERSION:
			return cmd_version();
		case 'h':
			return print_help();
		default:
			return cmd_option_error("doctor", argv, got, options);
		}
	}
	if (optind < argc)
		return cmd_usage("doctor", "it takes no argument, but was given '%s'",
				 printable(shown, sizeof shown, argv[optind]));
	if (*root && access(root, X_OK))
		return cmd_usage("doctor", "cannot look at '%s': %m",
				 printable(shown, sizeof shown, root));
	return report(root, json);
}
