/* SPDX-License-Identifier: MIT */
/*
 * A process whose memory is observed on a node that is full then: must a fault be served from that
 * node alone, somebody is killed.
 *
 *	danger fork|purge|bystander FILE	under the library, in placement "observe"
 *	danger raw-...              FILE	by a binding of our own, on libc: it does happen
 *
 * FILE gets NAME VALUE lines for the script.
 */
#include "tests/vm/guest.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <linux/mempolicy.h>

#define SMALL	      500ul
#define DANGER_NODE   3
#define FAULTS_ENOUGH 1000
#define PATIENCE      120 /* seconds, for the kernel to look at it */
#define DANGER_COUNT  (96ul << 20) / SMALL

static void **observed;

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static void fill_node(int node)
{
	/* PREFERRED, beyond what fits: nobody is killed for it, and the node is full. */
	map_pages(node_kb(node, "MemFree") * 1024ul, node);
}

static void touch_all(void)
{
	for (size_t j = 0; j < DANGER_COUNT; j++)
		memset(observed[j], 2, SMALL);
}

static void allocate_all(void)
{
	for (size_t j = 0; j < DANGER_COUNT; j++)
		if (!(observed[j] = malloc(SMALL)))
			die("malloc(%lu)", SMALL);
	touch_all();
}

/* What the library must not do: the binding that reports faults, on libc's heap. */
static void observe_raw(bool purge)
{
	uintptr_t from = ((uintptr_t)observed[0] + GUEST_PAGE) & -GUEST_PAGE;
	uintptr_t to = (uintptr_t)observed[DANGER_COUNT - 1] & -GUEST_PAGE;
	unsigned long mask = 1ul << DANGER_NODE;

	if (purge && madvise((void *)from, to - from, MADV_DONTNEED))
		die("madvise: %m");
	if (!purge && syscall(SYS_mbind, from, to - from, MPOL_BIND | 1 << 13, &mask, 64ul, 0))
		die("mbind: %m");
}

/* A process that has nothing to do with it, large and the first to be killed; ends with the pipe.
 */
static pid_t start_bystander(int fd[2])
{
	int ready[2];
	char c;
	pid_t pid;

	if (pipe(fd) || pipe(ready))
		die("pipe: %m");
	pid = fork();
	if (pid) {
		close(fd[0]);
		close(ready[1]);
		if (read(ready[0], &c, 1) != 1)
			die("the bystander is there");
		return pid;
	}
	close(fd[1]);
	map_pages(200ul << 20, DANGER_NODE);
	if (write(ready[1], "", 1) != 1 || read(fd[0], &c, 1))
		_exit(1);
	_exit(0);
}

static bool ended_well(pid_t pid)
{
	int status;

	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) && !WEXITSTATUS(status);
}

/* Each page is copied, on a node that has none left. */
static bool fork_and_touch(void)
{
	pid_t pid = fork();

	if (!pid) {
		touch_all();
		_exit(0);
	}
	return ended_well(pid);
}

static bool purge_and_touch(bool raw)
{
	if (raw) {
		observe_raw(true);
	} else {
		for (size_t j = 0; j < DANGER_COUNT; j++)
			free(observed[j]);
		malloc_trim(0);
	}
	fill_node(DANGER_NODE);
	if (raw)
		touch_all();
	else
		allocate_all();
	return true;
}

static void danger(const char *how, FILE *out)
{
	bool raw = !strncmp(how, "raw-", 4), alive;
	const char *what = raw ? how + 4 : how;
	long ooms = vmstat("oom_kill"), faults = vmstat("numa_hint_faults");
	int fd[2];
	pid_t other = !strcmp(what, "bystander") ? start_bystander(fd) : 0;
	double begin;

	pin_cpu(cpu_of_node(DANGER_NODE));
	observed = map_pages(DANGER_COUNT * sizeof(void *), 0);
	allocate_all();
	if (raw)
		observe_raw(false);
	/* Used from another node, until the kernel has had the time to look at it. */
	pin_cpu(cpu_of_node(0));
	begin = seconds();
	do {
		touch_all();
		/* What the library does in slow paths gets its turns. */
		for (int i = 0; i < 2000; i++)
			free(malloc(SMALL + i % 4 * 3000));
	} while (seconds() < begin + 3 || (vmstat("numa_hint_faults") < faults + FAULTS_ENOUGH &&
					   seconds() < begin + PATIENCE));
	faults = vmstat("numa_hint_faults") - faults;
	pin_cpu(cpu_of_node(DANGER_NODE));
	fill_node(DANGER_NODE);
	note("%s: %ld hint faults; then the full node has %ld kB left", how, faults,
	     node_kb(DANGER_NODE, "MemFree"));
	alive = !strcmp(what, "purge") ? purge_and_touch(raw) : fork_and_touch();
	if (other) {
		close(fd[1]);
		alive &= ended_well(other);
	}
	fprintf(out, "faults %ld\nalive %d\noom_kills %ld\n", faults, alive,
		vmstat("oom_kill") - ooms);
}

int main(int argc, char **argv)
{
	FILE *out;

	guest_start();
	if (argc < 3 || !(out = fopen(argv[2], "we")))
		die("usage: danger [raw-]fork|purge|bystander FILE");
	danger(argv[1], out);
	fprintf(out, "done 1\n");
	return fclose(out) != 0;
}
