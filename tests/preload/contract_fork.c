/* SPDX-License-Identifier: MIT */
/* Fork in all its forms: the child can allocate, the parent's state survives. */
#include "harness.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static atomic_bool stop;

static void *churn(void *seed)
{
	while (!stop)
		exercise(1, (uintptr_t)seed);
	return NULL;
}

/* Two of them are enough to be inside every lock at some fork. */
static void start_churn(pthread_t *threads, int count)
{
	stop = false;
	for (int i = 0; i < count; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, churn, (void *)(uintptr_t)i), 0);
}

static void end_churn(pthread_t *threads, int count)
{
	stop = true;
	for (int i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
}

/* Waits at most 10 s: a child that hangs is the failure looked for. */
static void expect_child(pid_t pid, int wanted, const char *what)
{
	uint64_t end = now_ms() + 10000;
	int status;
	pid_t got;

	CHECK(pid > 0);
	while ((got = waitpid(pid, &status, WNOHANG)) == 0 && now_ms() < end)
		sched_yield();
	if (got == 0) {
		if (getenv("TEST_GDB"))
			sleep(1000);
		kill(pid, SIGKILL);
		waitpid(pid, &status, 0);
		fail("%s: the child hangs", what);
	}
	if (!WIFEXITED(status) || WEXITSTATUS(status) != wanted)
		fail("%s: the child ended with %s", what, status_text(status));
}

static void *child_thread(void *unused)
{
	exercise(1, 77);
	return unused;
}

static void child_work(void **inherited, int count)
{
	pthread_t thread;

	exercise(2, getpid());
	for (int i = 0; i < count; i++) {
		if (!block_holds(inherited[i], 100))
			_exit(3);
		inherited[i] = realloc(inherited[i], 1000);
		free(inherited[i]);
	}
	if (pthread_create(&thread, NULL, child_thread, NULL))
		_exit(4);
	pthread_join(thread, NULL);
	if (thread_count() != 1)
		_exit(5);
}

static void fill_blocks(void **blocks, int count)
{
	for (int i = 0; i < count; i++) {
		blocks[i] = malloc(100);
		block_fill(blocks[i], 100);
	}
}

static void fork_many(int forks)
{
	void *blocks[100];
	pthread_t threads[2];

	fill_blocks(blocks, 100);
	start_churn(threads, 2);
	for (int i = 0; i < forks; i++) {
		pid_t pid = fork();

		if (!pid) {
			child_work(blocks, 100);
			pid = fork();
			if (!pid) {
				exercise(1, 5);
				_exit(0);
			}
			expect_child(pid, 0, "fork of a child");
			_exit(0);
		}
		expect_child(pid, 0, "fork");
	}
	end_churn(threads, 2);
	for (int i = 0; i < 100; i++) {
		CHECK(block_holds(blocks[i], 100));
		free(blocks[i]);
	}
}

static void fork_while_others_allocate(void)
{
	fork_many(40);
}

static void *fork_in_thread(void *unused)
{
	fork_many(15);
	return unused;
}

static void fork_from_thread(void)
{
	pthread_t thread;

	CHECK_EQ(pthread_create(&thread, NULL, fork_in_thread, NULL), 0);
	pthread_join(thread, NULL);
}

static void *fork_only(void *unused)
{
	for (int i = 0; i < 25; i++) {
		pid_t pid = fork();

		if (!pid) {
			exercise(1, 6);
			_exit(0);
		}
		expect_child(pid, 0, "fork from two threads at once");
	}
	return unused;
}

static void fork_from_two_threads(void)
{
	pthread_t threads[4];

	start_churn(threads + 2, 2);
	for (int i = 0; i < 2; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, fork_only, NULL), 0);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	end_churn(threads + 2, 2);
}

/* The thread that forked ends, in the child, as a thread does. */
static void *fork_and_leave(void *unused)
{
	pid_t pid;

	free(malloc(100));
	pid = fork();
	if (!pid) {
		exercise(1, 3);
		pthread_exit(NULL); /* the child's last thread: exit status 0 */
	}
	expect_child(pid, 0, "a child whose only thread ends");
	return unused;
}

static void child_thread_exit(void)
{
	for (int i = 0; i < 30; i++) {
		pthread_t thread;

		CHECK_EQ(pthread_create(&thread, NULL, fork_and_leave, NULL), 0);
		pthread_join(thread, NULL);
	}
}

