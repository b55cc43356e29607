/* SPDX-License-Identifier: MIT */
/* Containers: system calls refused or deadly, no /proc, /sys or /dev/shm, descriptors, cpusets. */
#include "harness.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROOT "/tmp/numaslab-test-root"

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

/* --- seccomp ------------------------------------------------------------------------------------- */

/* Each is refused by some container's default filter. */
static const int numa_calls[] = {
	SYS_mbind,	   SYS_get_mempolicy, SYS_set_mempolicy, SYS_move_pages,
	SYS_migrate_pages, SYS_membarrier,    SYS_getcpu,	 SYS_memfd_create,
	SYS_userfaultfd,   SYS_io_uring_setup, SYS_bpf,		 SYS_perf_event_open,
	450 /* set_mempolicy_home_node */,
};
#define NUMA_CALLS (int)(sizeof(numa_calls) / sizeof(numa_calls[0]))

static void refuse_eperm(void)
{
	filter_calls(SECCOMP_RET_ERRNO | EPERM, numa_calls, NUMA_CALLS);
}

static void refuse_enosys(void)
{
	filter_calls(SECCOMP_RET_ERRNO | ENOSYS, numa_calls, NUMA_CALLS);
}

static void refuse_rseq(void)
{
	static const int calls[] = {SYS_rseq};

	filter_calls(SECCOMP_RET_ERRNO | ENOSYS, calls, 1);
}

static void refuse_all(void)
{
	refuse_rseq();
	refuse_eperm();
}

static void refuse_advice(void)
{
	static const int calls[] = {SYS_madvise, SYS_mremap, SYS_prctl, SYS_mlock, SYS_statx};

	filter_calls(SECCOMP_RET_ERRNO | EPERM, calls, 5);
}

static void kill_numa(void)
{
	filter_calls(SECCOMP_RET_KILL_PROCESS, numa_calls, NUMA_CALLS);
}

/* In turn, for what only one refusal shows. */
static void refuse_one(void)
{
	int number = atoi(getenv("TEST_CALL"));

	filter_calls(SECCOMP_RET_ERRNO | EPERM, &number, 1);
}

static const int steady_calls[] = {
	SYS_mmap,	  SYS_munmap,	    SYS_mprotect, SYS_madvise, SYS_mremap, SYS_futex,
	/* and those of the test itself */
	SYS_write,	  SYS_exit,	    SYS_exit_group,
	SYS_rt_sigreturn, SYS_rt_sigprocmask,
};
#define STEADY_CALLS (int)(sizeof(steady_calls) / sizeof(steady_calls[0]))

/* A strict sandbox, entered in main: from here on any other call kills. */
static void kill_in_main(void)
{
	exercise(5, 1);
	filter_all_but(SECCOMP_RET_KILL_PROCESS, steady_calls, STEADY_CALLS);
	exercise(100, 2);
	malloc_trim(0);
	mallinfo2();
	exercise(20, 3);
}

/* Before anything was allocated at all. */
static void kill_in_main_first(void)
{
	filter_all_but(SECCOMP_RET_KILL_PROCESS, steady_calls, STEADY_CALLS);
	exercise(50, 2);
}

static void *sandboxed(void *gate)
{
	pthread_barrier_wait(gate);
	filter_all_but(SECCOMP_RET_KILL_PROCESS, steady_calls, STEADY_CALLS);
	exercise(50, (uintptr_t)&gate);
	return NULL;
}

/* Threads that enter it as their first act, and the one that stays outside. */
static void kill_in_threads(void)
{
	pthread_barrier_t gate;
	pthread_t threads[3];

	pthread_barrier_init(&gate, NULL, 4);
	for (int i = 0; i < 3; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, sandboxed, &gate), 0);
	pthread_barrier_wait(&gate);
	exercise(20, 4);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	exercise(20, 5);
}

/* --- places without files ---------------------------------------------------------------------------- */

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

static void no_proc_sys_shm(void)
{
	own_mounts();
	cover("/sys", "size=4k,mode=000");
	cover("/dev/shm", "size=4k,nr_inodes=1,mode=000");
	cover("/proc", "size=4k,mode=000");
}

static void no_proc(void)
{
	own_mounts();
	cover("/proc", "size=4k,mode=000");
}

static void no_sys(void)
{
	own_mounts();
	cover("/sys", "size=4k,mode=000");
}

static void no_shm_folder(void)
{
	own_mounts();
	cover("/dev", "size=4k,mode=755");
}

static void shm_64k(void)
{
	own_mounts();
	cover("/dev/shm", "size=64k,mode=1777");
}

static void shm_full(void)
{
	int fd;

	own_mounts();
	cover("/dev/shm", "size=1m,mode=1777");
	fd = open("/dev/shm/filler", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || posix_fallocate(fd, 0, 1 << 20))
		fail("/dev/shm/filler: %s", strerror(errno));
	close(fd);
}

static void read_only(void)
{
	own_mounts();
	if (mount(NULL, "/", NULL, MS_REMOUNT | MS_BIND | MS_RDONLY, NULL))
		skip("cannot remount / read-only: %s", strerror(errno));
	cover("/dev/shm", "size=64k,mode=000");
	mount(NULL, "/dev/shm", NULL, MS_REMOUNT | MS_RDONLY, NULL);
	mount(NULL, "/tmp", NULL, MS_REMOUNT | MS_RDONLY, NULL);
}

