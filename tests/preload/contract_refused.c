/* SPDX-License-Identifier: MIT */
/* The system refuses: strict overcommit, mappings used up, system calls that fail. */
#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB (1ul << 20)

#define OVERCOMMIT   "/proc/sys/vm/overcommit_memory"
#define COMMIT_KB    "/proc/sys/vm/overcommit_kbytes"
#define COMMIT_RATIO "/proc/sys/vm/overcommit_ratio"

static long meminfo(const char *key)
{
	char text[4096], *at;
	int fd = open("/proc/meminfo", O_RDONLY | O_CLOEXEC);
	ssize_t n = read(fd, text, sizeof(text) - 1);

	close(fd);
	text[n > 0 ? n : 0] = 0;
	at = strstr(text, key);
	return at ? strtol(at + strlen(key), NULL, 10) : -1;
}

static void strict_child(void *arg)
{
	char *args[] = {(char *)dir_file("contract_refused"), "--run", arg, NULL};

	execv(args[0], args);
	_exit(127);
}

struct overcommit {
	long mode, kb, ratio;
};

/*
 * Puts the old setting back when the write end of the pipe is closed, by whatever ends this test:
 * a process out of reach of the signals that end the group or the session.
 */
static pid_t start_guard(const struct overcommit *old, int *close_to_restore)
{
	char text[32];
	int fds[2];
	pid_t pid;

	CHECK(pipe2(fds, O_CLOEXEC) == 0);
	pid = fork();
	CHECK(pid >= 0);
	*close_to_restore = fds[1];
	if (pid) {
		close(fds[0]);
		return pid;
	}
	setsid();
	if (dup2(fds[0], 0) || close_range(1, ~0u, 0))
		_exit(1);
	while (read(0, text, 1) < 0)
		;
	snprintf(text, sizeof(text), "%ld", old->mode);
	write_text(OVERCOMMIT, text);
	snprintf(text, sizeof(text), "%ld", old->kb ? old->kb : old->ratio);
	write_text(old->kb ? COMMIT_KB : COMMIT_RATIO, text);
	_exit(0);
}

/* The whole machine is strict for a moment, with 4 GiB to spare, however this ends. */
static void under_strict(const char *name)
{
	struct outcome out;
	struct overcommit old = {read_number(OVERCOMMIT), read_number(COMMIT_KB),
				 read_number(COMMIT_RATIO)};
	char text[32];
	sigset_t all;
	int hold;

	if (old.mode < 0 || access(OVERCOMMIT, W_OK))
		skip("may not set vm.overcommit_memory");
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL); /* the guard's too */
	pid_t guard = start_guard(&old, &hold);

	snprintf(text, sizeof(text), "%ld", meminfo("Committed_AS:") + (4l << 20));
	if (!write_text(COMMIT_KB, text) || !write_text(OVERCOMMIT, "2"))
		skip("may not set vm.overcommit_memory");
	run_function(&out, strict_child, (void *)name);
	close(hold);
	waitpid(guard, NULL, 0);
	if (out.status)
		fail("%s %s", status_text(out.status), out.text);
}

static void overcommit_exhaust(void)
{
	under_strict("strict_exhaust");
}

static void overcommit_release(void)
{
	under_strict("strict_release");
}