static int early_calls;

static void early_handler(void)
{
	early_calls++;
	for (int i = 0; i < 300; i++) {
		void *p = malloc(i * 700), *q = malloc(40);

		memset(p, 1, i * 700);
		free(realloc(p, 400000));
		free(q);
	}
}

static void late_handler(void)
{
	for (int i = 0; i < 100; i++)
		free(malloc(i * 50));
	free(strdup("x"));
}

/* Registered before anything can have called malloc: ours is called after these, in prepare. */
static void first(int argc, char **argv, char **envp)
{
	(void)argc;
	(void)argv;
	while (*envp && strcmp(*envp, "TEST_ATFORK_FIRST=1")) /* getenv knows nothing yet */
		envp++;
	if (*envp)
		pthread_atfork(early_handler, early_handler, early_handler);
}

__attribute__((section(".preinit_array"), used)) static void (*entry)(int, char **,
								       char **) = first;

static void atfork_first(void)
{
	fork_many(15);
	CHECK_EQ(early_calls, 30);
}

static void atfork_handlers(void)
{
	int (*calls)(void);

	CHECK_EQ(pthread_atfork(late_handler, late_handler, late_handler), 0);
	fork_many(15);
	*(void **)&calls = dlsym(RTLD_DEFAULT, "atfork_calls");
	CHECK(calls && calls() == 30);
}

static void atfork_plugin(void)
{
	void *handle = dlopen(dir_file("atfork_alloc.so"), RTLD_NOW);

	CHECK(handle);
	fork_many(15);
}

/* --- children that share the memory ----------------------------------------------------------- */

static char *target_args[] = {NULL, "7", NULL};

static void vfork_child(void)
{
	target_args[0] = (char *)dir_file("exec_target");
	for (int i = 0; i < 100; i++) {
		pid_t pid = vfork();

		if (!pid) {
			execve(target_args[0], target_args, environ);
			_exit(1);
		}
		expect_child(pid, 7, "vfork");
		exercise(1, i);
	}
}

static void vfork_allocates(void)
{
	static void *volatile left;

	for (int i = 0; i < 100; i++) {
		pid_t pid = vfork();

		if (!pid) {
			left = malloc(i * 100 + 1);
			free(malloc(50));
			_exit(0);
		}
		expect_child(pid, 0, "vfork");
		CHECK(left);
		block_fill(left, i * 100 + 1);
		exercise(1, i);
		free(left);
	}
}

static void spawn_children(void)
{
	pthread_t threads[2];
	pid_t pid;

	target_args[0] = (char *)dir_file("exec_target");
	start_churn(threads, 2);
	for (int i = 0; i < 60; i++) {
		CHECK_EQ(posix_spawn(&pid, target_args[0], NULL, NULL, target_args, environ), 0);
		expect_child(pid, 7, "posix_spawn");
	}
	for (int i = 0; i < 10; i++) {
		FILE *f = popen("echo hello", "r");
		char text[20];

		CHECK(f && fgets(text, sizeof(text), f) && !strcmp(text, "hello\n"));
		CHECK_EQ(pclose(f), 0);
		CHECK_EQ(system("exit 3"), 3 << 8);
	}
	end_churn(threads, 2);
}

static int clone_body(void *kept)
{
	uint64_t seed = 3;
	void *blocks[64] = {0};

	for (int i = 0; i < 5000; i++) {
		int slot = i % 64;

		free(blocks[slot]);
		blocks[slot] = malloc(random_size(&seed) % 9000);
	}
	for (int i = 0; i < 64; i++)
		free(blocks[i]);
	*(void **)kept = malloc(500);
	block_fill(*(void **)kept, 500);
	return 0;
}

/* A child with our memory and our TLS while we stand still. */
static void clone_with(int flags)
{
	size_t size = 256 * 1024;
	char *stack = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void *blocks[200], *kept;

	fill_blocks(blocks, 200);
	for (int i = 0; i < 60; i++) {
		pid_t pid = clone(clone_body, stack + size, flags | SIGCHLD, &kept);

		expect_child(pid, 0, "clone(CLONE_VM)");
		CHECK(block_holds(kept, 500));
		free(kept);
		exercise(1, i);
	}
	for (int i = 0; i < 200; i++) {
		CHECK(block_holds(blocks[i], 100));
		free(blocks[i]);
	}
}

