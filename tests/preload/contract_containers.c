/* SPDX-License-Identifier: MIT */
/* Containers: system calls refused or deadly, no /proc, /sys or /dev/shm. */
#include "harness.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROOT TEST_ROOT

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

/* Each is refused by some container's default filter. */
static const int numa_calls[] = {
    SYS_mbind,
    SYS_get_mempolicy,
    SYS_set_mempolicy,
    SYS_move_pages,
    SYS_migrate_pages,
    SYS_membarrier,
    SYS_getcpu,
    SYS_memfd_create,
    SYS_userfaultfd,
    SYS_io_uring_setup,
    SYS_bpf,
    SYS_perf_event_open,
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
    SYS_mmap,
    SYS_munmap,
    SYS_mprotect,
    SYS_madvise,
    SYS_mremap,
    SYS_futex,
    /* and those of the test itself */
    SYS_write,
    SYS_exit,
    SYS_exit_group,
    SYS_rt_sigreturn,
    SYS_rt_sigprocmask,
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

void *__libc_malloc(size_t size);

/* A block of libc's comes to free, which would ask what is mapped there. */
static void kill_in_main_foreign(void)
{
	void *foreign = __libc_malloc(100);

	filter_all_but(SECCOMP_RET_KILL_PROCESS, steady_calls, STEADY_CALLS);
	exercise(10, 2);
	free(foreign);
}

/* Before anything was allocated at all. */
static void kill_in_main_first(void)
{
	filter_all_but(SECCOMP_RET_KILL_PROCESS, steady_calls, STEADY_CALLS);
	exercise(50, 2);
}

/* Until after the age at which a process publishes: nothing new may be tried by then. */
static void kill_in_main_long(void)
{
	uint64_t end = now_ms() + 2500;

	filter_all_but(SECCOMP_RET_KILL_PROCESS, steady_calls, STEADY_CALLS);
	while (now_ms() < end)
		exercise(1, end);
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
	/* The mounts of this namespace: without MS_BIND the file systems would be, everywhere. */
	mount(NULL, "/dev/shm", NULL, MS_REMOUNT | MS_BIND | MS_RDONLY, NULL);
	mount(NULL, "/tmp", NULL, MS_REMOUNT | MS_BIND | MS_RDONLY, NULL);
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
	skip_unless_reached();
}

static void leave_root_later(void)
{
	exercise(50, 1);
	if (!become_nobody())
		skip("cannot leave root");
	work();
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
    {.name = "killed_in_main_foreign",
     .run = kill_in_main_foreign,
     .env = {"NUMASLAB_CHECK=1"},
     .numaslab = true},
    {.name = "killed_in_main_first", .run = kill_in_main_first},
    {.name = "killed_in_main_long", .run = kill_in_main_long},
    {.name = "killed_in_threads", .run = kill_in_threads},
    {.name = "no_proc_sys_shm", .run = work, .before = no_proc_sys_shm},
    {.name = "no_proc", .run = work, .before = no_proc},
    {.name = "no_sys", .run = work, .before = no_sys},
    {.name = "no_dev", .run = work, .before = no_shm_folder},
    {.name = "shm_64k", .run = work, .before = shm_64k, .env = {"NUMASLAB_PUBLISH_AFTER_MS=0"}},
    {.name = "shm_full", .run = work, .before = shm_full, .env = {"NUMASLAB_PUBLISH_AFTER_MS=0"}},
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
    {.name = NULL},
};
