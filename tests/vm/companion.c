/* SPDX-License-Identifier: MIT */
#include "tests/vm/companion.h"
#include "tests/vm/guest.h"
#include "telemetry/ring.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define OUTPUT	  "/tmp/hints.json"
#define TRACE	  "/sys/kernel/tracing/"
#define TEXT_MAX  ((size_t)32 << 20)
#define ARGS_MAX  24
#define READY_MAX 60 /* seconds; software emulation is slow */

static pid_t child = -1;
static char *text; /* not of malloc: that is what is looked at */

double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

/* It publishes from a slow path, once it has 16 MiB or is a second old. */
void await_publication(void)
{
	static char maps[1 << 20];
	double end = seconds() + 120;

	while (seconds() < end) {
		FILE *f = fopen("/proc/self/maps", "re");
		size_t n = f ? fread(maps, 1, sizeof(maps) - 1, f) : 0;

		maps[n] = 0;
		if (f)
			fclose(f);
		if (strstr(maps, "/dev/shm/numaslab-"))
			return;
		for (int i = 0; i < 1000; i++)
			free(malloc(100 + i * 10));
		usleep(50000);
	}
	die("the process publishes");
}

uint64_t observed_request(void)
{
	static char line[512], *name;
	uint64_t request = 0;
	FILE *f = name ? NULL : fopen("/proc/self/maps", "re");

	while (f && !name && fgets(line, sizeof(line), f))
		if ((name = strchr(line, '/')) && strstr(name, "/numaslab-") && !strchr(name, '.'))
			name[strcspn(name, "\n")] = 0;
		else
			name = NULL;
	if (f)
		fclose(f);
	int fd = name ? open(name, O_RDONLY | O_CLOEXEC) : -1;
	if (fd < 0 || pread(fd, &request, sizeof(request),
			    offsetof(struct ring_header, observe_request)) != sizeof(request))
		die("the telemetry file of this process is read");
	close(fd);
	return request;
}

