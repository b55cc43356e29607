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
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tools/compare_launcher.h"
#include "tools/compare_machine.h"
#include "tools/compare_tree.h"

/* Sampling takes at most this share of one CPU, and is never more frequent than SAMPLE_MIN_MS. */
#define SAMPLE_SHARE  20
#define SAMPLE_MIN_MS 10
#define PAD_VARIABLE  "COMPARE_PAD"
#define PRELOAD_MAX   (2 * PATH_MAX)

static int signals = -1; /* signalfd of the four that a run waits for */
static sigset_t before;	 /* the mask that we were started with, and children get */

/* A run in progress. */
struct run {
	pid_t pid, group;    /* the command; its process group, whose leader the launcher was */
	int out, err, start; /* pipe ends; start brings the launcher's records */
	double began, ended, next_sample;
	bool over;
	int status;
	struct rusage usage;
	struct cmp_peak peak;
};

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

bool cmp_run_init(void)
{
	sigset_t set;

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

size_t cmp_run_preload(const struct cmp_allocator *a, char *text, size_t size)
{
	cmp_preload_text(text, size, a->library, getenv("LD_PRELOAD"));
	return text[0] ? strlen("LD_PRELOAD=") + strlen(text) + 1 + sizeof(char *) : 0;
}

static bool is_variable(const char *entry, const char *name)
{
	size_t len = strlen(name);

	return !strncmp(entry, name, len) && entry[len] == '=';
}

static char *text_join(const char *a, const char *b)
{
	char *out = malloc(strlen(a) + strlen(b) + 1);

	if (!out)
		abort();
	strcpy(out, a);
	return strcat(out, b);
}

/* The environment for a run, made here and not in the child, which must stay small (see start()).
 * Both sides get one of the same size: its size moves the stack, and that alone can change a
 * program's speed by some per cent.  The last two entries are ours to free. */
static char **environment(const struct cmp_command *c, const struct cmp_allocator *a)
{
	char preload[PRELOAD_MAX], pad[PRELOAD_MAX] = "", **env;
	size_t len = cmp_run_preload(a, preload, sizeof preload), n = 0;

	while (environ[n])
		n++;
	env = calloc(n + 3, sizeof *env);
	if (!env)
		abort();
	n = 0;
	for (char **e = environ; *e; e++)
		if (!is_variable(*e, "LD_PRELOAD") && !is_variable(*e, PAD_VARIABLE))
			env[n++] = *e;
	if (c->pad > len)
		memset(pad, 'x', c->pad - len < sizeof pad ? c->pad - len : sizeof pad - 1);
	env[n++] = text_join(PAD_VARIABLE "=", pad);
	if (preload[0])
		env[n++] = text_join("LD_PRELOAD=", preload);
	return env;
}

static void environment_free(char **env)
{
	for (char **e = env; *e; e++)
		if (is_variable(*e, "LD_PRELOAD") || is_variable(*e, PAD_VARIABLE))
			free(*e);
	free(env);
}

/* In the child: everything that the command inherits, then the launcher, or where that cannot be run
 * the command itself. */
static void become_command(const struct cmp_command *c, char **argv, char **env, int out, int err,
			   int start)
{
	int null = open("/dev/null", O_RDONLY);
	struct cmp_started s = { .kind = CMP_STARTED };
	struct timespec t;

	setpgid(0, 0);
	if (c->cgroup.path[0])
		cmp_cgroup_enter(&c->cgroup);
	if (c->cpus)
		sched_setaffinity(0, c->cpus_size, c->cpus);
	dup2(null, 0);
	dup2(out, 1);
	dup2(err, 2);
	if (null > 2)
		close(null);
	sigprocmask(SIG_SETMASK, &before, NULL);
	if (c->launcher >= 0) {
		fcntl(start, F_SETFD, 0);
		execveat(c->launcher, "", argv, env, AT_EMPTY_PATH);
		fcntl(start, F_SETFD, FD_CLOEXEC);
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	s.pid = getpid();
	clock_gettime(CLOCK_MONOTONIC, &t);
	s.seconds = t.tv_sec;
	s.nanoseconds = t.tv_nsec;
	if (write(start, &s, sizeof s) != sizeof s)
		_exit(126);
	execvpe(c->path, argv + 3, env);
	s.kind = CMP_NOT_STARTED;
	s.error = errno;
	_exit(write(start, &s, sizeof s) == sizeof s ? 127 : 126);
}

/* The launcher's argv: what it needs, then the command's. */
static char **launcher_argv(const struct cmp_command *c, int start)
{
	static char fd[16];
	size_t n = 0;
	char **argv;

	while (c->argv[n])
		n++;
	argv = calloc(n + 4, sizeof *argv);
	if (!argv)
		abort();
	snprintf(fd, sizeof fd, "%d", start);
	argv[0] = fd;
	argv[1] = "/bin/sh";
	argv[2] = (char *)c->path;
	memcpy(argv + 3, c->argv, n * sizeof *argv);
	return argv;
}

static void close_pair(int fds[2])
{
	close(fds[0]);
	close(fds[1]);
}

/* Reads the launcher's records until the pipe is closed by the command's exec, or by its failure. */
static bool started(struct run *r, int *error)
{
	struct cmp_started s;
	bool good = false;
	ssize_t n;

	*error = ECHILD;
	while ((n = read(r->start, &s, sizeof s)) == sizeof s || (n < 0 && errno == EINTR)) {
		if (n < 0)
			continue;
		good = s.kind == CMP_STARTED;
		if (!good) {
			*error = (int)s.error;
			continue;
		}
		r->pid = (pid_t)s.pid;
		r->began = (double)s.seconds + (double)s.nanoseconds * 1e-9;
	}
	return good;
}

/* Starts the command; on failure *error tells why. */
static bool start(struct run *r, struct cmp_command *c, char **env, int *error)
{
	int out[2], err[2], startup[2];
	char **argv;

	*error = EMFILE;
	if (pipe2(out, O_CLOEXEC))
		return false;
	if (pipe2(err, O_CLOEXEC)) {
		close_pair(out);
		return false;
	}
	if (pipe2(startup, O_CLOEXEC)) {
		close_pair(out);
		close_pair(err);
		return false;
	}
	argv = launcher_argv(c, startup[1]);
	cmp_cgroup_begin(&c->cgroup);
	r->group = fork();
	if (!r->group)
		become_command(c, argv, env, out[1], err[1], startup[1]);
	close(out[1]);
	close(err[1]);
	close(startup[1]);
	free(argv);
	fcntl(out[0], F_SETFL, O_NONBLOCK);
	fcntl(err[0], F_SETFL, O_NONBLOCK);
	r->out = out[0];
	r->err = err[0];
	r->start = startup[0];
	*error = errno;
	return r->group > 0 && started(r, error);
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

static void reap(struct run *r)
{
	struct rusage usage;
	int status;
	pid_t pid;

	while ((pid = wait4(-1, &status, WNOHANG, &usage)) > 0) {
		if (pid != r->group || pid == r->pid) /* the launcher is not the command */
			cmp_rusage_add(&r->usage, &usage);
		if (pid != r->pid)
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

static void sample_if_due(struct run *r, const struct cmp_command *c)
{
	double t = now(), cost;

	if (r->next_sample > t)
		return;
	cmp_tree_sample(&r->peak, c->nodes);
	cost = now() - t;
	r->next_sample = now() + fmax(SAMPLE_MIN_MS * 1e-3, cost * SAMPLE_SHARE);
}

/* Milliseconds until the next thing to do by the clock, -1: none. */
static int wait_time(const struct run *r, const struct cmp_command *c, bool sampling)
{
	double t = now(), wait = INFINITY;

	if (sampling)
		wait = r->next_sample - t;
	if (c->timeout > 0)
		wait = fmin(wait, r->began + c->timeout - t);
	if (isinf(wait))
		return -1;
	return wait <= 0 ? 0 : (int)fmin(wait * 1000 + 1, 3600e3);
}

static void watch(struct run *r, struct cmp_command *c, struct cmp_outcome *o)
{
	bool sampling = !c->cgroup.path[0] || c->nodes;
	struct pollfd fds[] = {
	    {.fd = signals, .events = POLLIN},
	    {.fd = r->out, .events = POLLIN},
	    {.fd = r->err, .events = POLLIN},
	};

	r->next_sample = r->began + 2e-3;
	while (!r->over) {
		poll(fds, 3, wait_time(r, c, sampling));
		if (fds[1].revents && !drain(r->out, &o->out))
			fds[1].fd = -1;
		if (fds[2].revents && !drain(r->err, &o->err))
			fds[2].fd = -1;
		o->interrupted = signals_take(r);
		if (o->interrupted)
			return;
		if (!r->over && c->timeout > 0 && now() > r->began + c->timeout) {
			o->timed_out = true;
			return;
		}
		if (!r->over && sampling)
			sample_if_due(r, c);
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

	s->v[CMP_M_TIME] = r->ended - r->began;
	s->v[CMP_M_USER] = seconds(u->ru_utime);
	s->v[CMP_M_SYS] = seconds(u->ru_stime);
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

static bool read_figure(const struct cmp_command *c, struct cmp_sample *s, struct cmp_outcome *o)
{
	if (!c->figure)
		return true;
	o->no_figure =
	    !(o->out.data && cmp_figure_find(c->figure, o->out.data, &s->v[CMP_M_FIGURE])) &&
	    !(o->err.data && cmp_figure_find(c->figure, o->err.data, &s->v[CMP_M_FIGURE]));
	return !o->no_figure;
}

bool cmp_run(struct cmp_command *c, const struct cmp_allocator *a, struct cmp_sample *s,
	     struct cmp_outcome *o)
{
	double vm0[CMP_M_COUNT], vm1[CMP_M_COUNT], cgroup_peak;
	struct run r = {.pid = -1, .out = -1, .err = -1, .start = -1};

	char **env = environment(c, a);

	memset(o, 0, sizeof *o);
	cmp_vmstat_read(vm0);
	if (start(&r, c, env, &o->spawn_errno)) {
		o->spawn_errno = 0;
		watch(&r, c, o);
	}
	cmp_tree_end(&r.usage);
	cgroup_peak = cmp_cgroup_end(&c->cgroup);
	cmp_vmstat_read(vm1);
	drain(r.out, &o->out);
	drain(r.err, &o->err);
	fill(s, &r, c, cgroup_peak, vm0, vm1);
	o->signal = r.over && WIFSIGNALED(r.status) ? WTERMSIG(r.status) : 0;
	o->core = o->signal && WCOREDUMP(r.status);
	environment_free(env);
	close(r.out);
	close(r.err);
	close(r.start);
	if (o->spawn_errno || o->interrupted || o->timed_out)
		return false;
	return read_figure(c, s, o) || s->status;
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
