/* SPDX-License-Identifier: MIT */
/*
 * What publishing costs: instructions of an allocation-bound program with telemetry on and off,
 * counted by single steps (no clock runs in them), its locked instructions, and the time of a tick.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/telemetry/fake.h"
#include "tests/telemetry/tap.h"

#define BLOCKS	   2000
#define WARM	   400000
#define OPERATIONS 6000
#define TICKS	   500

struct cost {
	unsigned long instructions, locked;
	bool good;
};

/* Random replacement, sizes 16 to 1023: slabs fill, empty, and are born. */
static void work(void **block, unsigned long n)
{
	static uint64_t state = 88172645463325252;

	while (n--) {
		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
		unsigned i = state % BLOCKS;

		free(block[i]);
		block[i] = malloc(16 + (state >> 32) % 1008);
	}
}

static int be_child(void)
{
	void **block = calloc(BLOCKS, sizeof *block);

	ptrace(PTRACE_TRACEME, 0, 0, 0);
	work(block, WARM);
	raise(SIGSTOP);
	work(block, OPERATIONS);
	raise(SIGSTOP);
	return 0;
}

#if defined(__x86_64__)
static bool is_locked(pid_t child)
{
	struct user_regs_struct regs;
	unsigned char code[2] = {0};

	ptrace(PTRACE_GETREGS, child, 0, &regs);
	struct iovec to = {code, 2}, from = {(void *)regs.rip, 2};
	if (process_vm_readv(child, &to, 1, &from, 1, 0) != 2)
		return false;
	return code[0] == 0xf0; /* the lock prefix */
}
#else
static bool is_locked(pid_t child)
{
	(void)child;
	return false;
}
#endif

static struct cost count(const char *self, const char *library, const char *dir, bool on)
{
	struct cost c = {0};
	int status;
	pid_t child = fork();

	if (child == 0) {
		setenv("LD_PRELOAD", library, 1);
		setenv("NUMASLAB_DIR", dir, 1);
		setenv("NUMASLAB_TELEMETRY", on ? "1" : "0", 1);
		setenv("NUMASLAB_PUBLISH_AFTER_MS", "0", 1);
		setenv("NUMASLAB_TICK_MS", "60000", 1); /* steps make a tick due too often */
		execl(self, self, "--child", NULL);
		_exit(127);
	}
	while (waitpid(child, &status, 0) == child && WIFSTOPPED(status) &&
	       WSTOPSIG(status) != SIGSTOP)
		ptrace(PTRACE_CONT, child, 0, 0); /* the stop of exec */
	while (WIFSTOPPED(status)) {
		if (ptrace(PTRACE_SINGLESTEP, child, 0, 0) < 0 || waitpid(child, &status, 0) < 0)
			break;
		if (WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP) {
			c.good = true;
			break;
		}
		c.instructions++;
		c.locked += WIFSTOPPED(status) && is_locked(child);
	}
	kill(child, SIGKILL);
	waitpid(child, &status, 0);
	return c;
}

static double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* The best of some: what it takes, not what others on this machine take from it. */
static double tick_time(const char *dir)
{
	double best = 1e9;
	uint64_t now = 1000;

	fake_init(1, dir);
	for (unsigned cls = 1; cls < CLASS_COUNT; cls++)
		fake_slab_born(0, cls, 1);
	for (int i = 0; i < 3000; i++)
		telemetry_tick(now++); /* the whole ring is there */
	for (int i = 0; i < TICKS; i++) {
		double start = now_us();

		telemetry_tick(now++);
		if (now_us() - start < best)
			best = now_us() - start;
	}
	return best;
}

int main(int argc, char **argv)
{
	const char *build = getenv("BUILD") ? getenv("BUILD") : "build";
	char library[4096], relative[4096], dir[] = "/tmp/numaslab-cost-XXXXXX", sub[64];

	if (argc > 1 && !strcmp(argv[1], "--child"))
		return be_child();
	snprintf(relative, sizeof relative, "%s/libnumaslab.so", build);
	if (!realpath(relative, library) || !mkdtemp(dir)) {
		printf("1..0 # SKIP no %s\n", relative);
		return 0;
	}
	snprintf(sub, sizeof sub, "%s/files", dir);
	struct cost off = count(argv[0], library, sub, false);
	struct cost on = count(argv[0], library, sub, true);
	if (!off.good || !on.good) {
		ok(false, "counted (%s)", strerror(errno));
	} else {
		double more = 100 * ((double)on.instructions / (double)off.instructions - 1);

		ok(more <= 1, "%.2f %% more instructions (%lu, %lu without)", more, on.instructions,
		   off.instructions);
		ok(on.locked <= off.locked + off.locked / 100,
		   "no more locked instructions (%lu, %lu without)", on.locked, off.locked);
	}
	double best = tick_time(sub);
	ok(best <= 50, "a tick takes %.1f us on one node, at any size of heap", best);
	int status = tap_end();
	fflush(stdout);
	if (fork() == 0)
		execlp("rm", "rm", "-r", dir, NULL);
	return status;
}
