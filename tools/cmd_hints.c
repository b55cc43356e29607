/* SPDX-License-Identifier: MIT */
/* numaslab hints: NUMA hint faults, explained by size class and slab. */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "telemetry/ring.h"
#include "tools/cmd.h"
#include "tools/commands.h"
#include "tools/hints_internal.h"

#define PIDS_MAX     4096u
#define LINE_MS	     2000
#define DURATION_MAX 86400.0
#define SHARES	     24 /* points of a session of known length */

static const struct option options[] = {
    {"pid", required_argument, NULL, 'p'},  {"duration", required_argument, NULL, 'd'},
    {"tier", required_argument, NULL, 't'}, {"observe", required_argument, NULL, 'o'},
    {"json", no_argument, NULL, 'j'},	    {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, 'V'},    {NULL, 0, NULL, 0},
};

struct hints_command {
	struct hints_options o;
	int pid[PIDS_MAX];
	double seconds; /* 0: until stopped */
	bool json;
};

static volatile sig_atomic_t stopping;

static void on_signal(int number)
{
	(void)number;
	stopping = 1;
}

static void print_help(void)
{
	fputs("Usage: numaslab hints [-p PID[,PID...]]... [-d SECONDS] [--tier TIER]\n"
	      "                      [--observe 1/N] [--json]\n"
	      "Shows by NUMA hint faults which memory is used from which node: by home and\n"
	      "accessing node, size class, slab and thread, and what the kernel moved.\n"
	      "Without -p: all processes.  Goes on until Ctrl-C; ends with a summary.\n\n"
	      "  -p, --pid PID         these processes, until all have ended\n"
	      "  -d, --duration SECONDS  end after so long; the summary alone, with advice\n"
	      "      --tier TIER       fentry, kprobe, tracepoint, perf or proc; the best that\n"
	      "                        works if not given\n"
	      "      --observe 1/N     ask the processes of -p to show 1 in N chunks of their\n"
	      "                        slabs, which placement 'home' hides\n"
	      "      --json            one JSON document at the end\n"
	      "      --help            show this text\n"
	      "      --version         show the version\n\n"
	      "Exit status: 0 done, 2 wrong usage, 3 no such process, 4 not permitted,\n"
	      "5 format version not understood, 77 the machine, or this build, cannot do this.\n",
	      stdout);
}

/* --- The command line. --- */

static int parse_pids(struct hints_command *c, const char *text)
{
	for (const char *at = text;;) {
		char *end, shown[64];
		long n;

		errno = 0;
		n = strtol(at, &end, 10);
		if (errno || end == at || n <= 0 || n > INT_MAX || (*end && *end != ','))
			return cmd_usage("hints", "'%s' is no process number",
					 printable(shown, sizeof shown, text));
		if (c->o.pid_count == PIDS_MAX)
			return cmd_usage("hints", "more than %u processes; without -p all are seen",
					 PIDS_MAX);
		c->pid[c->o.pid_count++] = (int)n;
		if (!*end)
			return -1;
		at = end + 1;
	}
}

static int parse_duration(struct hints_command *c, const char *text)
{
	char *end, shown[64];

	errno = 0;
	c->seconds = strtod(text, &end);
	if (errno || end == text || *end || !(c->seconds >= 0.1 && c->seconds <= DURATION_MAX))
		return cmd_usage("hints", "--duration is 0.1 to 86400 seconds, not '%s'",
				 printable(shown, sizeof shown, text));
	return -1;
}

static int parse_tier(struct hints_command *c, const char *text)
{
	const char *names[HINTS_TIERS], *near;
	char shown[64];

	for (int i = 0; i < HINTS_TIERS; i++) {
		names[i] = hints_tier_name(i);
		if (!strcmp(names[i], text)) {
			c->o.tier = i;
			return -1;
		}
	}
	near = nearest_word(text, names, HINTS_TIERS);
	return cmd_usage("hints", "no tier '%s': fentry, kprobe, tracepoint, perf or proc%s%s%s",
			 printable(shown, sizeof shown, text), near ? "; did you mean '" : "",
			 near ? near : "", near ? "'?" : "");
}

