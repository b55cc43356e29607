/* SPDX-License-Identifier: MIT */
/* numaslab top: what it is asked for. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/cmd.h"
#include "tools/cmd_top.h"
#include "tools/commands.h"
#include "tools/hints_session.h"

static const struct option options[] = {
    {"batch", no_argument, NULL, 'b'},	     {"iterations", required_argument, NULL, 'n'},
    {"delay", required_argument, NULL, 'd'}, {"pid", required_argument, NULL, 'p'},
    {"json", no_argument, NULL, 'j'},	     {"csv", no_argument, NULL, 'c'},
    {"tier", required_argument, NULL, 't'},  {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, 'V'},     {NULL, 0, NULL, 0},
};

static void print_help(void)
{
	fputs("Usage: numaslab top [-d SECONDS] [-p PID[,PID...]] [--tier TIER]\n"
	      "       numaslab top -b [-n TICKS] [-d SECONDS] [-p PID[,PID...]]\n"
	      "                       [--tier TIER] [--json|--csv]\n"
	      "Watches the processes under libnumaslab.so: what they hold on each node, and from\n"
	      "where their memory comes.  h shows the keys.\n\n"
	      "  -b, --batch             lines of text; by itself where output is no terminal\n"
	      "  -n, --iterations TICKS  end after so many\n"
	      "  -d, --delay SECONDS     between two ticks (default 1, at least 0.1)\n"
	      "  -p, --pid PID[,PID...]  these processes only\n"
	      "      --tier TIER         how hint faults are seen, as numaslab hints takes it, or\n"
	      "                          none\n"
	      "      --json              one JSON object for each tick, numaslab-format(5)\n"
	      "      --csv               one line for each process and node\n"
	      "      --help              show this text\n"
	      "      --version           show the version\n\n"
	      "Exit status: 0 done, 2 wrong usage, 3 (-b) no process publishes, 4 not permitted,\n"
	      "5 format version not understood.\n",
	      stdout);
}

static bool parse_delay(const char *text, double *out)
{
	char *end;

	errno = 0;
	double n = strtod(text, &end);
	if (errno || end == text || *end || !(n >= 0.1 && n <= 3600))
		return false;
	*out = n;
	return true;
}

static bool parse_number(const char *text, long max, long *out, char stop, const char **rest)
{
	char *end;

	errno = 0;
	long n = strtol(text, &end, 10);
	if (errno || end == text || (*end && *end != stop) || n <= 0 || n > max)
		return false;
	*out = n;
	if (rest)
		*rest = *end ? end + 1 : end;
	return true;
}

static bool parse_pids(const char *text, struct top_options *o)
{
	do {
		int *more = realloc(o->pids, (o->pid_count + 1) * sizeof *more);
		long n;

		if (!more)
			return false;
		o->pids = more;
		if (!parse_number(text, INT_MAX, &n, ',', &text))
			return false;
		o->pids[o->pid_count++] = (int)n;
	} while (*text);
	return true;
}

static int bad_value(const char *what, const char *value, const char *want)
{
	char shown[64];

	return cmd_usage("top", "%s '%s': %s", what, printable(shown, sizeof shown, value), want);
}

static int set_form(struct top_options *o, enum top_form form)
{
	if (o->form > TOP_TEXT && o->form != form)
		return cmd_usage("top", "--json and --csv exclude each other");
	if (form > o->form)
		o->form = form;
	return -1;
}

static int set_tier(struct top_options *o, const char *name)
{
	o->no_hints = strcmp(name, "none") == 0;
	for (o->tier = HINTS_TIERS; o->tier-- > 0;)
		if (strcmp(name, hints_tier_name(o->tier)) == 0)
			return -1;
	return o->no_hints
		   ? -1
		   : bad_value("--tier", name, "fentry, kprobe, tracepoint, perf, proc or none");
}

/* -1: go on; else the exit status. */
static int take(int got, char **argv, struct top_options *o)
{
	switch (got) {
	case 'b':
		return set_form(o, o->form > TOP_TEXT ? o->form : TOP_TEXT);
	case 'j':
		return set_form(o, TOP_JSON);
	case 'c':
		return set_form(o, TOP_CSV);
	case 'n':
		if (!parse_number(optarg, 1000000000, &o->ticks, 0, NULL))
			return bad_value("-n", optarg, "a number from 1 on");
		return -1;
	case 'd':
		if (!parse_delay(optarg, &o->delay))
			return bad_value("-d", optarg, "seconds, 0.1 to 3600");
		return -1;
	case 'p':
		if (!parse_pids(optarg, o))
			return bad_value("-p", optarg, "process numbers with commas between");
		return -1;
	case 't':
		return set_tier(o, optarg);
	case 'h':
		print_help();
		return STATUS_DONE;
	case 'V':
		return cmd_version();
	default:
		return cmd_option_error("top", argv, got, options);
	}
}

int cmd_top(int argc, char **argv)
{
	struct top_options o = {.delay = 1, .tier = -1};
	int got, status = -1;

	opterr = 0;
	optind = 0;
	while (status < 0 && (got = getopt_long(argc, argv, "+:bn:d:p:h", options, NULL)) != -1)
		status = take(got, argv, &o);
	if (status < 0 && optind < argc)
		status = bad_value("argument", argv[optind], "use -p PID");
	if (status < 0 && o.form == TOP_SCREEN && !(isatty(0) && isatty(1)))
		o.form = TOP_TEXT;
	if (status < 0)
		status = o.form == TOP_SCREEN ? top_screen(&o) : top_batch(&o);
	free(o.pids);
	return status;
}