static void clone_vm(void)
{
	clone_with(CLONE_VM);
}

static void clone_vm_vfork(void)
{
	clone_with(CLONE_VM | CLONE_VFORK);
}

/* Then a true fork still is one. */
static void clone_then_fork(void)
{
	clone_with(CLONE_VM | CLONE_VFORK);
	fork_many(10);
}

/* --- the system call itself ------------------------------------------------------------------- */

static pid_t raw_fork(void)
{
	return (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
}

static void raw_fork_runs(void)
{
	void *blocks[100];

	fill_blocks(blocks, 100);
	for (int i = 0; i < 100; i++) {
		pid_t pid = raw_fork();

		if (!pid) {
			exercise(2, i);
			for (int k = 0; k < 100; k++) {
				if (!block_holds(blocks[k], 100))
					_exit(3);
				free(blocks[k]);
			}
			_exit(0);
		}
		expect_child(pid, 0, "raw fork");
		exercise(1, i);
	}
}

/* Other threads idle: their blocks are freed by the child. */
static void *idle_thread(void *arg)
{
	void **blocks = ((void **)arg)[0];

	fill_blocks(blocks, 100);
	pthread_barrier_wait(((void **)arg)[1]);
	pthread_barrier_wait(((void **)arg)[1]);
	for (int k = 0; k < 100; k++)
		free(blocks[k]);
	return NULL;
}

static void raw_fork_threads(void)
{
	void *blocks[100], *arg[2];
	pthread_barrier_t gate;
	pthread_t thread;

	pthread_barrier_init(&gate, NULL, 2);
	arg[0] = blocks;
	arg[1] = &gate;
	CHECK_EQ(pthread_create(&thread, NULL, idle_thread, arg), 0);
	pthread_barrier_wait(&gate);
	for (int i = 0; i < 50; i++) {
		pid_t pid = raw_fork();

		if (!pid) {
			for (int k = 0; k < 100; k++)
				free(blocks[k]);
			exercise(2, i);
			_exit(0);
		}
		expect_child(pid, 0, "raw fork beside a thread");
	}
	pthread_barrier_wait(&gate);
	pthread_join(thread, NULL);
}

struct area {
	char *at, *copy;
	size_t size;
};

/* Mappings that a child would share with us: files mapped MAP_SHARED and writable. */
static int shared_areas(struct area *areas, int max)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[600];
	int count = 0;

	CHECK(f);
	while (fgets(line, sizeof(line), f)) {
		unsigned long from, to;
		char mode[8];

		if (sscanf(line, "%lx-%lx %7s", &from, &to, mode) == 3 && mode[3] == 's' &&
		    mode[1] == 'w' && strchr(line, '/') && count < max) {
			areas[count].at = (char *)from;
			areas[count++].size = to - from;
		}
	}
	fclose(f);
	return count;
}