/* Becomes full only after the start. */
static void shm_fills_later(void)
{
	struct statvfs room;
	int fd;

	exercise(100, 1);
	fd = open("/dev/shm/filler", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	CHECK(fd >= 0 && !statvfs("/dev/shm", &room));
	CHECK(room.f_blocks * room.f_frsize <= 65536);
	posix_fallocate(fd, 0, room.f_bfree * room.f_frsize);
	close(fd);
	work();
}

static void bind_file(const char *path)
{
	char to[4400], *slash;
	int fd;

	snprintf(to, sizeof(to), ROOT "%s", path);
	for (slash = strchr(to + sizeof(ROOT), '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = 0;
		mkdir(to, 0755);
		*slash = '/';
	}
	fd = open(to, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
	if (fd < 0 || mount(path, to, NULL, MS_BIND, NULL))
		fail("%s: %s", to, strerror(errno));
	close(fd);
}

/* The program, the library, libc and ld.so: nothing else exists. */
static void bare_root(void)
{
	char self[4096];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	self[n > 0 ? n : 0] = 0;
	own_mounts();
	mkdir(ROOT, 0755);
	if (mount("tmpfs", ROOT, "tmpfs", 0, "size=1m,mode=755"))
		skip("cannot mount: %s", strerror(errno));
	bind_file(self);
	bind_file(dir_file("tls_plugin.so"));
	if (strchr(lib_path(), '/'))
		bind_file(lib_path());
	bind_file("/lib64/ld-linux-x86-64.so.2");
	bind_file("/lib/x86_64-linux-gnu/libc.so.6");
	if (access("/lib/x86_64-linux-gnu/libstdc++.so.6", F_OK) == 0) { /* the peers need more */
		bind_file("/lib/x86_64-linux-gnu/libstdc++.so.6");
		bind_file("/lib/x86_64-linux-gnu/libm.so.6");
		bind_file("/lib/x86_64-linux-gnu/libgcc_s.so.1");
	}
	if (mount(NULL, ROOT, NULL, MS_REMOUNT | MS_RDONLY, NULL) || chroot(ROOT) || chdir("/"))
		skip("chroot: %s", strerror(errno));
}

static void chroot_later(void)
{
	exercise(5, 1);
	if (geteuid())
		skip("chroot needs root");
	mkdir(ROOT, 0755);
	CHECK(!chroot(ROOT) && !chdir("/"));
	work();
}

static void plugin_in_bare_root(void)
{
	void *handle = dlopen(dir_file("tls_plugin.so"), RTLD_NOW);

	if (!handle)
		fail("%s", dlerror());
	work();
	dlclose(handle);
}

static void as_nobody(void)
{
	if (!become_nobody())
		skip("cannot leave root");
}

static void leave_root_later(void)
{
	exercise(50, 1);
	if (!become_nobody())
		skip("cannot leave root");
	work();
}

/* --- odd machines -------------------------------------------------------------------------------------- */

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
		snprintf(text, sizeof(text), "Node %d MemTotal:  4194304 kB\nNode %d MemFree:  4194304 kB\n",
			 i, i);
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

/* --- descriptors ----------------------------------------------------------------------------------------- */

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
	char *args[] = {"/usr/bin/strace",
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
	for (char *line = strtok_r(out.text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		seen++;
		if (strstr(line, "= -1") || strstr(line, "CLOEXEC") || strstr(line, "+++"))
			continue;
		fail("%s", line);
	}
	CHECK(seen > 0);
}

const struct test tests[] = {
	{.name = "refused_eperm", .run = work, .before = refuse_eperm},
	{.name = "refused_enosys", .run = work, .before = refuse_enosys},
	{.name = "refused_rseq", .run = work, .before = refuse_rseq},
	{.name = "refused_with_rseq", .run = work, .before = refuse_all},
	{.name = "refused_advice", .run = work, .before = refuse_advice},
	{.name = "refused_mbind", .run = work, .before = refuse_one, .env = {"TEST_CALL=237"}},
	{.name = "refused_get_mempolicy", .run = work, .before = refuse_one, .env = {"TEST_CALL=239"}},
	{.name = "refused_move_pages", .run = work, .before = refuse_one, .env = {"TEST_CALL=279"}},
	{.name = "refused_membarrier", .run = work, .before = refuse_one, .env = {"TEST_CALL=324"}},
	{.name = "refused_preinit", .program = "preinit", .before = refuse_all},
	{.name = "killed_numa_calls", .run = work, .before = kill_numa},
	{.name = "killed_in_main", .run = kill_in_main},
	{.name = "killed_in_main_first", .run = kill_in_main_first},
	{.name = "killed_in_threads", .run = kill_in_threads},
	{.name = "no_proc_sys_shm", .run = work, .before = no_proc_sys_shm},
	{.name = "no_proc", .run = work, .before = no_proc},
	{.name = "no_sys", .run = work, .before = no_sys},
	{.name = "no_dev", .run = work, .before = no_shm_folder},
	{.name = "shm_64k",
	 .run = work,
	 .before = shm_64k,
	 .env = {"NUMASLAB_PUBLISH_AFTER_MS=0"}},
	{.name = "shm_full",
	 .run = work,
	 .before = shm_full,
	 .env = {"NUMASLAB_PUBLISH_AFTER_MS=0"}},
	{.name = "shm_fills_later",
	 .run = shm_fills_later,
	 .before = shm_64k,
	 .env = {"NUMASLAB_PUBLISH_AFTER_MS=0"}},
	{.name = "read_only_root", .run = work, .before = read_only},
	{.name = "bare_root", .run = work, .before = bare_root},
	{.name = "bare_root_plugin", .run = plugin_in_bare_root, .before = bare_root},
	{.name = "chroot_later", .run = chroot_later},
	{.name = "as_nobody", .run = work, .before = as_nobody},
	{.name = "leave_root_later", .run = leave_root_later},
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
