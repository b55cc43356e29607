/* SPDX-License-Identifier: MIT */
/* numaslab stat: one report of what processes publish. */
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cmd.h"
#include "tools/commands.h"
#include "tools/machine.h"
#include "tools/map_text.h"
#include "tools/missing.h"
#include "tools/reader_json.h"
#include "tools/reader_text.h"

#define HISTORY_MAX 4096

struct stat_options {
	bool json, dead, gc, map;
	int *pids; /* NULL: all */
	size_t pid_count;
};

static const struct option options[] = {
    {"json", no_argument, NULL, 'j'},
    {"dead", no_argument, NULL, 'd'},
    {"gc", no_argument, NULL, 'g'},
    {"map", no_argument, NULL, 'm'},
    {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, 'V'},
    {NULL, 0, NULL, 0},
};

static void print_help(void)
{
	fputs("Usage: numaslab stat [--json] [--map] [--dead] [PID...]\n"
	      "       numaslab stat --gc\n"
	      "Shows what each process under libnumaslab.so holds, by node and by size class.\n"
	      "Without PID: every process that publishes (from an age of one second on).\n\n"
	      "      --json     one JSON document, described in numaslab-format(5)\n"
	      "      --map      the slabs by address too: their states, and how full they are\n"
	      "      --dead     processes that ended without removing their file (killed, or\n"
	      "                 replaced by exec), with their last minutes\n"
	      "      --gc       remove those files, your own only\n"
	      "      --help     show this text\n"
	      "      --version  show the version\n\n"
	      "Exit status: 0 done, 2 wrong usage, 3 no such process, or it does not publish,\n"
	      "4 not permitted, 5 format version not understood.\n",
	      stdout);
}

static bool parse_pid(const char *text, int *pid)
{
	char *end;

	errno = 0;
	long n = strtol(text, &end, 10);
	if (errno || end == text || *end || n <= 0 || n > INT_MAX)
		return false;
	*pid = (int)n;
	return true;
}

/* -1: go on; else the exit status. */
static int parse(int argc, char **argv, struct stat_options *o)
{
	int got;

	opterr = 0;
	optind = 0;
	while ((got = getopt_long(argc, argv, "+:jh", options, NULL)) != -1) {
		switch (got) {
		case 'j':
			o->json = true;
			break;
		case 'd':
			o->dead = true;
			break;
		case 'g':
			o->gc = true;
			break;
		case 'm':
			o->map = true;
			break;
		case 'h':
			print_help();
			return STATUS_DONE;
		case 'V':
			return cmd_version();
		default:
			return cmd_option_error("stat", argv, got, options);
		}
	}
	if (o->gc && (o->dead || o->json || o->map || optind < argc))
		return cmd_usage("stat", "--gc stands alone");
	if (optind == argc)
		return -1;
	o->pids = calloc((size_t)(argc - optind), sizeof *o->pids);
	if (!o->pids)
		return cmd_fail(STATUS_UNABLE, "stat", "out of memory");
	for (; optind < argc; optind++) {
		char shown[64];

		if (!parse_pid(argv[optind], &o->pids[o->pid_count++]))
			return cmd_usage("stat", "'%s' is no process number",
					 printable(shown, sizeof shown, argv[optind]));
	}
	return -1;
}

static bool is_shown(const struct process *p, const struct stat_options *o)
{
	return p->now.live != o->dead;
}

/* A map that cannot be read is none. */
static void read_more(struct process *p, const struct stat_options *o, struct reader_map *map,
		      struct reader_history *h)
{
	if (o->dead)
		reader_history(p->reader, 0, HISTORY_MAX, h);
	if (o->map && reader_map(p->reader, map) != READER_OK)
		map->there = false;
}

