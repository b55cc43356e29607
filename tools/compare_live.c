/* SPDX-License-Identifier: MIT */
#include "tools/compare_live.h"

#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tools/cmd.h"
#include "tools/machine.h"
#include "tools/program.h"

#define NAME "compare"

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

size_t cmp_pair_order(size_t pair, bool control, size_t peers, enum cmp_side order[CMP_SIDES])
{
	static const enum cmp_side three[] = {CMP_CONTROL, CMP_BEFORE, CMP_AFTER};
	size_t own = control ? 3 : 2, n = own + peers;

	for (size_t i = 0; i < n; i++) {
		size_t at = pair % 2 ? n - 1 - i : i;

		order[at] = i < own ? three[control ? i : i + 1]
				    : (enum cmp_side)(CMP_PEER + (i - own + pair / 2) % peers);
	}
	return n;
}

/* --- progress --- */

static double median_time(const struct cmp_document *d, enum cmp_side side)
{
	double *v = calloc(d->runs.n[side] + 1, sizeof *v), m = NAN;

	if (v && cmp_column(d->runs.side[side], d->runs.n[side], CMP_M_TIME, v))
		m = cmp_median(v, d->runs.n[side]);
	free(v);
	return m;
}

/* Before each run: which pair, under what, how long a run takes, how long it will be until the next
 * look.  l->goal 0: warming up. */
static void show_progress(struct cmp_live *l, const char *who)
{
	const struct cmp_document *d = l->doc;
	size_t pair = l->pairs;
	char line[200], times[100] = "", left[40] = "", a[32], b[32];

	if (!l->progress)
		return;
	if (pair)
		snprintf(times, sizeof times, ", %.12s %s s, %.12s %s s", l->allocator[0].name,
			 cmp_value_text(a, sizeof a, CMP_SECONDS, median_time(d, CMP_BEFORE)),
			 l->allocator[1].name,
			 cmp_value_text(b, sizeof b, CMP_SECONDS, median_time(d, CMP_AFTER)));
	if (pair && l->goal >= pair)
		snprintf(left, sizeof left, ", %.0f s left",
			 l->took / (double)pair * (double)(l->goal - pair));
	if (l->goal)
		snprintf(line, sizeof line, "pair %zu of %zu: %.12s%s%s", pair + 1, l->goal, who,
			 times, left);
	else
		snprintf(line, sizeof line, "warming up: %.12s", who);
	fprintf(stderr, "\r\033[K%.78s", line);
	fflush(stderr);
}

static void clear_progress(const struct cmp_live *l)
{
	if (l->progress)
		fputs("\r\033[K", stderr);
}

/* --- runs --- */

static struct cmp_peer *peer_of(const struct cmp_live *l, enum cmp_side side)
{
	return side >= CMP_PEER ? &l->doc->peer[side - CMP_PEER] : NULL;
}

/* One run of a side; s stays the next sample of that side until it is counted.  False: the command
 * failed, which is the end of the experiment or of this peer, or we were interrupted. */
static bool run_side(struct cmp_live *l, enum cmp_side side, struct cmp_sample *s)
{
	int allocator = side == CMP_AFTER ? 1 : side >= CMP_PEER ? 2 + (int)(side - CMP_PEER) : 0;
	struct cmp_peer *peer = peer_of(l, side);
	struct cmp_outcome o;
	bool measured, good;

	show_progress(l, l->allocator[allocator].name);
	measured = cmp_run(&l->command, &l->allocator[allocator], s, &o);
	if (o.interrupted) {
		l->interrupted = o.interrupted;
		cmp_outcome_free(&o);
		return false;
	}
	good = cmp_check_run(l, allocator, s->status, &o, measured,
			     peer ? &peer->problem : &l->doc->problem);
	cmp_outcome_free(&o);
	return good;
}

/* Nothing more to run: the command failed or somebody wants us to stop. */
static bool is_over(const struct cmp_live *l)
{
	return l->doc->problem.what[0] || l->interrupted;
}

bool cmp_live_warm(struct cmp_live *l)
{
	size_t sides = 2 + l->doc->peers;

	for (size_t i = 0; i < sides * l->options->warmup && !is_over(l); i++) {
		size_t at = i % sides;
		enum cmp_side side =
		    at < 2 ? (enum cmp_side)at : (enum cmp_side)(CMP_PEER + at - 2);

		if (!peer_of(l, side) || !peer_of(l, side)->problem.what[0])
			run_side(l, side, cmp_runs_next(&l->doc->runs, side));
	}
	return !is_over(l);
}

