/* SPDX-License-Identifier: MIT */
/* Children that share the memory, and the fork system call itself. */
#include "harness.h"

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

const struct test tests[] = {
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
    {.name = NULL},
};
