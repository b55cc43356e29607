/* SPDX-License-Identifier: MIT */
/*
 * What other processes may write, a request for observation and readers' pins: any bytes, any
 * length, at any time, and the program goes on.
 */
#include "harness.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
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

#include "telemetry/ring.h"

#define FOLDER	 "/dev/shm/numaslab-test-control"
#define PATIENCE 20000 /* milliseconds */

static void make_folder(void)
{
	if (system("rm -rf " FOLDER))
		fail("cannot remove " FOLDER);
}

/* Of this process: "" the file, ".control", ".pins". */
static const char *own_path(const char *beside)
{
	static char path[400];
	struct dirent *e;
	char part[24];
	DIR *dir = opendir(FOLDER);

	snprintf(part, sizeof part, "-%d-", getpid());
	*path = 0;
	while (dir && (e = readdir(dir))) {
		const char *dot = strchr(e->d_name, '.');

		if (strstr(e->d_name, part) && !strcmp(dot ? dot : "", beside))
			snprintf(path, sizeof path, FOLDER "/%.300s", e->d_name);
	}
	if (dir)
		closedir(dir);
	return path;
}

static void *map_own(const char *beside, int prot)
{
	int fd = open(own_path(beside), (prot & PROT_WRITE ? O_RDWR : O_RDONLY) | O_CLOEXEC);
	void *at = mmap(NULL, 4096, prot, MAP_SHARED, fd, 0);

	if (fd < 0 || at == MAP_FAILED)
		fail("'%s' of this process: %s", beside, strerror(errno));
	close(fd);
	return at;
}

static void set(struct ring_control *c, uint64_t request, uint64_t ms)
{
	ring_store(&c->lease_ms, 0);
	ring_store(&c->request, request);
	cmm_smp_wmb();
	ring_store(&c->lease_ms, ms ? now_ms() + ms : 0);
}

/* Allocates until the header acknowledges so much. */
static void await(const struct ring_header *h, uint64_t request)
{
	uint64_t end = now_ms() + PATIENCE;

	while (ring_load(&h->observe_request) != request) {
		exercise(1, now_ms());
		if (now_ms() > end)
			fail("not acknowledged: %#lx, wanted %#lx", h->observe_request, request);
	}
}

static void *thread_of_use(void *arg)
{
	exercise(60, (uintptr_t)arg);
	return NULL;
}

static void acknowledged(void)
{
	exercise(20, 1);
	struct ring_control *c = map_own(".control", PROT_READ | PROT_WRITE);
	const struct ring_header *h = map_own("", PROT_READ);

	CHECK_EQ(h->observe_request, 0);
	set(c, (uint64_t)16 << 32 | 5, 30000);
	await(h, (uint64_t)16 << 32 | 5);
	set(c, (uint64_t)1 << 32 | 6, 300);
	await(h, (uint64_t)1 << 32 | 6);
	await(h, 0); /* by the lease alone */
	CHECK_EQ(h->observed_bytes, 0);
	CHECK_EQ(h->observe_how, RING_OBSERVE_NONE);
	set(c, (uint64_t)(RING_SAMPLE_MAX + 1) << 32, 30000);
	exercise(100, 1);
	CHECK_EQ(h->observe_request, 0);
	set(c, (uint64_t)2 << 32, 3600 * 1000);
	exercise(100, 1);
	CHECK_EQ(h->observe_request, 0);
}