static void raw_fork_telemetry(void)
{
	struct area areas[16];
	int count;
	pid_t pid;

	exercise(200, 1); /* time and memory enough to publish */
	count = shared_areas(areas, 16);
	if (!count)
		fail("nothing is published: no shared mapping");
	for (int i = 0; i < count; i++) {
		areas[i].copy = mmap(NULL, areas[i].size, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		CHECK(areas[i].copy != MAP_FAILED);
		memcpy(areas[i].copy, areas[i].at, areas[i].size);
	}
	pid = raw_fork();
	if (!pid) {
		exercise(300, 2);
		_exit(0);
	}
	CHECK(waitpid(pid, NULL, 0) == pid);
	for (int i = 0; i < count; i++)
		if (memcmp(areas[i].copy, areas[i].at, areas[i].size))
			fail("the child wrote into the parent's shared memory");
}

/* --- cost ---------------------------------------------------------------------------------------- */

enum { HEAP_BLOCKS = 1000000 };

static void *fill_part(void *at)
{
	for (int i = 0; i < HEAP_BLOCKS / 4; i++)
		memset(((void **)at)[i] = malloc(200), 1, 200);
	return NULL;
}

/* 200 MB, half of them freed: partial slabs everywhere, from living and dead threads. */
static void **make_heap(void)
{
	void **blocks = mmap(NULL, HEAP_BLOCKS * sizeof(void *), PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_t thread;

	CHECK(blocks != MAP_FAILED);
	for (int part = 0; part < 4; part++) {
		void **at = blocks + part * (HEAP_BLOCKS / 4);

		if (part & 1) {
			fill_part(at);
		} else {
			CHECK_EQ(pthread_create(&thread, NULL, fill_part, at), 0);
			pthread_join(thread, NULL);
		}
	}
	for (int i = 0; i < HEAP_BLOCKS; i += 2)
		free(blocks[i]);
	return blocks;
}

static void fork_copies_nothing(void)
{
	void **blocks = make_heap();
	pthread_t threads[2];
	pid_t pid;

	start_churn(threads, 2);
	pid = fork();
	if (!pid) {
		size_t dirty;

		exercise(1, 5);
		for (int i = 1; i < 201; i += 2)
			free(blocks[i]);
		dirty = private_dirty_kib();
		if (dirty > 12 * 1024)
			fail("the child has copied %zu KiB", dirty);
		_exit(0);
	}
	expect_child(pid, 0, "fork of a large heap");
	end_churn(threads, 2);
}

/* Forks and threads in turn: nothing of it stays in the parent. */
static void fork_grows_nothing(void)
{
	size_t before = 0;
	int maps = 0;

	for (int i = 0; i < 250; i++) {
		pid_t pid = fork();

		if (!pid) {
			exercise(1, i);
			_exit(0);
		}
		expect_child(pid, 0, "fork");
		exercise(1, i);
		if (i == 100) {
			before = anon_kib();
			maps = map_count();
		}
	}
	if (anon_kib() > before + 4096)
		fail("150 forks cost %zu KiB", anon_kib() - before);
	if (map_count() > maps + 40)
		fail("150 forks cost %d mappings", map_count() - maps);
}

/* A chain: each child forks the next, with a thread lost at every step. */
static void fork_chain(void)
{
	pthread_t threads[2];
	int depth = 0;
	pid_t pid;

	for (;;) {
		start_churn(threads, 2);
		pid = fork();
		if (pid) {
			end_churn(threads, 2);
			break;
		}
		exercise(1, depth);
		if (++depth == 40)
			_exit(0);
	}
	expect_child(pid, 0, "chain of forks");
	if (depth)
		_exit(0);
}

const struct test tests[] = {
	{.name = "fork_while_others_allocate", .run = fork_while_others_allocate, .timeout = 60},
	{.name = "fork_from_thread", .run = fork_from_thread, .timeout = 60},
	{.name = "fork_from_two_threads", .run = fork_from_two_threads, .timeout = 60},
	{.name = "child_thread_exit", .run = child_thread_exit},
	{.name = "atfork_first",
	 .run = atfork_first,
	 .env = {"TEST_ATFORK_FIRST=1"},
	 .timeout = 60},
	{.name = "atfork_before",
	 .run = atfork_handlers,
	 .preload = "LIB:DIR/atfork_alloc.so",
	 .timeout = 60},
	{.name = "atfork_after",
	 .run = atfork_handlers,
	 .preload = "DIR/atfork_alloc.so:LIB",
	 .timeout = 60},
	{.name = "atfork_plugin", .run = atfork_plugin, .timeout = 60},
	{.name = "vfork_child", .run = vfork_child},
	{.name = "vfork_allocates", .run = vfork_allocates},
	{.name = "spawn_children", .run = spawn_children},
	{.name = "clone_vm", .run = clone_vm},
	{.name = "clone_vm_vfork", .run = clone_vm_vfork},
	{.name = "clone_then_fork", .run = clone_then_fork},
	{.name = "raw_fork_runs", .run = raw_fork_runs},
	{.name = "raw_fork_threads", .run = raw_fork_threads},
	{.name = "raw_fork_telemetry",
	 .run = raw_fork_telemetry,
	 .env = {"NUMASLAB_PUBLISH_AFTER_MS=0"},
	 .numaslab = true},
	{.name = "fork_copies_nothing", .run = fork_copies_nothing, .timeout = 60},
	{.name = "fork_grows_nothing", .run = fork_grows_nothing, .timeout = 60},
	{.name = "fork_chain", .run = fork_chain, .timeout = 60},
	{.name = NULL},
};
