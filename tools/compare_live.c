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

size_t cmp_pair_order(size_t pair, bool control, enum cmp_side order[3])
{
	size_t n = control ? 3 : 2;

	for (size_t i = 0; i < n; i++) {
		static const enum cmp_side three[] = {CMP_CONTROL, CMP_BEFORE, CMP_AFTER};
		size_t at = pair % 2 ? n - 1 - i : i;

		order[i] = three[control ? at : at + 1];
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

static void show_progress(struct cmp_live *l, size_t goal)
{
	const struct cmp_document *d = l->doc;
	size_t pair = d->runs.n[CMP_AFTER], per_pair = d->base ? 2 : 3;
	char line[200], times[100] = "", left[40] = "", a[32], b[32];
	unsigned done = (unsigned)(d->runs.n[0] + d->runs.n[1] + d->runs.n[2]);

	if (!l->progress)
		return;
	if (pair && d->runs.n[CMP_BEFORE])
		snprintf(times, sizeof times, ", %.16s %s s, %.16s %s s", l->allocator[0].name,
			 cmp_value_text(a, sizeof a, CMP_SECONDS, median_time(d, CMP_BEFORE)),
			 l->allocator[1].name,
			 cmp_value_text(b, sizeof b, CMP_SECONDS, median_time(d, CMP_AFTER)));
	if (done && goal * per_pair >= done)
		snprintf(left, sizeof left, ", %.0f s left",
			 l->took / done * (double)(goal * per_pair - done));
	if (goal)
		snprintf(line, sizeof line, "pair %zu of %zu%s%s", pair + 1, goal, times, left);
	else
		snprintf(line, sizeof line, "warming up");
	fprintf(stderr, "\r\033[K%.78s", line);
	fflush(stderr);
}

static void clear_progress(const struct cmp_live *l)
{
	if (l->progress)
		fputs("\r\033[K", stderr);
}

/* --- runs --- */

/* One run of a side; s stays the next sample of that side until it is counted. */
static bool run_side(struct cmp_live *l, enum cmp_side side, struct cmp_sample *s)
{
	int allocator = side == CMP_AFTER;
	struct cmp_outcome o;
	bool measured = cmp_run(&l->command, &l->allocator[allocator], s, &o), good;

	if (o.interrupted) {
		l->interrupted = o.interrupted;
		cmp_outcome_free(&o);
		return false;
	}
	good = cmp_check_run(l, allocator, s->status, &o, measured);
	cmp_outcome_free(&o);
	return good;
}

bool cmp_live_warm(struct cmp_live *l)
{
	for (size_t i = 0; i < 2 * l->options->warmup; i++) {
		enum cmp_side side = i % 2 ? CMP_AFTER : CMP_BEFORE;

		show_progress(l, 0);
		if (!run_side(l, side, cmp_runs_next(&l->doc->runs, side)))
			return false;
	}
	return true;
}

/* A pair that was broken off does not count. */
static void drop_broken(struct cmp_runs *runs, bool control)
{
	size_t whole = runs->n[CMP_BEFORE];

	if (runs->n[CMP_AFTER] < whole)
		whole = runs->n[CMP_AFTER];
	if (control && runs->n[CMP_CONTROL] < whole)
		whole = runs->n[CMP_CONTROL];
	runs->n[CMP_BEFORE] = runs->n[CMP_AFTER] = whole;
	if (control)
		runs->n[CMP_CONTROL] = whole;
}

bool cmp_live_pair(struct cmp_live *l, size_t goal)
{
	struct cmp_runs *runs = &l->doc->runs;
	enum cmp_side order[3];
	size_t n = cmp_pair_order(runs->n[CMP_AFTER], !l->doc->base, order);
	double began = now();

	show_progress(l, goal);
	for (size_t i = 0; i < n; i++) {
		struct cmp_sample *s = cmp_runs_next(runs, order[i]);

		s->order = l->order++;
		if (!run_side(l, order[i], s))
			break;
		runs->n[order[i]]++;
	}
	l->took += now() - began;
	drop_broken(runs, !l->doc->base);
	return !l->doc->problem.what[0] && !l->interrupted;
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
static void name_by_path(struct cmp_live *l)
{
	for (int i = 0; i < 2; i++) {
		struct cmp_allocator *a = &l->allocator[i];
		size_t len = strlen(a->library), room = sizeof a->name - 1;

		if (len)
			snprintf(a->name, sizeof a->name, "%s",
				 a->library + (len > room ? len - room : 0));
	}
}

static int find_allocators(struct cmp_live *l)
{
	const char *names[] = {l->options->against, l->options->with};
	char text[2 * PATH_MAX];

	for (int i = 0; i < 2; i++) {
		const char *why = cmp_allocator_find(&l->allocator[i], names[i]);

		if (why)
			return cmd_fail(STATUS_USAGE, NAME, "%s", why);
		l->allocator[i].is_numaslab = !strcmp(l->allocator[i].name, "numaslab");
		if (i && !strcmp(l->allocator[0].name, l->allocator[1].name))
			name_by_path(l);
	}
	for (int i = 0; i < 2; i++) {
		size_t pad;

		snprintf(l->doc->name[i], sizeof l->doc->name[i], "%s", l->allocator[i].name);
		snprintf(l->doc->library[i], sizeof l->doc->library[i], "%s",
			 l->allocator[i].library);
		pad = cmp_run_preload(&l->allocator[i], text, sizeof text);
		l->command.pad = pad > l->command.pad ? pad : l->command.pad;
	}
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
	cmp_note(l->doc, "peak memory is sampled, not exact: %s", why);
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
