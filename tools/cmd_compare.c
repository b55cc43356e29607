/* SPDX-License-Identifier: MIT */
/* numaslab compare: the order of events.  The parts: compare_options (command line), compare_live
 * and compare_run (the runs), compare_judge and compare_stats (the verdicts), compare_report and
 * its writers (the forms).  Compared are "before" (glibc, or --against) and "after" (numaslab, or
 * --with); in files, base and replay keep these names.  "Peers" are further --against: run in the
 * same pairs, shown, not judged. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cmd.h"
#include "tools/commands.h"
#include "tools/compare_files.h"
#include "tools/compare_live.h"

#define NAME "compare"

static void set_plan(struct cmp_document *d, const struct cmp_options *o)
{
	memcpy(d->plan.threshold, o->threshold, sizeof d->plan.threshold);
	d->plan.seed = o->seed;
	for (size_t i = 0; i < o->metrics; i++) {
		printable(d->figure[i], sizeof d->figure[i], o->metric[i]);
		d->plan.figure_higher[i] = o->metric_higher[i];
	}
	d->plan.nlooks = cmp_looks(o->pairs, o->max_pairs, d->plan.looks);
	d->all_rows = o->numa;
}

static bool same_command(const struct cmp_document *a, const struct cmp_document *b)
{
	char x[4096], y[4096];

	cmp_command_text(a, x, sizeof x);
	cmp_command_text(b, y, sizeof y);
	return !strcmp(x, y);
}

/* Is the earlier experiment about the same thing?  Where its reference allocator is another one, it
 * cannot serve as control. */
static int check_base(struct cmp_document *d, struct cmp_document *base)
{
	char command[600];

	if (!same_command(d, base)) {
		cmp_command_text(base, command, sizeof command);
		return cmd_fail(STATUS_USAGE, NAME, "the base is about another command: %s",
				command);
	}
	for (int i = 0; i < CMP_FIGURES; i++)
		if (base->figure[i][0] && d->figure[i][0] &&
		    strcmp(base->figure[i], d->figure[i]) != 0)
			return cmd_fail(STATUS_USAGE, NAME, "the base measured another figure: %s",
					base->figure[i]);
	if (base->problem.what[0] || !base->runs.n[CMP_AFTER])
		return cmd_fail(STATUS_USAGE, NAME, "the base recorded a failure, no samples");
	if (strcmp(base->name[CMP_BEFORE], d->name[CMP_BEFORE]) != 0) {
		cmp_note(d, "the base's other side was %s, so there is no control",
			 base->name[CMP_BEFORE]);
		base->runs.n[CMP_BEFORE] = 0;
	}
	if (base->machine.cpu[0] && (strcmp(base->machine.cpu, d->machine.cpu) != 0 ||
				     strcmp(base->machine.kernel, d->machine.kernel) != 0))
		cmp_note(d, "the base comes from another machine: %.100s, %.100s",
			 base->machine.cpu, base->machine.kernel);
	return -1;
}

static void note_circumstances(struct cmp_document *d)
{
	const struct cmp_machine *m = &d->machine;
	size_t judged = 0, last = d->plan.looks[d->plan.nlooks - 1], needed;

	for (int i = 0; i < CMP_M_COUNT; i++)
		judged += d->plan.threshold[i].judged;
	needed = cmp_pairs_needed(judged, CMP_ALPHA / (double)d->plan.nlooks);
	if (judged && last < needed && !d->base)
		cmp_note(d,
			 "%zu pairs are too few for any verdict on figures that vary; %zu would do",
			 last, needed);
	if (judged && d->base &&
	    2 * cmp_sets_floor(d->base->runs.n[CMP_AFTER], last) * (double)judged >
		CMP_ALPHA / (double)d->plan.nlooks)
		cmp_note(d,
			 "the base holds %zu runs, too few for any verdict on figures that vary; "
			 "record one with more pairs",
			 d->base->runs.n[CMP_AFTER]);
	if (m->load > 0.7 * m->cpus_online)
		cmp_note(d, "the machine was busy when this began (load %.1f on %d CPUs)", m->load,
			 m->cpus_online);
	if (m->governor[0] && strcmp(m->governor, "performance") != 0)
		cmp_note(d, "the CPUs change their speed (governor %s)", m->governor);
	if (m->numa_balancing <= 0 && (d->plan.threshold[CMP_M_HINT].judged || d->all_rows))
		cmp_note(d, "NUMA balancing is off here, so there can be no hint faults");
}

/* Limits on what this machine or this command line does not measure are not silently passed. */
static int check_measured(const struct cmp_document *d, const struct cmp_sample *s)
{
	for (int m = 0; m < CMP_M_COUNT; m++)
		if (d->plan.threshold[m].judged && isnan(s->v[m]))
			return cmd_fail(STATUS_UNABLE, NAME, "%s (%s) cannot be measured here%s",
					cmp_metrics[m].name, cmp_metrics[m].help,
					m == CMP_M_REMOTE
					    ? ": it takes several nodes and a command that runs "
					      "longer than some milliseconds"
					    : "");
	return -1;
}