/* The sample that a variable asks for, with threads and forks. */
static void observe_placement(void)
{
	pthread_t thread[3];

	for (uintptr_t i = 0; i < 3; i++)
		pthread_create(&thread[i], NULL, thread_of_use, (void *)i);
	exercise(100, 9);
	fork_many(20);
	for (int i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	malloc_trim(0);
	exercise(20, 10);
}

/* A program whose blocks go round and round never refills; it is heard and answers all the same. */
static void round_and_round(void)
{
	exercise(20, 1);
	const struct ring_header *h = map_own("", PROT_READ);
	struct ring_control *c = map_own(".control", PROT_READ | PROT_WRITE);
	void *volatile keep = malloc(100);
	uint64_t end, entry;

	for (int i = 0; i < 100000; i++) /* what can be refilled was */
		free(opaque(malloc(100)));
	entry = ring_load(&h->head.entry);
	set(c, (uint64_t)4 << 32 | 2, 30000);
	end = now_ms() + PATIENCE;
	while (ring_load(&h->observe_request) != ((uint64_t)4 << 32 | 2) && now_ms() < end)
		for (int i = 0; i < 100000; i++)
			free(opaque(malloc(100)));
	CHECK_EQ(h->observe_request, (uint64_t)4 << 32 | 2);
	CHECK(ring_load(&h->head.entry) > entry);
	free(keep);
}

/* A child does not go on with what its parent was asked for, and has a file of its own to ask. */
static void child_is_not_asked(void)
{
	exercise(20, 1);
	set(map_own(".control", PROT_READ | PROT_WRITE), (uint64_t)4 << 32 | 1, 60000);
	await(map_own("", PROT_READ), (uint64_t)4 << 32 | 1);
	pid_t pid = fork();
	if (pid == 0) {
		exercise(50, 3);
		const struct ring_header *h = map_own("", PROT_READ);

		await(h, 0);
		set(map_own(".control", PROT_READ | PROT_WRITE), (uint64_t)8 << 32 | 1, 60000);
		await(h, (uint64_t)8 << 32 | 1);
		_exit(0);
	}
	expect_child(pid, 0, "the child");
	const struct ring_header *h = map_own("", PROT_READ);
	CHECK_EQ(h->observe_request, (uint64_t)4 << 32 | 1);
}

/* Another process writes whatever it likes, as fast as it can, until it is killed. */
static pid_t scribbler(bool cut)
{
	uint64_t *control = map_own(".control", PROT_READ | PROT_WRITE), random = 5;
	uint64_t *pins = map_own(".pins", PROT_READ | PROT_WRITE);
	char name[400], other[400];
	pid_t pid;

	snprintf(name, sizeof name, "%s", own_path(".control"));
	snprintf(other, sizeof other, "%s", own_path(".pins"));
	pid = fork();
	if (pid)
		return pid;
	for (unsigned long n = 0;; n++) {
		uint64_t word = random_next(&random) | (uint64_t)random_next(&random) << 32;

		if (cut) {
			if (truncate(name, n % 3 ? 4096 : random % 70) ||
			    truncate(other, n % 2 ? 4096 : random % 1100))
				_exit(1);
			continue;
		}
		if (random % 4 == 0)
			word = now_ms() + random % 61000;
		control[random % 8] = word >> word % 40;
		pins[random / 8 % (RING_PINS * 2)] = word >> word % 50;
		pins[1] = 1; /* touched */
	}
}

static void under_scribbler(bool cut)
{
	pthread_t thread[3];
	int status;

	exercise(20, 1);
	pid_t pid = scribbler(cut);
	for (uintptr_t i = 0; i < 3; i++)
		pthread_create(&thread[i], NULL, thread_of_use, (void *)i);
	uint64_t end = now_ms() + 1500;
	while (now_ms() < end) {
		exercise(5, end);
		malloc_trim(0);
	}
	fork_many(20);
	for (int i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	if (waitpid(pid, &status, WNOHANG) != 0)
		fail("the other process ended: %s", status_text(status));
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	exercise(50, 4);
}

static void hostile_bytes(void)
{
	under_scribbler(false);
}

static void hostile_lengths(void)
{
	under_scribbler(true);
}

/* Cut and left so; gone; something else in their place. */
static void files_are_cut(void)
{
	exercise(20, 1);
	const struct ring_header *h = map_own("", PROT_READ);
	struct ring_pin *pins = map_own(".pins", PROT_READ | PROT_WRITE);

	pins->touched = 1;
	set(map_own(".control", PROT_READ | PROT_WRITE), (uint64_t)4 << 32 | 1, 60000);
	await(h, (uint64_t)4 << 32 | 1);
	CHECK_EQ(truncate(own_path(".control"), 0), 0);
	CHECK_EQ(truncate(own_path(".pins"), 0), 0);
	await(h, 0);
	uint64_t entry = ring_load(&h->head.entry), end = now_ms() + PATIENCE;
	while (ring_load(&h->head.entry) < entry + 20 && now_ms() < end)
		exercise(1, entry);
	CHECK(ring_load(&h->head.entry) >= entry + 20);
	CHECK_EQ(unlink(own_path(".control")), 0);
	CHECK_EQ(unlink(own_path(".pins")), 0);
	exercise(100, 2);
}

static void nothing_is_left(void)
{
	struct outcome out;
	char *args[] = {(char *)dir_file("contract_control"), "--run", "acknowledged", NULL};
	DIR *dir;
	int left = 0;

	run_program(&out, args, environ);
	if (out.status)
		fail("%s %s", status_text(out.status), out.text);
	dir = opendir(FOLDER);
	for (struct dirent *e; dir && (e = readdir(dir));)
		if (e->d_name[0] != '.')
			left += strstr(e->d_name, own_path("")) == NULL;
	closedir(dir);
	CHECK_EQ(left, 3); /* this process's own */
}

static const int steady_calls[] = {
    SYS_mmap,  SYS_munmap, SYS_mprotect, SYS_madvise,	 SYS_mremap,
    SYS_futex, SYS_write,  SYS_exit,	 SYS_exit_group,
};
#define STEADY (int)(sizeof steady_calls / sizeof *steady_calls)

/* Asked, and a filter comes that kills for anything else. */
static void filter_while_asked(void)
{
	exercise(20, 1);
	struct ring_pin *pins = map_own(".pins", PROT_READ | PROT_WRITE);

	pins->touched = 1;
	set(map_own(".control", PROT_READ | PROT_WRITE), (uint64_t)1 << 32 | 1, 60000);
	await(map_own("", PROT_READ), (uint64_t)1 << 32 | 1);
	filter_all_but(SECCOMP_RET_KILL_PROCESS, steady_calls, STEADY);
	exercise(200, 2);
}

/* A filter that the library does not hear of: while nobody asks, no other call is made. */
static void filter_unheard(void)
{
	struct sock_filter code[STEADY + 3];
	struct sock_fprog program = {STEADY + 3, code};

	exercise(20, 1);
	CHECK(*own_path(""));
	code[0] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
					       offsetof(struct seccomp_data, nr));
	for (int i = 0; i < STEADY; i++)
		code[1 + i] = (struct sock_filter)BPF_JUMP(
		    BPF_JMP | BPF_JEQ | BPF_K, steady_calls[i], (unsigned char)(STEADY - i), 0);
	code[STEADY + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
	code[STEADY + 2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program))
		skip("no filter without prctl here: %s", strerror(errno));
	uint64_t end = now_ms() + 500;
	while (now_ms() < end)
		exercise(2, end);
	_exit(0);
}

#define ASKABLE(n)                                                                                 \
	.name = #n, .run = n, .before = make_folder, .numaslab = true, .timeout = 60,              \
	.env = {"NUMASLAB_PUBLISH_AFTER_MS=0", "NUMASLAB_TICK_MS=1", "NUMASLAB_DIR=" FOLDER}

const struct test tests[] = {
    {ASKABLE(acknowledged)},
    {ASKABLE(round_and_round)},
    {ASKABLE(child_is_not_asked)},
    {ASKABLE(hostile_bytes)},
    {ASKABLE(hostile_lengths)},
    {ASKABLE(files_are_cut)},
    {ASKABLE(nothing_is_left)},
    {ASKABLE(filter_while_asked)},
    {ASKABLE(filter_unheard)},
    {.name = "observe_placement",
     .run = observe_placement,
     .before = make_folder, /* which the others leave */
     .env = {"NUMASLAB_PLACEMENT=observe", "NUMASLAB_OBSERVE=1", "NUMASLAB_TICK_MS=1"},
     .timeout = 60},
    {.name = NULL},
};
