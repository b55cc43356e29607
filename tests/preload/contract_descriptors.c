/* SPDX-License-Identifier: MIT */
/* Odd machines, cpusets, and descriptors: none stays open, none is the program's. */
#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

static void *thread_work(void *unused)
{
	exercise(5, (uintptr_t)&unused);
	return unused;
}

static void work(void)
{
	pthread_t thread;

	exercise(40, 1);
	CHECK_EQ(pthread_create(&thread, NULL, thread_work, NULL), 0);
	exercise(5, 2);
	pthread_join(thread, NULL);
	malloc_trim(0);
	exercise(5, 3);
}

static void own_mounts(void)
{
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		skip("no mount namespace: %s", strerror(errno));
}

static void cover(const char *path, const char *options)
{
	if (access(path, F_OK))
		return;
	if (mount("tmpfs", path, "tmpfs", 0, options))
		skip("cannot mount over %s: %s", path, strerror(errno));
}

static void put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		fail("%s: %s", path, strerror(errno));
	close(fd);
}

#define NODES "/sys/devices/system/node"

/* Nodes 0 and 7, as sysfs would show them; the kernel knows of no node 7. */
static void node_gap(void)
{
	own_mounts();
	cover(NODES, "size=1m,mode=755");
	put(NODES "/online", "0,7\n");
	put(NODES "/possible", "0-15\n");
	put(NODES "/has_memory", "0,7\n");
	put(NODES "/has_normal_memory", "0,7\n");
	put(NODES "/has_cpu", "0\n");
	for (int i = 0; i <= 7; i += 7) {
		char path[100], text[200];

		snprintf(path, sizeof(path), NODES "/node%d", i);
		mkdir(path, 0755);
		snprintf(path, sizeof(path), NODES "/node%d/cpulist", i);
		put(path, i ? "\n" : "0-1\n");
		snprintf(path, sizeof(path), NODES "/node%d/cpumap", i);
		put(path, i ? "0\n" : "3\n");
		snprintf(path, sizeof(path), NODES "/node%d/distance", i);
		put(path, i ? "20 10\n" : "10 20\n");
		snprintf(path, sizeof(path), NODES "/node%d/meminfo", i);
		snprintf(text, sizeof(text),
			 "Node %d MemTotal:  4194304 kB\nNode %d MemFree:  4194304 kB\n", i, i);
		put(path, text);
	}
}

static void node_garbage(void)
{
	static const char *const files[] = {"online", "possible", "has_memory", "has_cpu",
					    "has_normal_memory"};

	own_mounts();
	cover(NODES, "size=1m,mode=755");
	for (int i = 0; i < 5; i++) {
		char path[100];

		snprintf(path, sizeof(path), NODES "/%s", files[i]);
		put(path, i % 2 ? "4294967295-,,,-7,99999999999999999999\n" : "");
	}
}

static void node_empty(void)
{
	own_mounts();
	cover(NODES, "size=4k,mode=755");
}

static cpu_set_t all_cpus;

static void pin(int cpu)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	if (sched_setaffinity(0, sizeof(one), &one))
		skip("cpu %d: %s", cpu, strerror(errno));
}

static void start_on_cpu_0(void)
{
	pin(0);
}

static void start_on_last_cpu(void)
{
	pin((int)sysconf(_SC_NPROCESSORS_CONF) - 1);
}

static void *on_cpu(void *cpu)
{
	pin((int)(intptr_t)cpu);
	exercise(10, (intptr_t)cpu);
	return NULL;
}

/* The mask at start left out CPUs that threads run on later. */
static void wider_later(void)
{
	int count = (int)sysconf(_SC_NPROCESSORS_CONF);
	pthread_t threads[64];

	exercise(10, 1);
	CPU_ZERO(&all_cpus);
	for (int i = 0; i < count && i < 64; i++) {
		CPU_SET(i, &all_cpus);
		CHECK_EQ(pthread_create(&threads[i], NULL, on_cpu, (void *)(intptr_t)i), 0);
	}
	for (int i = 0; i < count && i < 64; i++)
		pthread_join(threads[i], NULL);
	sched_setaffinity(0, sizeof(all_cpus), &all_cpus);
	exercise(10, 2);
}

/* A real cpuset of one CPU, left in main. */
static char *cpuset_tasks(bool make)
{
	static char root_tasks[] = "/sys/fs/cgroup/cpuset/tasks";
	static char tasks[] = "/sys/fs/cgroup/cpuset/numaslab-test/tasks";

	if (!make)
		return root_tasks;
	if (access(root_tasks, W_OK))
		skip("no cpuset controller here");
	mkdir("/sys/fs/cgroup/cpuset/numaslab-test", 0755);
	if (!write_text("/sys/fs/cgroup/cpuset/numaslab-test/cpuset.cpus", "1") ||
	    !write_text("/sys/fs/cgroup/cpuset/numaslab-test/cpuset.mems", "0"))
		skip("cannot make a cpuset: %s", strerror(errno));
	return tasks;
}

