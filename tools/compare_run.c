/* SPDX-License-Identifier: MIT */
#include "tools/compare_run.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tools/compare_counters.h"
#include "tools/compare_machine.h"
#include "tools/compare_tree.h"

/* Sampling takes at most one part in SAMPLE_SHARE of a CPU, and is never more frequent than
 * SAMPLE_MIN_MS.  Numaslab's counters, which are read under numaslab alone, must not cost it
 * anything: once a file is found they are read COUNTERS_MS apart at least. */
#define SAMPLE_SHARE   50
#define SAMPLE_MIN_MS  10
#define COUNTERS_SHARE 500
#define COUNTERS_MS    50

static int signals = -1; /* signalfd of the four that a run waits for */
static sigset_t before;	 /* the mask that we were started with, and children get */

/* A run in progress. */
struct run {
	struct cmp_spawned at;
	double ended, next_sample, next_counters; /* INFINITY: none */
	bool over;
	int status;
	struct rusage usage;
	struct cmp_peak peak;
};

static double seconds_on(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double now(void)
{
	return seconds_on(CLOCK_MONOTONIC);
}

bool cmp_run_init(void)
{
	sigset_t set;
	int fd;

	/* Where 0, 1 or 2 is closed our pipes would get the number. */
	while ((fd = open("/dev/null", O_RDWR | O_CLOEXEC)) >= 0 && fd <= 2)
		;
	close(fd);
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	if (sigprocmask(SIG_BLOCK, &set, &before))
		return false;
	signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	cmp_tree_init();
	return signals >= 0;
}

void cmp_run_finish(int sig)
{
	if (sig) {
		signal(sig, SIG_DFL);
		raise(sig); /* pending until the mask lets it through */
	}
	close(signals);
	signals = -1;
	sigprocmask(SIG_SETMASK, &before, NULL);
}

static void output_add(struct cmp_output *o, const char *data, size_t n)
{
	if (!o->total)
		o->hash = 0xcbf29ce484222325ULL;
	for (size_t i = 0; i < n; i++)
		o->hash = (o->hash ^ (unsigned char)data[i]) * 0x100000001b3ULL;
	o->total += n;
	if (o->len + n > CMP_OUTPUT_MAX)
		n = CMP_OUTPUT_MAX - o->len;
	if (o->len + n + 1 > o->room) {
		o->room = 2 * (o->len + n + 1);
		o->data = realloc(o->data, o->room);
		if (!o->data)
			abort();
	}
	memcpy(o->data + o->len, data, n);
	o->len += n;
	o->data[o->len] = '\0';
}

/* Reads what is there; false at the end. */
static bool drain(int fd, struct cmp_output *o)
{
	char buf[65536];
	ssize_t n;

	while ((n = read(fd, buf, sizeof buf)) > 0)
		output_add(o, buf, (size_t)n);
	return n < 0 && (errno == EAGAIN || errno == EINTR);
}

/* The launcher is not the command: it still had our memory when it began.  It may end after it. */
static pid_t launcher_of(const struct run *r)
{
	return r->at.group == r->at.pid ? -1 : r->at.group;
}

static void reap(struct run *r)
{
	struct rusage usage;
	int status;
	pid_t pid;

	while ((pid = wait4(-1, &status, WNOHANG, &usage)) > 0) {
		if (pid != launcher_of(r))
			cmp_rusage_add(&r->usage, &usage);
		if (pid != r->at.pid)
			continue;
		r->over = true;
		r->ended = now();
		r->status = status;
	}
}

/* Returns the signal that asks us to stop, or 0. */
static int signals_take(struct run *r)
{
	struct signalfd_siginfo info;
	int stop = 0;

	while (read(signals, &info, sizeof info) == sizeof info)
		if (info.ssi_signo != SIGCHLD)
			stop = (int)info.ssi_signo;
	reap(r);
	return stop;
}

static void sample_if_due(struct run *r, const struct cmp_watch *look)
{
	double cost = seconds_on(CLOCK_THREAD_CPUTIME_ID);
	bool found;

	if (r->next_sample <= now()) {
		cmp_tree_sample(&r->peak, look);
		cost = seconds_on(CLOCK_THREAD_CPUTIME_ID) - cost;
		r->next_sample = now() + fmax(SAMPLE_MIN_MS * 1e-3, cost * SAMPLE_SHARE);
	} else if (r->next_counters <= now()) {
		found = cmp_tree_counters(look->counters);
		cost = seconds_on(CLOCK_THREAD_CPUTIME_ID) - cost;
		r->next_counters =
		    now() + (found ? fmax(COUNTERS_MS * 1e-3, cost * COUNTERS_SHARE)
				   : fmax(SAMPLE_MIN_MS * 1e-3, cost * SAMPLE_SHARE));
	}
}

/* Milliseconds until the next thing to do by the clock, -1: none. */
static int wait_time(const struct run *r, const struct cmp_command *c)
{
	double t = now(), wait = fmin(r->next_sample, r->next_counters) - t;

	if (c->timeout > 0)
		wait = fmin(wait, r->at.began + c->timeout - t);
	if (isinf(wait))
		return -1;
	return wait <= 0 ? 0 : (int)fmin(wait * 1000 + 1, 3600e3);
}

static void watch(struct run *r, struct cmp_command *c, const struct cmp_watch *look,
		  struct cmp_outcome *o)
{
	struct pollfd fds[] = {
	    {.fd = signals, .events = POLLIN},
	    {.fd = r->at.out, .events = POLLIN},
	    {.fd = r->at.err, .events = POLLIN},
	};

	r->next_sample = look->pss || look->nodes ? r->at.began + 2e-3 : INFINITY;
	r->next_counters = look->counters ? r->at.began + 4e-3 : INFINITY;
	while (!r->over) {
		poll(fds, 3, wait_time(r, c));
		if (fds[1].revents && !drain(r->at.out, &o->out))
			fds[1].fd = -1;
		if (fds[2].revents && !drain(r->at.err, &o->err))
			fds[2].fd = -1;
		o->interrupted = signals_take(r);
		if (o->interrupted)
			return;
		if (!r->over && c->timeout > 0 && now() > r->at.began + c->timeout) {
			o->timed_out = true;
			return;
		}
		if (!r->over)
			sample_if_due(r, look);
	}
}

static double seconds(struct timeval t)
{
	return (double)t.tv_sec + (double)t.tv_usec * 1e-6;
}

/* Peak memory: the cgroup's, which is exact; else the larger of the sampled sum of PSS and the
 * largest process's own high-water mark, which short runs are known by. */
static double peak_of(const struct run *r, double cgroup_peak)
{
	if (!isnan(cgroup_peak) && cgroup_peak > 0)
		return cgroup_peak;
	return fmax(r->peak.pss, (double)r->usage.ru_maxrss * 1024);
}

static void fill(struct cmp_sample *s, const struct run *r, const struct cmp_command *c,
		 double cgroup_peak, const double *vm0, const double *vm1)
{
	const struct rusage *u = &r->usage;

	s->v[CMP_M_TIME] = round((r->ended - r->at.began) * 1e9) / 1e9; /* exact in JSON */
	s->v[CMP_M_USER] = seconds(u->ru_utime);
	s->v[CMP_M_SYS] = seconds(u->ru_stime);
	s->v[CMP_M_CPU] = s->v[CMP_M_USER] + s->v[CMP_M_SYS];
	s->v[CMP_M_RSS] = peak_of(r, cgroup_peak);
	s->v[CMP_M_MINFLT] = (double)u->ru_minflt;
	s->v[CMP_M_MAJFLT] = (double)u->ru_majflt;
	s->v[CMP_M_VCSW] = (double)u->ru_nvcsw;
	s->v[CMP_M_ICSW] = (double)u->ru_nivcsw;
	for (int m = CMP_VMSTAT_FIRST; m <= CMP_VMSTAT_LAST; m++)
		s->v[m] = vm1[m] - vm0[m];
	if (c->nodes && r->peak.heap > 0) {
		s->v[CMP_M_REMOTE] = r->peak.remote_share;
		memcpy(s->node_bytes, r->peak.node_bytes, sizeof s->node_bytes);
	}
	s->status = WIFSIGNALED(r->status) ? 128 + WTERMSIG(r->status) : WEXITSTATUS(r->status);
}

static bool read_figures(const struct cmp_command *c, struct cmp_sample *s, struct cmp_outcome *o)
{
	for (size_t i = 0; i < c->figures && !o->no_figure; i++) {
		const regex_t *re = &c->figure[i];
		double *v = &s->v[CMP_M_FIGURE + i];

		if (!(o->out.data && cmp_figure_find(re, o->out.data, v)) &&
		    !(o->err.data && cmp_figure_find(re, o->err.data, v)))
			o->no_figure = i + 1;
	}
	return !o->no_figure;
}

bool cmp_run(struct cmp_command *c, const struct cmp_allocator *a, struct cmp_sample *s,
	     struct cmp_outcome *o)
{
	double vm0[CMP_M_COUNT], vm1[CMP_M_COUNT], cgroup_peak;
	struct run r = {.at = {.pid = -1, .group = -1, .out = -1, .err = -1, .start = -1}};

	struct cmp_watch look = {.nodes = c->nodes};
	time_t since = time(NULL);

	memset(o, 0, sizeof *o);
	if (a->is_numaslab)
		look.counters = cmp_counters_begin();
	cmp_vmstat_read(vm0);
	if (cmp_spawn(&r.at, c, a, &before, &o->spawn_errno)) {
		o->spawn_errno = 0;
		look.pss = !c->cgroup.path[0];
		watch(&r, c, &look, o);
	}
	cmp_tree_end(launcher_of(&r), &r.usage, since);
	cgroup_peak = cmp_cgroup_end(&c->cgroup);
	cmp_vmstat_read(vm1);
	drain(r.at.out, &o->out);
	drain(r.at.err, &o->err);
	fill(s, &r, c, cgroup_peak, vm0, vm1);
	if (look.counters)
		cmp_counters_end(look.counters, s->v);
	o->signal = r.over && WIFSIGNALED(r.status) ? WTERMSIG(r.status) : 0;
	o->core = o->signal && WCOREDUMP(r.status);
	close(r.at.out);
	close(r.at.err);
	close(r.at.start);
	if (o->spawn_errno || o->interrupted || o->timed_out)
		return false;
	return read_figures(c, s, o) || s->status;
}

void cmp_outcome_free(struct cmp_outcome *o)
{
	free(o->out.data);
	free(o->err.data);
	memset(o, 0, sizeof *o);
}

/* A number as programs print it: digits grouped by commas count as one number. */
static bool number_parse(const char *text, size_t len, double *value)
{
	char copy[64], *end;
	size_t n = 0;

	for (size_t i = 0; i < len && n + 1 < sizeof copy; i++)
		if (text[i] != ',')
			copy[n++] = text[i];
	copy[n] = '\0';
	*value = strtod(copy, &end);
	return end != copy && isfinite(*value);
}

bool cmp_figure_find(const regex_t *re, const char *text, double *value)
{
	regmatch_t m[2];
	bool found = false;
	int flags = 0;

	while (*text && !regexec(re, text, 2, m, flags)) {
		int which = re->re_nsub && m[1].rm_so >= 0 ? 1 : 0;
		const char *at = text + m[which].rm_so, *end = text + m[which].rm_eo;
		double v;

		if (!which) /* without a group: the first number of the match */
			at += strcspn(at, "0123456789");
		if (at < end && number_parse(at, (size_t)(end - at), &v)) {
			*value = v;
			found = true;
		}
		text += m[0].rm_eo > 0 ? m[0].rm_eo : 1;
		flags = REG_NOTBOL;
	}
	return found;
}