static void show_json(const struct process_set *set, const struct stat_options *o,
		      const struct machine *machine)
{
	struct json j = {.out = stdout};

	json_open(&j, NULL, '{');
	json_number(&j, "schema", 1);
	json_open(&j, "processes", '[');
	for (size_t i = 0; i < set->count; i++) {
		struct process *p = &set->process[i];
		struct reader_history h = {0};
		struct reader_map map = {0};

		if (!is_shown(p, o))
			continue;
		read_more(p, o, &map, &h);
		json_process(&j, p->info, &p->now, machine, o->map ? &map : NULL,
			     o->dead ? &h : NULL);
		reader_history_free(&h);
		reader_map_free(&map);
	}
	json_close(&j, ']');
	json_close(&j, '}');
	putchar('\n');
}

static void show_text(const struct process_set *set, const struct stat_options *o,
		      const struct machine *machine)
{
	bool first = true;

	for (size_t i = 0; i < set->count; i++) {
		struct process *p = &set->process[i];
		struct reader_history h = {0};
		struct reader_map map = {0};

		if (!is_shown(p, o))
			continue;
		if (!first)
			putchar('\n');
		first = false;
		read_more(p, o, &map, &h);
		text_process(stdout, p, machine, o->dead ? &h : NULL);
		if (o->map)
			map_put_text(stdout, &map, p->now.pool);
		reader_history_free(&h);
		reader_map_free(&map);
	}
}

/* What could not be read; the status that it deserves. */
static int complain(const struct process_set *set)
{
	int status = STATUS_NOTHING;

	for (size_t i = 0; i < set->refused_count; i++) {
		const struct refusal *r = &set->refused[i];

		cmd_fail(0, "stat", "%s: %s", r->path, r->why);
		if (r->result == READER_VERSION)
			status = STATUS_FORMAT;
		else if (r->result == READER_DENIED && status == STATUS_NOTHING)
			status = STATUS_DENIED;
	}
	return status;
}

static int missing_pid(const struct process_set *set, int pid, bool dead, int refused)
{
	for (size_t i = 0; i < set->refused_count; i++)
		if (set->refused[i].pid == pid)
			return refused;
	for (size_t i = 0; i < set->count; i++)
		if (set->process[i].asked == pid)
			return cmd_fail(STATUS_NOTHING, "stat",
					dead ? "process %d lives: leave out --dead"
					     : "process %d has ended; --dead shows what it left",
					pid);
	if (dead)
		return cmd_fail(STATUS_NOTHING, "stat", "process %d left nothing", pid);
	return missing_process("stat", pid);
}

static int judge(const struct process_set *set, const struct stat_options *o)
{
	int refused = complain(set), status = STATUS_DONE;
	size_t shown = 0;

	for (size_t i = 0; i < set->count; i++)
		shown += is_shown(&set->process[i], o);
	for (size_t k = 0; k < o->pid_count; k++) {
		bool found = false;

		for (size_t i = 0; i < set->count; i++)
			found |=
			    set->process[i].asked == o->pids[k] && is_shown(&set->process[i], o);
		if (!found)
			status = missing_pid(set, o->pids[k], o->dead, refused);
	}
	if (o->pid_count || shown)
		return status;
	if (set->refused_count)
		return refused;
	if (o->dead && !set->denied)
		return cmd_fail(STATUS_NOTHING, "stat", "no dead process left a file");
	return missing_all("stat", set);
}

static int show(const struct stat_options *o)
{
	struct process_set set = {0};
	struct machine machine = {0};
	bool known = machine_read_sysfs(&machine, "");

	if (!process_set_look(&set, o->pids, o->pid_count, true)) {
		process_set_free(&set);
		return cmd_fail(STATUS_UNABLE, "stat", "out of memory");
	}
	if (o->json)
		show_json(&set, o, known ? &machine : NULL);
	else
		show_text(&set, o, known ? &machine : NULL);
	int status = judge(&set, o);
	process_set_free(&set);
	if (known)
		machine_free(&machine);
	return status;
}

int cmd_stat(int argc, char **argv)
{
	struct stat_options o = {0};
	int status = parse(argc, argv, &o);

	if (status < 0 && o.gc) {
		size_t n = reader_remove_dead();

		printf("removed %zu file%s of dead processes\n", n, n == 1 ? "" : "s");
		status = STATUS_DONE;
	}
	if (status < 0)
		status = show(&o);
	free(o.pids);
	return status;
}