static void run_child(const char *const *args, int said)
{
	const char *argv[ARGS_MAX] = {"numaslab", "hints", "--json"};
	int n = 3, out = open(OUTPUT, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	while (*args && n < ARGS_MAX - 1)
		argv[n++] = *args++;
	unsetenv("LD_PRELOAD");
	if (out < 0 || dup2(out, 1) < 0 || dup2(said, 2) < 0)
		_exit(126);
	execvp("numaslab", (char **)argv);
	_exit(127);
}

void companion_start(const char *const *args)
{
	char line[1024];
	size_t used = 0;
	ssize_t n;
	int pipe_fd[2];

	if (pipe2(pipe_fd, O_CLOEXEC))
		die("a pipe: %m");
	child = fork();
	if (child == 0)
		run_child(args, pipe_fd[1]);
	close(pipe_fd[1]);
	alarm(READY_MAX);
	while (used < sizeof(line) - 1 &&
	       (n = read(pipe_fd[0], line + used, sizeof(line) - 1 - used)) > 0) {
		used += n;
		line[used] = 0;
		if (strstr(line, "counting, tier")) {
			alarm(0);
			return; /* the pipe stays open: it may say more */
		}
	}
	line[used] = 0;
	die("numaslab hints begins to count (it said: %s)", line);
}

pid_t companion_pid(void)
{
	return child;
}

int companion_stop(void)
{
	int status, fd;
	size_t used = 0;
	ssize_t n;

	kill(child, SIGINT);
	if (waitpid(child, &status, 0) != child)
		die("numaslab hints ends: %m");
	child = -1;
	if (!text)
		text = map_pages(TEXT_MAX, -1);
	fd = open(OUTPUT, O_RDONLY | O_CLOEXEC);
	while (fd >= 0 && (n = read(fd, text + used, TEXT_MAX - 1 - used)) > 0)
		used += n;
	text[used] = 0;
	close(fd);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

const char *companion_json(void)
{
	return text;
}

/* --- Enough of JSON for a document of a known form. --- */

static const char *behind_key(const char *at, const char *key)
{
	char quoted[64];
	size_t length = snprintf(quoted, sizeof(quoted), "\"%s\":", key);

	at = at ? strstr(at, quoted) : NULL;
	return at ? at + length : NULL;
}

long long json_number(const char *at, const char *key)
{
	char *end;

	at = behind_key(at ? at : text, key);
	long long n = at ? strtoll(at, &end, 10) : -1;
	return at && end != at ? n : -1;
}

const char *json_process(int pid)
{
	char key[64];

	snprintf(key, sizeof(key), "{\"pid\":%d,", pid);
	return strstr(text, key);
}

bool json_has(const char *at, const char *key, const char *word)
{
	at = behind_key(at ? at : text, key);
	return at && !strncmp(at, word, strlen(word));
}

/* The next object of the array called name, inside the process's own text. */
static const char *next_row(const char *process, const char *name, const char **at)
{
	if (!*at) {
		char array[64];
		int length = snprintf(array, sizeof(array), "\"%s\":[", name);

		*at = strstr(process, array);
		if (*at)
			*at += length;
	}
	if (*at && **at == ',')
		++*at;
	if (!*at || **at != '{')
		return NULL;
	const char *row = *at;
	*at = strchr(row, '}');
	if (*at)
		++*at;
	return row;
}

bool json_cell(const char *process, const char **at, struct cell *c)
{
	const char *row = next_row(process, "cells", at), *kind = behind_key(row, "kind");

	if (!row || !kind || sscanf(kind, "\"%15[a-z]\"", c->kind) != 1)
		return false;
	c->size = json_number(row, "size");
	c->home = json_number(row, "home");
	c->node = json_number(row, "node");
	c->faults = json_number(row, "faults");
	c->local = json_number(row, "local");
	c->remote = json_number(row, "remote");
	c->migrated = json_number(row, "migrated");
	return true;
}

bool json_slab(const char *process, const char **at, struct slab_row *s)
{
	const char *row = next_row(process, "slabs", at);

	if (!row)
		return false;
	s->address = json_number(row, "address");
	s->generation = json_number(row, "generation");
	s->size = json_number(row, "size");
	s->home = json_number(row, "home");
	s->node = json_number(row, "node");
	s->faults = json_number(row, "faults");
	return true;
}

uint64_t json_sample(const char *process, const char **at, long long *pages)
{
	const char *row = next_row(process, "samples", at);

	if (!row)
		return 0;
	*pages = json_number(row, "pages");
	return json_number(row, "address");
}

/* --- The trace. --- */

static bool put(const char *file, const char *words)
{
	char path[128];

	snprintf(path, sizeof(path), TRACE "%s", file);
	int fd = open(path, O_WRONLY | O_CLOEXEC | (*words ? 0 : O_TRUNC));
	bool good = fd >= 0 && write(fd, words, strlen(words)) == (ssize_t)strlen(words);
	if (fd >= 0)
		close(fd);
	return good;
}

bool trace_start(void)
{
	static bool ready;

	if (!ready) {
		put("buffer_size_kb", "32768");
		/* There already, if another program of this boot made it. */
		put("kprobe_events", "p:companion mpol_misplaced addr=$arg3:x64");
		ready = put("events/kprobes/companion/enable", "1");
	}
	put("trace", "");
	return ready && put("tracing_on", "1");
}

/* "          name-123     [002] ....  12.345678: companion: (mpol_misplaced+0x0/0x1) addr=0x7f..."
 */
long trace_stop(void (*see)(int tid, int cpu, uint64_t address))
{
	static char line[512];
	long seen = 0;

	put("tracing_on", "0");
	FILE *trace = fopen(TRACE "trace", "re");
	if (!trace)
		die("the trace of hint faults: %m");
	while (fgets(line, sizeof(line), trace)) {
		char *addr = strstr(line, "addr=0x"), *bracket = strchr(line, '[');
		char *dash = bracket;

		if (*line == '#' || !addr || !bracket)
			continue;
		while (dash > line && *dash != '-')
			dash--;
		see(atoi(dash + 1), atoi(bracket + 1), strtoull(addr + 5, NULL, 16));
		seen++;
	}
	fclose(trace);
	put("trace", "");
	return seen;
}