static void strict_exhaust(void)
{
	/* Take what is to spare but 300 MiB, so that little is touched and others live on. */
	size_t big = (size_t)(meminfo("CommitLimit:") - meminfo("Committed_AS:")) * 1024;
	void *filler;

	CHECK(big > 600 * MIB);
	filler =
	    mmap(NULL, big - 300 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(filler != MAP_FAILED);
	exhaust(50 * MIB, 2048 * MIB);
}

/* What this process has committed, in KiB: the sizes of its mappings that are accounted. */
static long committed(void)
{
	FILE *f = fopen("/proc/self/smaps", "re");
	char line[512];
	long size = 0, sum = 0;

	CHECK(f);
	while (fgets(line, sizeof(line), f)) {
		sscanf(line, "Size: %ld kB", &size);
		if (!strncmp(line, "VmFlags:", 8) && strstr(line, " ac"))
			sum += size;
	}
	fclose(f);
	return sum;
}

/* 1 GiB that was taken and freed is given back to the account, too. */
static void strict_release(void)
{
	struct link *list = NULL;
	long before = committed(), during, left;

	grab_all(&list, 1000, 1024 * MIB);
	during = committed();
	release_all(&list);
	malloc_trim(0);
	left = committed() - before;
	CHECK(during - before > 900 * 1024);
	if (left > 300 * 1024)
		fail("%ld of %ld KiB stay committed after free", left, during - before);
}

static char *maps_area;
static size_t maps_size;

static void use_up_maps(void)
{
	size_t page = sysconf(_SC_PAGESIZE);
	long most = read_number("/proc/sys/vm/max_map_count");

	if (most < 0 || most > 300000)
		skip("vm.max_map_count is %ld", most);
	maps_size = (most + 10) * 2 * page;
	maps_area =
	    mmap(NULL, maps_size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	CHECK(maps_area != MAP_FAILED);
	for (size_t at = 0; at < maps_size; at += 2 * page)
		if (mprotect(maps_area + at, page, PROT_READ)) {
			CHECK_EQ(errno, ENOMEM);
			return;
		}
	fail("vm.max_map_count could not be used up");
}

static void max_map_count(void)
{
	enum { N = 400 };
	void *large[N], *small[N];
	struct link *list = NULL;

	for (int i = 0; i < N; i++) {
		large[i] = malloc((100 << 10) + i * 5000);
		small[i] = malloc(i * 20 + 1);
		memset(large[i], 1, 100 << 10);
	}
	use_up_maps();
	for (int i = 0; i < N; i++) { /* every other one: munmap would have to split */
		errno = 4242;
		if (i & 1)
			free(large[i]);
		free(small[i]);
		CHECK_EQ(errno, 4242);
	}
	for (int round = 0; round < 3; round++) {
		grab_all(&list, 200, 16 * MIB);
		grab_all(&list, 9000, 64 * MIB);
		grab_all(&list, 1 << 20, 64 * MIB);
		for (int i = 0; i < N; i += 2) {
			void *p = realloc(large[i], (100 << 10) + i * 9000);

			if (p)
				large[i] = p;
			CHECK(*(char *)large[i] == 1);
		}
		release_all(&list);
		malloc_trim(0);
	}
	CHECK_EQ(munmap(maps_area, maps_size), 0);
	for (int i = 0; i < N; i += 2)
		free(large[i]);
	CHECK(grab_all(&list, 1 << 20, 64 * MIB) >= 64 * MIB);
	release_all(&list);
	exercise(50, 3);
}

static const int memory_calls[] = {
    SYS_mmap,  SYS_munmap,	  SYS_madvise,	  SYS_mprotect,	  SYS_mremap,
    SYS_mbind, SYS_get_mempolicy, SYS_move_pages, SYS_membarrier,
};

struct refused {
	const int *calls;
	int count, error;
	struct link *list;
	pthread_barrier_t gate;
};

/* A filter of this thread alone: the others see what it leaves behind. */
static void *refused_thread(void *arg)
{
	struct refused *r = arg;
	struct link *mine = NULL;

	grab_all(&mine, 3000, 8 * MIB);
	grab_all(&mine, 300000, 16 * MIB);
	filter_calls(SECCOMP_RET_ERRNO | r->error, r->calls, r->count);
	grab_all(&r->list, 100, 4 * MIB);
	grab_all(&r->list, 20000, 16 * MIB);
	grab_all(&r->list, 2 << 20, 32 * MIB);
	errno = 4242;
	free(mine->next ? NULL : mine);
	for (struct link *next; mine; mine = next) {
		next = mine->next;
		free(mine);
		CHECK_EQ(errno, 4242);
	}
	malloc_trim(0);
	for (size_t size = 10; size < (4ul << 20); size *= 3) {
		char *p = realloc(NULL, size), *q;

		if (!p)
			continue;
		memset(p, 1, size);
		q = realloc(p, size * 3);
		p = q ? q : p;
		CHECK(p[0] == 1 && p[size - 1] == 1);
		free(p);
		p = calloc(1, size);
		for (size_t i = 0; p && i < size; i++)
			CHECK(!p[i]);
		free(p);
	}
	pthread_barrier_wait(&r->gate);
	pthread_barrier_wait(&r->gate);
	return NULL;
}

static void refuse(const int *calls, int count, int error)
{
	struct refused r = {.calls = calls, .count = count, .error = error};
	struct link *list = NULL;
	pthread_t thread;

	pthread_barrier_init(&r.gate, NULL, 2);
	CHECK_EQ(pthread_create(&thread, NULL, refused_thread, &r), 0);
	pthread_barrier_wait(&r.gate);
	CHECK(grab_all(&list, 1000, 32 * MIB) >= 32 * MIB); /* recovered, elsewhere */
	release_all(&r.list);
	exercise(2, 4);
	release_all(&list);
	pthread_barrier_wait(&r.gate);
	pthread_join(thread, NULL);
	exercise(2, 5);
	malloc_trim(0);
}

static void refused_each(void)
{
	static const int errors[] = {ENOMEM, EAGAIN, EPERM};

	for (size_t i = 0; i < sizeof(memory_calls) / sizeof(memory_calls[0]); i++) {
		for (int e = 0; e < 3; e++) {
			struct outcome *out = calloc(1, sizeof(*out));
			pid_t pid = fork();

			if (!pid) {
				refuse(&memory_calls[i], 1, errors[e]);
				_exit(0);
			}
			waitpid(pid, &out->status, 0);
			if (out->status)
				fail("system call %d refused with %s: %s", memory_calls[i],
				     strerrorname_np(errors[e]), status_text(out->status));
			free(out);
		}
	}
}

static void refused_all(void)
{
	refuse(memory_calls, sizeof(memory_calls) / sizeof(memory_calls[0]), ENOMEM);
}

const struct test tests[] = {
    {.name = "overcommit_exhaust", .run = overcommit_exhaust, .timeout = 60},
    {.name = "overcommit_release", .run = overcommit_release, .timeout = 60},
    {.name = "strict_exhaust", .run = strict_exhaust, .part = true},
    {.name = "strict_release", .run = strict_release, .part = true},
    {.name = "max_map_count", .run = max_map_count, .timeout = 60},
    {.name = "refused_each", .run = refused_each, .timeout = 120},
    {.name = "refused_all", .run = refused_all},
    {.name = NULL},
};
