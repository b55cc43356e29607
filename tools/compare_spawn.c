/* SPDX-License-Identifier: MIT */
/* Starting the command: its environment, descriptors, CPUs and cgroup, by way of the launcher. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "tools/compare_launcher.h"
#include "tools/compare_run.h"

#define PAD_VARIABLE "COMPARE_PAD"
#define PRELOAD_MAX  (2 * PATH_MAX)

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
	char *out;

	if (asprintf(&out, "%s%s", a, b) < 0)
		abort();
	return out;
}

/* The environment for a run, made here and not in the child, which must stay small (see
 * cmp_spawn()). Both sides get one of the same size: its size moves the stack, and that alone can
 * change a program's speed by some per cent.  The last two entries are ours to free. */
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

/* In the child: everything that the command inherits, then the launcher, or where that cannot be
 * run the command itself. */
static void become_command(const struct cmp_command *c, char **argv, char **env,
			   const sigset_t *mask, int out, int err, int start)
{
	int null = open("/dev/null", O_RDONLY);
	struct cmp_started s = {.kind = CMP_STARTED};
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
	sigprocmask(SIG_SETMASK, mask, NULL);
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

/* Reads the launcher's records until the pipe is closed by the command's exec, or by its failure.
 */
static bool started(struct cmp_spawned *r, int *error)
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

bool cmp_spawn(struct cmp_spawned *r, struct cmp_command *c, const struct cmp_allocator *a,
	       const sigset_t *mask, int *error)
{
	int out[2], err[2], startup[2];
	char **argv, **env;

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
	env = environment(c, a);
	cmp_cgroup_begin(&c->cgroup);
	r->group = fork();
	*error = errno;
	if (!r->group)
		become_command(c, argv, env, mask, out[1], err[1], startup[1]);
	close(out[1]);
	close(err[1]);
	close(startup[1]);
	free(argv);
	environment_free(env);
	fcntl(out[0], F_SETFL, O_NONBLOCK);
	fcntl(err[0], F_SETFL, O_NONBLOCK);
	r->out = out[0];
	r->err = err[0];
	r->start = startup[0];
	return r->group > 0 && started(r, error);
}