static int parse_observe(struct hints_command *c, const char *text)
{
	char *end, shown[64];
	unsigned long n = 0;

	errno = 0;
	if (!strncmp(text, "1/", 2) && text[2] >= '0' && text[2] <= '9') {
		n = strtoul(text + 2, &end, 10);
		if (errno || *end)
			n = 0;
	}
	if (n < 1 || n > RING_SAMPLE_MAX)
		return cmd_usage("hints", "--observe is 1/1 to 1/%u, not '%s'", RING_SAMPLE_MAX,
				 printable(shown, sizeof shown, text));
	c->o.observe = (uint32_t)n;
	return -1;
}

static int parse_option(struct hints_command *c, int got, char **argv)
{
	switch (got) {
	case 'p':
		return parse_pids(c, optarg);
	case 'd':
		return parse_duration(c, optarg);
	case 't':
		return parse_tier(c, optarg);
	case 'o':
		return parse_observe(c, optarg);
	case 'j':
		c->json = true;
		return -1;
	case 'h':
		print_help();
		return STATUS_DONE;
	case 'V':
		return cmd_version();
	default:
		return cmd_option_error("hints", argv, got, options);
	}
}

/* -1: go on; else the exit status. */
static int parse(int argc, char **argv, struct hints_command *c)
{
	char shown[64];
	int got, status;

	opterr = 0;
	optind = 0;
	while ((got = getopt_long(argc, argv, "+:p:d:jh", options, NULL)) != -1) {
		status = parse_option(c, got, argv);
		if (status >= 0)
			return status;
	}
	if (optind < argc)
		return cmd_usage("hints", "'%s' is too much; a process is named with -p",
				 printable(shown, sizeof shown, argv[optind]));
	if (c->o.observe && !c->o.pid_count)
		return cmd_usage("hints", "--observe wants the processes to ask, with -p");
	c->o.pids = c->pid;
	return -1;
}

/* --- Running. --- */

static void catch_signals(void)
{
	struct sigaction action = {.sa_handler = on_signal};

	/* No SA_RESTART: whatever waits shall end. */
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
}

static void say_ready(const struct hints_command *c, const struct hints *h)
{
	if (c->json || c->seconds > 0) {
		fprintf(stderr, "numaslab hints: counting, tier %s\n", h->tier_name);
		return;
	}
	printf("tier %s%s; Ctrl-C ends\n", h->tier_name, h->exact ? "" : " (an estimate)");
	fflush(stdout);
}

/* How long the next wait is; 0: the end has come. */
static int next_wait(const struct hints_command *c, uint64_t began_ms)
{
	uint64_t spent = reader_now_ms() - began_ms, all = (uint64_t)(c->seconds * 1000);
	uint64_t step = LINE_MS;

	if (c->seconds == 0)
		return LINE_MS;
	if (spent >= all)
		return 0;
	if (all / SHARES < step)
		step = all / SHARES < 100 ? 100 : all / SHARES;
	return (int)(all - spent < step ? all - spent : step);
}

static const struct hints *watch(struct hints_session *s, const struct hints_command *c)
{
	uint64_t began = reader_now_ms();
	const struct hints *h = hints_poll(s, 0);
	int wait;

	if (h)
		say_ready(c, h);
	while (h && !stopping && !hints_is_over(s) && (wait = next_wait(c, began)) > 0) {
		h = hints_poll(s, wait);
		if (h && !c->json && c->seconds == 0 && !stopping) {
			hints_line(stdout, h);
			if (fflush(stdout))
				break;
		}
	}
	return h ? hints_stop(s) : NULL;
}

static int run(const struct hints_command *c)
{
	struct hints_session *s;
	char why[HINTS_WHY_SIZE];
	int status;

	catch_signals();
	status = hints_start(&s, &c->o, why, sizeof why);
	if (status)
		return cmd_fail(status, "hints", "%s%s%s",
				c->o.tier >= 0 ? hints_tier_name(c->o.tier) : "",
				c->o.tier >= 0 ? ": " : "", why);
	const struct hints *h = watch(s, c);
	if (!h)
		status = cmd_fail(STATUS_UNABLE, "hints", "out of memory");
	else if (c->json)
		hints_json(stdout, h);
	else
		hints_text(stdout, h);
	hints_close(s);
	return status;
}

int cmd_hints(int argc, char **argv)
{
	struct hints_command *c = calloc(1, sizeof *c);
	int status;

	if (!c)
		return cmd_fail(STATUS_UNABLE, "hints", "out of memory");
	c->o.tier = -1;
	status = parse(argc, argv, c);
	if (status < 0)
		status = run(c);
	free(c);
	return status;
}