static void enter_cpuset(void)
{
	char pid[20];

	snprintf(pid, sizeof(pid), "%d", getpid());
	if (!write_text(cpuset_tasks(true), pid))
		skip("cannot enter a cpuset: %s", strerror(errno));
}

static void leave_cpuset(void)
{
	char pid[20];

	exercise(10, 1);
	snprintf(pid, sizeof(pid), "%d", getpid());
	CHECK(write_text(cpuset_tasks(false), pid));
	wider_later();
	rmdir("/sys/fs/cgroup/cpuset/numaslab-test");
}

static void expect_fds(const char *when)
{
	char list[2000];
	int count = open_fds(list, sizeof(list));

	if (count != 4) /* 0, 1, 2 and the harness's */
		fail("%s: %d descriptors:%s", when, count, list);
}

static void no_stray_fds(void)
{
	expect_fds("at main");
	exercise(100, 1);
	malloc_trim(0);
	expect_fds("later");
	work();
	expect_fds("at the end");
}

static void close_standard(void)
{
	close(0);
	close(1);
	close(2);
}

/* Whatever the library opens must not become the program's standard input, even for a moment:
 * the first file that the program opens is 0. */
static void standard_closed(void)
{
	int fd = open("/dev/null", O_RDONLY);

	if (fd != 0)
		fail("the first descriptor is %d", fd);
	exercise(50, 1);
	fd = open("/dev/null", O_RDONLY);
	if (fd != 1)
		fail("the second descriptor is %d", fd);
}

static atomic_bool enough;

static void *close_all(void *unused)
{
	while (!enough)
		closefrom(3);
	return unused;
}

static void closefrom_elsewhere(void)
{
	pthread_t thread, other;

	CHECK_EQ(pthread_create(&thread, NULL, close_all, NULL), 0);
	for (int i = 0; i < 30; i++) {
		CHECK_EQ(pthread_create(&other, NULL, thread_work, NULL), 0);
		exercise(2, i);
		pthread_join(other, NULL);
	}
	enough = true;
	pthread_join(thread, NULL);
	work();
}

static void *keep_files(void *unused)
{
	while (!enough) {
		int fds[20];

		for (int i = 0; i < 20; i++)
			fds[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
		for (int i = 0; i < 20; i++)
			if (fcntl(fds[i], F_GETFD) != FD_CLOEXEC || close(fds[i]))
				fail("descriptor %d is no longer ours", fds[i]);
	}
	return unused;
}

/* After closefrom, numbers that were the library's are the program's: it must not close them. */
static void fds_are_the_programs(void)
{
	pthread_t thread;

	exercise(5, 1);
	closefrom(3);
	CHECK_EQ(pthread_create(&thread, NULL, keep_files, NULL), 0);
	work();
	enough = true;
	pthread_join(thread, NULL);
}

/* strace shows every descriptor that is made: each has its close-on-exec flag from the start. */
static void all_cloexec(void)
{
	char *args[] = {
	    "/usr/bin/strace",
	    "-f",
	    "-qq",
	    "-e",
	    "trace=open,openat,creat,memfd_create,socket,pipe,pipe2,dup,dup2,dup3,epoll_create1,"
	    "eventfd2,userfaultfd,perf_event_open,io_uring_setup",
	    (char *)dir_file("exec_target"),
	    NULL};
	struct outcome out;
	char *save = NULL;
	int seen = 0;

	if (access(args[0], X_OK))
		skip("strace is not installed");
	run_program(&out, args, NULL);
	if (out.status)
		fail("strace: %s %s", status_text(out.status), out.text);
	for (char *line = strtok_r(out.text, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save)) {
		seen++;
		if (strstr(line, "= -1") || strstr(line, "CLOEXEC") || strstr(line, "+++"))
			continue;
		fail("%s", line);
	}
	CHECK(seen > 0);
}

const struct test tests[] = {
    {.name = "node_gap", .run = work, .before = node_gap},
    {.name = "node_garbage", .run = work, .before = node_garbage},
    {.name = "node_empty", .run = work, .before = node_empty},
    {.name = "start_on_cpu_0", .run = wider_later, .before = start_on_cpu_0},
    {.name = "start_on_last_cpu", .run = wider_later, .before = start_on_last_cpu},
    {.name = "cpuset_left", .run = leave_cpuset, .before = enter_cpuset},
    {.name = "no_stray_fds", .run = no_stray_fds},
    {.name = "standard_closed", .run = standard_closed, .before = close_standard},
    {.name = "closefrom_elsewhere", .run = closefrom_elsewhere},
    {.name = "fds_are_the_programs", .run = fds_are_the_programs},
    {.name = "all_cloexec", .run = all_cloexec},
    {.name = NULL},
};
