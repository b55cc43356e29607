/* SPDX-License-Identifier: MIT */
#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define DEFAULT_TIMEOUT 30
#define TEXT_MAX	16384

struct capture {
	int fd;
	size_t length;
	char text[TEXT_MAX];
};

static char dir[PATH_MAX];
static char lib[PATH_MAX];
int errno_at_start;

const char *test_dir(void)
{
	return dir;
}

const char *lib_path(void)
{
	return lib;
}

const char *dir_file(const char *name)
{
	static char paths[4][PATH_MAX];
	static int next;
	char *path = paths[next++ & 3];

	snprintf(path, PATH_MAX, "%.3000s/%.500s", dir, name);
	return path;
}

static void say(const char *tag, const char *format, va_list args)
{
	char line[1024];
	int n = snprintf(line, sizeof(line), "%s", tag);
	ssize_t done;

	n += vsnprintf(line + n, sizeof(line) - n - 2, format, args);
	if (n > (int)sizeof(line) - 2)
		n = sizeof(line) - 2;
	line[n++] = '\n';
	done = write(REPORT_FD, line, n);
	(void)done;
}

void fail(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say("", format, args);
	va_end(args);
	_exit(1);
}

void skip(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say("SKIP ", format, args);
	va_end(args);
	_exit(STATUS_SKIP);
}

void note(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say("note: ", format, args);
	va_end(args);
}

/* Copies text with LIB and DIR/ replaced. */
static char *expand(const char *text, char *out, size_t size)
{
	size_t n = 0;

	while (*text && n + 1 < size) {
		if (!strncmp(text, "LIB", 3)) {
			n += snprintf(out + n, size - n, "%s", lib);
			text += 3;
		} else if (!strncmp(text, "DIR/", 4)) {
			n += snprintf(out + n, size - n, "%s/", dir);
			text += 4;
		} else {
			out[n++] = *text++;
		}
	}
	out[n < size ? n : size - 1] = 0;
	return out;
}

static void find_places(void)
{
	const char *name = getenv("LIB");
	ssize_t n = readlink("/proc/self/exe", dir, sizeof(dir) - 1);
	char *slash;

	if (n < 0) { /* a child in a place without /proc is told */
		snprintf(dir, sizeof(dir), "%s", getenv("TEST_DIR") ? getenv("TEST_DIR") : ".");
	} else {
		dir[n] = 0;
		slash = strrchr(dir, '/');
		*slash = 0;
	}
	if (!name)
		name = "build/libnumaslab.so";
	if (*name && name[0] != '/' && strchr(name, '/')) {
		if (!realpath(name, lib)) {
			fprintf(stderr, "LIB: %s: %s\n", name, strerror(errno));
			exit(2);
		}
	} else {
		snprintf(lib, sizeof(lib), "%s", name);
	}
}

static void set_environment(const struct test *t)
{
	char text[2 * PATH_MAX];

	setenv("LIB", lib, 1);
	setenv("TEST_DIR", dir, 1);
	for (int i = 0; i < 4 && t->env[i]; i++)
		putenv(strdup(expand(t->env[i], text, sizeof(text))));
	expand(t->preload ? t->preload : "LIB", text, sizeof(text));
	if (*text && strcmp(text, ":"))
		setenv("LD_PRELOAD", text, 1);
}

static void start_child(const struct test *t, char *self, int report, int output)
{
	char program[PATH_MAX];
	char *argv[] = {self, "--run", (char *)t->name, NULL};
	struct rlimit none = {0, 0};
	int null = open("/dev/null", O_RDONLY);

	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* a harness that is stopped leaves nothing behind */
	setrlimit(RLIMIT_CORE, &none);
	set_environment(t);
	if (dup2(report, REPORT_FD) < 0 || dup2(output, 1) < 0 || dup2(output, 2) < 0 ||
	    dup2(null, 0) < 0)
		_exit(126);
	if (close_range(3, REPORT_FD - 1, 0) || close_range(REPORT_FD + 1, ~0u, 0))
		_exit(126);
	if (t->before)
		t->before();
	if (t->program) {
		snprintf(program, sizeof(program), "%.4000s/%.90s", dir, t->program);
		argv[0] = program;
	}
	execv(argv[0], argv);
	fail("exec %s: %s", argv[0], strerror(errno));
}

static bool take(struct capture *c)
{
	char waste[4096];
	size_t room = TEXT_MAX - 1 - c->length;
	ssize_t n = read(c->fd, room ? c->text + c->length : waste, room ? room : sizeof(waste));

	if (n <= 0)
		return false;
	if (room)
		c->length += n;
	c->text[c->length] = 0;
	return true;
}