/* The looks: run up to each, judge, stop when the verdict is plain. */
static int run_looks(struct cmp_live *l, struct cmp_document *d)
{
	int status;

	for (size_t look = 0; look < d->plan.nlooks; look++) {
		while (d->runs.n[CMP_AFTER] < d->plan.looks[look]) {
			if (!cmp_live_pair(l, d->plan.looks[look]))
				break;
			status = check_measured(d, &d->runs.side[CMP_AFTER][0]);
			if (status >= 0)
				return status;
		}
		if (l->interrupted)
			return -1;
		if (!d->runs.n[CMP_AFTER])
			break;
		cmp_judge(&d->plan, &d->runs, d->base ? &d->base->runs : NULL, d->runs.n[CMP_AFTER],
			  look, &d->report);
		if (d->problem.what[0] || !cmp_judge_undecided(&d->report))
			break;
	}
	return -1;
}

static int run_live(struct cmp_document *d, const struct cmp_options *o, struct cmp_document *base)
{
	static struct cmp_live l;
	int status = cmp_live_open(&l, o, d);

	if (status >= 0)
		return status;
	if (base)
		status = check_base(d, base);
	note_circumstances(d);
	if (status < 0 && cmp_live_warm(&l))
		status = run_looks(&l, d);
	cmp_judge_peers(d);
	cmp_live_close(&l);
	return status;
}

/* Judges recorded samples as the live run would have, look by look. */
static void replay_looks(struct cmp_document *d)
{
	size_t n = d->runs.n[CMP_AFTER];

	if (d->runs.n[CMP_BEFORE] < n)
		n = d->runs.n[CMP_BEFORE];
	for (size_t look = 0; look < d->plan.nlooks; look++) {
		size_t pairs = d->plan.looks[look] < n ? d->plan.looks[look] : n;

		cmp_judge(&d->plan, &d->runs, d->base ? &d->base->runs : NULL, pairs, look,
			  &d->report);
		if (!cmp_judge_undecided(&d->report) || pairs == n)
			break;
	}
}

/* A limit on what some run lacks is open for ever; that is said. */
static void note_unmeasured(struct cmp_document *d)
{
	for (int m = 0; m < CMP_M_COUNT && d->report.pairs; m++)
		if (d->plan.threshold[m].judged && !d->report.m[m].present)
			cmp_note(d, "%s was not measured in every run of both sides",
				 cmp_metrics[m].name);
}

static int run_replay(struct cmp_document *d, const struct cmp_options *o,
		      struct cmp_document *base)
{
	int status = base ? check_base(d, base) : -1;

	if (o->metrics)
		return cmd_usage(NAME, "--replay has no output to search with --metric");
	for (int i = 0; i < CMP_FIGURES && !o->thresholds_given; i++)
		if (d->figure[i][0])
			d->plan.threshold[CMP_M_FIGURE + i] = d->plan.threshold[CMP_M_TIME];
	if (status < 0 && !d->problem.what[0]) {
		note_circumstances(d);
		replay_looks(d);
		cmp_judge_peers(d);
	}
	return status;
}

/* Writes all forms that were asked for; returns the exit status. */
static int finish(struct cmp_document *d, const struct cmp_options *o)
{
	int status = cmp_exit_status(d);
	bool told = o->wanted[CMP_TABLE] && !o->file[CMP_TABLE];

	note_unmeasured(d);
	if (d->problem.what[0] && !told)
		cmd_fail(0, NAME, "%s", d->problem.what);
	for (int i = 0; i < CMP_FORMATS; i++) {
		int failed = o->wanted[i] ? cmp_file_write(d, o, i) : -1;

		status = failed >= 0 ? failed : status;
	}
	return status;
}

static void copy_command(struct cmp_document *d, const struct cmp_options *o)
{
	d->argc = o->argc;
	d->argv = calloc((size_t)o->argc + 1, sizeof *d->argv);
	if (!d->argv)
		abort();
	for (int i = 0; i < o->argc; i++) {
		d->argv[i] = strdup(o->argv[i]);
		if (!d->argv[i])
			abort();
	}
}

int cmd_compare(int argc, char **argv)
{
	static struct cmp_document now, base;
	struct cmp_options o;
	int status = cmp_options_parse(&o, argc, argv);

	if (status < 0)
		status = cmp_files_check(&o);
	if (status < 0 && o.replay)
		status = cmp_file_load(&now, o.replay, NULL);
	else if (status < 0)
		copy_command(&now, &o);
	if (status < 0 && o.base)
		status = cmp_file_load(&base, o.base, &now);
	if (status >= 0)
		return status;
	if (!o.replay)
		cmp_machine_read(&now.machine);
	now.base = o.base ? &base : NULL;
	set_plan(&now, &o);
	status = o.replay ? run_replay(&now, &o, o.base ? &base : NULL)
			  : run_live(&now, &o, o.base ? &base : NULL);
	if (status < 0)
		status = finish(&now, &o);
	cmp_document_free(&now);
	cmp_document_free(&base);
	for (size_t i = 0; i < o.metrics; i++)
		free(o.metric[i]);
	return status;
}