/* A pair that was broken off does not count. */
static void drop_broken(struct cmp_runs *runs, bool control)
{
	size_t whole = runs->n[CMP_BEFORE];

	if (runs->n[CMP_AFTER] < whole)
		whole = runs->n[CMP_AFTER];
	if (control && runs->n[CMP_CONTROL] < whole)
		whole = runs->n[CMP_CONTROL];
	for (int side = 0; side < CMP_SIDES; side++)
		if (runs->n[side] > whole)
			runs->n[side] = whole;
}

bool cmp_live_pair(struct cmp_live *l, size_t goal)
{
	struct cmp_runs *runs = &l->doc->runs;
	enum cmp_side order[CMP_SIDES];
	size_t n = cmp_pair_order(runs->n[CMP_AFTER], !l->doc->base, l->doc->peers, order);
	double began = now();

	l->pairs = runs->n[CMP_AFTER];
	l->goal = goal;
	for (size_t i = 0; i < n && !is_over(l); i++) {
		struct cmp_peer *peer = peer_of(l, order[i]);
		struct cmp_sample *s;

		if (peer && peer->problem.what[0])
			continue;
		s = cmp_runs_next(runs, order[i]);
		s->order = l->order++;
		runs->n[order[i]] += run_side(l, order[i], s);
	}
	l->took += now() - began;
	drop_broken(runs, !l->doc->base);
	return !is_over(l);
}

/* --- opening --- */

static void see_cpu(int cpu, void *set)
{
	CPU_SET_S((size_t)cpu, CPU_ALLOC_SIZE(CMP_CPUS_MAX), (cpu_set_t *)set);
}

/* Tries the set on ourselves and goes back: who watches should not be in the way of who runs. */
static bool cpus_usable(struct cmp_live *l)
{
	cpu_set_t *own = CPU_ALLOC(CMP_CPUS_MAX);
	bool usable;

	if (!own)
		abort();
	usable = !sched_getaffinity(0, l->command.cpus_size, own) &&
		 !sched_setaffinity(0, l->command.cpus_size, l->command.cpus);
	sched_setaffinity(0, l->command.cpus_size, own);
	CPU_FREE(own);
	return usable;
}

static int choose_cpus(struct cmp_live *l)
{
	const struct cmp_options *o = l->options;
	char shown[100];

	if (o->numa && l->doc->machine.nodes < 2)
		return cmd_fail(STATUS_UNABLE, NAME,
				"--numa needs more than one node with memory; this machine has %zu",
				l->doc->machine.nodes);
	if (!o->pin && !o->numa)
		return -1;
	l->command.cpus = CPU_ALLOC(CMP_CPUS_MAX);
	l->command.cpus_size = CPU_ALLOC_SIZE(CMP_CPUS_MAX);
	if (!l->command.cpus)
		abort();
	CPU_ZERO_S(l->command.cpus_size, l->command.cpus);
	if (o->pin && !list_each(o->pin, CMP_CPUS_MAX, see_cpu, l->command.cpus))
		return cmd_usage(NAME, "--pin takes CPUs as in 0-3,8, not '%s'",
				 printable(shown, sizeof shown, o->pin));
	for (int cpu = 0; o->numa && cpu < CMP_CPUS_MAX; cpu++)
		if (cmp_node_of_cpu(cpu) >= 0)
			see_cpu(cpu, l->command.cpus);
	if (!cpus_usable(l))
		return cmd_usage(NAME, "none of the CPUs '%s' can be used here",
				 printable(shown, sizeof shown, o->pin ? o->pin : "of all nodes"));
	l->doc->machine.cpus_allowed = CPU_COUNT_S(l->command.cpus_size, l->command.cpus);
	return -1;
}

/* Two builds of the same library are told apart by the ends of their paths. */
static void name_by_path(struct cmp_allocator *a)
{
	size_t len = strlen(a->library), room = sizeof a->name - 1;

	if (len)
		snprintf(a->name, sizeof a->name, "%s", a->library + (len > room ? len - room : 0));
}