/* Shows where a subtest hangs, where gdb is there and TEST_GDB is set. */
static void show_stacks(pid_t pid)
{
	char command[256];

	if (!getenv("TEST_GDB"))
		return;
	snprintf(command, sizeof(command),
		 "for p in $(pgrep -g %d); do gdb -batch -p $p -ex 'thread apply all bt 12' "
		 "2>/dev/null | grep '^[#T]' | sed 's/^/# /'; done",
		 pid);
	fflush(stdout);
	if (system(command) < 0)
		return;
}

/* Reads both pipes until they end or the time is over; false: over. */
static bool collect(pid_t pid, struct capture *c, int timeout)
{
	struct pollfd fds[2] = {{c[0].fd, POLLIN, 0}, {c[1].fd, POLLIN, 0}};
	uint64_t end = now_ms() + timeout * 1000ull;
	int left = 2;

	while (left) {
		uint64_t now = now_ms();
		int n = now >= end ? 0 : poll(fds, 2, (int)(end - now));

		if (n == 0) {
			show_stacks(pid);
			return false;
		}
		for (int i = 0; i < 2; i++) {
			if (fds[i].fd >= 0 && fds[i].revents && !take(&c[i])) {
				fds[i].fd = -1;
				left--;
			}
		}
	}
	return true;
}

static int wait_until(pid_t pid, bool in_time)
{
	int status;

	if (!in_time)
		kill(-pid, SIGKILL);
	waitpid(pid, &status, 0);
	kill(-pid, SIGKILL);
	return status;
}

static void show_lines(const char *title, const char *text)
{
	while (*text) {
		int n = (int)strcspn(text, "\n");

		printf("# %s%.*s\n", title, n, text);
		text += n + (text[n] == '\n');
	}
}

/* Prints the result; true if the subtest did not fail. */
static bool judge(const struct test *t, int number, bool in_time, int status,
		  const struct capture *report, const struct capture *output)
{
	const char *why = strstr(report->text, "SKIP ");
	bool exited = in_time && WIFEXITED(status);

	if (exited && WEXITSTATUS(status) == STATUS_SKIP && why) {
		printf("ok %d - %s # %.*s\n", number, t->name, (int)strcspn(why, "\n"), why);
		return true;
	}
	if (exited && WEXITSTATUS(status) == 0 && (t->prints || !output->length)) {
		printf("ok %d - %s\n", number, t->name);
		if (getenv("TEST_NOTES"))
			show_lines("", report->text);
		return true;
	}
	printf("not ok %d - %s\n", number, t->name);
	if (!in_time)
		printf("# took longer than %d s\n", t->timeout ? t->timeout : DEFAULT_TIMEOUT);
	else if (!exited || WEXITSTATUS(status) != 1)
		printf("# %s\n", status_text(status));
	show_lines("", report->text);
	show_lines("printed: ", output->text);
	return false;
}

static bool run_test(const struct test *t, int number, char *self)
{
	static struct capture c[2];
	int report[2], output[2], status;
	uint64_t start = now_ms();
	bool in_time;
	pid_t pid;

	if (pipe2(report, O_CLOEXEC) || pipe2(output, O_CLOEXEC))
		return false;
	fflush(stdout);
	pid = fork();
	if (!pid)
		start_child(t, self, report[1], output[1]);
	close(report[1]);
	close(output[1]);
	memset(c, 0, sizeof(c));
	c[0].fd = report[0];
	c[1].fd = output[0];
	in_time = collect(pid, c, t->timeout ? t->timeout : DEFAULT_TIMEOUT);
	status = wait_until(pid, in_time);
	close(report[0]);
	close(output[0]);
	in_time = judge(t, number, in_time, status, &c[0], &c[1]);
	if (getenv("TEST_NOTES"))
		printf("# %llu ms\n", (unsigned long long)(now_ms() - start));
	return in_time;
}

static int run_child(const char *name)
{
	for (const struct test *t = tests; t->name; t++) {
		if (strcmp(t->name, name))
			continue;
		if (t->numaslab && !is_numaslab())
			skip("numaslab's own");
		t->run();
		return 0;
	}
	return 125;
}

static bool chosen(const char *name, int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (strstr(name, argv[i]))
			return true;
	return argc == 1;
}

int main(int argc, char **argv)
{
	char self[PATH_MAX];
	int number = 0;
	bool good = true;

	errno_at_start = errno;
	find_places();
	if (argc == 3 && !strcmp(argv[1], "--run"))
		return run_child(argv[2]);
	snprintf(self, sizeof(self), "%.4000s/%.90s", dir, strrchr(argv[0], '/') + 1);
	for (const struct test *t = tests; t->name; t++)
		if (!t->part && chosen(t->name, argc, argv))
			good &= run_test(t, ++number, self);
	rmdir(TEST_ROOT);
	printf("1..%d\n", number);
	return !good;
}
