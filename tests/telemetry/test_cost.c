/* SPDX-License-Identifier: MIT */
/*
 * What publishing costs: instructions of an allocation-bound program with telemetry on and off,
 * counted by the trap flag, its locked instructions, and the time of a tick.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "tests/telemetry/fake.h"
#include "tests/telemetry/folder.h"
#include "tests/telemetry/tap.h"

#define WARM	   200 /* replacements of each block before the counting */
#define OPERATIONS 10000
#define TICKS	   500

struct cost {
	unsigned long instructions, locked;
	bool good;
};

/* Random replacement, sizes 16 to 1023: slabs fill, empty, and are born. */
static void work(void **block, unsigned blocks, unsigned long n)
{
	static uint64_t state = 88172645463325252;

	while (n--) {
		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
		unsigned i = state % blocks;

		free(block[i]);
		block[i] = malloc(16 + (state >> 32) % 1008);
	}
}

#if defined(__x86_64__)
static struct cost seen;

static void on_trap(int number, siginfo_t *info, void *context)
{
	const unsigned char *at = (void *)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];

	(void)number, (void)info;
	seen.instructions++;
	seen.locked += *at == 0xf0; /* the lock prefix */
}

/* The work with the trap flag set: a signal after each instruction counts it. */
static int be_child(unsigned blocks)
{
	struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};
	void **block = calloc(blocks, sizeof *block);

	sigaction(SIGTRAP, &action, NULL);
	work(block, blocks, (unsigned long)blocks * WARM);
	__asm__ volatile("pushfq; orq $0x100, (%%rsp); popfq" ::: "memory", "cc");
	work(block, blocks, OPERATIONS);
	__asm__ volatile("pushfq; andq $~0x100, (%%rsp); popfq" ::: "memory", "cc");
	printf("%lu %lu\n", seen.instructions, seen.locked);
	return 0;
}
#else
static int be_child(unsigned blocks)
{
	(void)blocks;
	return 1;
}
#endif

static struct cost count(const char *self, const char *library, const char *dir, unsigned blocks,
			 bool on)
{
	struct cost c = {0};
	char number[16];
	int out[2], status;

	if (pipe(out) < 0)
		return c;
	pid_t child = fork();
	if (child == 0) {
		setenv("LD_PRELOAD", library, 1);
		setenv("NUMASLAB_DIR", dir, 1);
		setenv("NUMASLAB_TELEMETRY", on ? "1" : "0", 1);
		setenv("NUMASLAB_PUBLISH_AFTER_MS", "0", 1);
		setenv("NUMASLAB_TICK_MS", "60000", 1); /* traps make a tick due too often */
		dup2(out[1], 1);
		snprintf(number, sizeof number, "%u", blocks);
		execl(self, self, "--child", number, NULL);
		_exit(127);
	}
	close(out[1]);
	FILE *answer = fdopen(out[0], "r");
	c.good = fscanf(answer, "%lu %lu", &c.instructions, &c.locked) == 2;
	fclose(answer);
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

#if defined(__x86_64__)
/* Of few blocks and of many, whose slabs are full and not by turns. */
static void compare(const char *self, const char *library, const char *dir, unsigned blocks)
{
	struct cost off = count(self, library, dir, blocks, false);
	struct cost on = count(self, library, dir, blocks, true);

	ok(access(dir, F_OK) == 0, "one of the two did publish");
	if (!ok(off.good && on.good, "counted, %u blocks", blocks))
		return;
	double more = 100 * ((double)on.instructions / (double)off.instructions - 1);

	ok(more <= 1, "%.2f %% more instructions (%lu, %lu without)", more, on.instructions,
	   off.instructions);
	ok(on.locked <= off.locked + off.locked / 100,
	   "no more locked instructions (%lu, %lu without)", on.locked, off.locked);
	ok(off.locked <= OPERATIONS / 10, "and few (%d operations)", OPERATIONS);
}
#endif

int main(int argc, char **argv)
{
	const char *build = getenv("BUILD") ? getenv("BUILD") : "build";
	const char *dir;
	char library[4096], relative[4096], sub[80];

	if (argc > 2 && !strcmp(argv[1], "--child"))
		return be_child((unsigned)atoi(argv[2]));
	snprintf(relative, sizeof relative, "%s/libnumaslab.so", build);
	if (!realpath(relative, library) || !(dir = folder_make("/tmp/numaslab-cost-XXXXXX"))) {
		printf("1..0 # SKIP no %s\n", relative);
		return 0;
	}
	snprintf(sub, sizeof sub, "%s/files", dir);
#if !defined(__x86_64__)
	ok(true, "instructions # SKIP the trap flag is known on x86-64 only");
#else
	compare(argv[0], library, sub, 2000);
	compare(argv[0], library, sub, 20000);
#endif
	double best = tick_time(sub);
	ok(best <= 50, "a tick takes %.1f us on one node, at any size of heap", best);
	int status = tap_end();
	folder_remove();
	return status;
}