/* The allocator's place in the document. */
static void enter(struct cmp_live *l, size_t i)
{
	const struct cmp_allocator *a = &l->allocator[i];
	struct cmp_document *d = l->doc;
	char text[2 * PATH_MAX];
	size_t pad = cmp_run_preload(a, text, sizeof text);

	l->command.pad = pad > l->command.pad ? pad : l->command.pad;
	snprintf(i < 2 ? d->name[i] : d->peer[i - 2].name, sizeof d->name[0], "%s", a->name);
	snprintf(i < 2 ? d->library[i] : d->peer[i - 2].library, PATH_MAX, "%s", a->library);
}

static int find_allocators(struct cmp_live *l)
{
	const struct cmp_options *o = l->options;
	size_t n = o->nagainst + 1;

	for (size_t i = 0; i < n; i++) {
		const char *name = i == 1 ? o->with : o->against[i ? i - 1 : 0];
		const char *why = cmp_allocator_find(&l->allocator[i], name);

		if (why)
			return cmd_fail(STATUS_USAGE, NAME, "%s", why);
	}
	for (size_t i = 1; i < n; i++)
		for (size_t k = 0; k < i; k++)
			if (!strcmp(l->allocator[i].name, l->allocator[k].name)) {
				name_by_path(&l->allocator[i]);
				name_by_path(&l->allocator[k]);
			}
	l->doc->peers = n - 2;
	for (size_t i = 0; i < n; i++)
		enter(l, i);
	return -1;
}

static int examine_command(struct cmp_live *l)
{
	static struct program p;
	struct elf_id self;
	char why[PATH_MAX + 400];

	if (!elf_identify("/proc/self/exe", &self))
		return cmd_fail(STATUS_UNABLE, NAME, "/proc is not mounted here");
	program_examine(&p, l->options->argv[0], &self);
	l->command.path = p.path[0] ? p.path : l->options->argv[0];
	if (p.kind == PROGRAM_GOOD)
		return -1;
	program_explain(&p, l->options->argv[0], why, sizeof why);
	return cmd_fail(p.kind <= PROGRAM_NO_LOADER ? STATUS_USAGE : STATUS_UNABLE, NAME, "%s",
			why);
}

static void open_cgroup(struct cmp_live *l)
{
	char self[4096];
	const char *why;

	read_text("", "/proc/self/cgroup", self, sizeof self);
	if (cmp_cgroup_open(&l->command.cgroup, "/sys/fs/cgroup", self, &why)) {
		strcpy(l->doc->rss_source, "cgroup");
		return;
	}
	strcpy(l->doc->rss_source, "pss");
	cmp_note(l->doc, "peak memory of several processes together is sampled, not exact: %s",
		 why);
}

static int read_metrics(struct cmp_live *l)
{
	struct cmp_command *c = &l->command;
	char shown[200];

	for (size_t i = 0; i < l->options->metrics; i++) {
		const char *re = l->options->metric[i];

		if (regcomp(&c->figure[i], re, REG_EXTENDED | REG_NEWLINE))
			return cmd_usage(NAME, "--metric: '%s' is not a regular expression",
					 printable(shown, sizeof shown, re));
		c->figures++;
	}
	return -1;
}

static void release(struct cmp_live *l)
{
	for (size_t i = 0; i < l->command.figures; i++)
		regfree(&l->command.figure[i]);
	CPU_FREE(l->command.cpus);
}

int cmp_live_open(struct cmp_live *l, const struct cmp_options *o, struct cmp_document *doc)
{
	int status;

	memset(l, 0, sizeof *l);
	l->options = o;
	l->doc = doc;
	l->command.argv = o->argv;
	l->command.launcher = -1;
	l->command.timeout = o->timeout;
	l->command.nodes = doc->machine.nodes > 1;
	l->progress = !o->quiet && isatty(2);
	status = read_metrics(l);
	status = status < 0 ? find_allocators(l) : status;
	status = status < 0 ? examine_command(l) : status;
	status = status < 0 ? choose_cpus(l) : status;
	if (status >= 0) {
		release(l);
		return status;
	}
	open_cgroup(l);
	l->command.launcher = cmp_launcher_open();
	if (!cmp_run_init())
		return cmd_fail(STATUS_UNABLE, NAME, "signals cannot be waited for here");
	return -1;
}

void cmp_live_close(struct cmp_live *l)
{
	clear_progress(l);
	free(l->reference.data);
	release(l);
	if (l->interrupted)
		fprintf(stderr, "numaslab compare: interrupted; nothing is left running\n");
	cmp_run_finish(l->interrupted);
}
