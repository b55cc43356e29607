/* SPDX-License-Identifier: MIT */
/*
 * What publishing costs: instructions of an allocation-bound program with telemetry on and off,
 * counted by the trap flag, its locked instructions, and the time of a tick.
 */
#include <pthread.h>
#include <semaphore.h>
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

#define WARM	60 /* replacements of each block before the counting */
#define COUNTED 50 /* of a burst of operations; others are between them, as a trap is slow */
#define BETWEEN 150
#define TICKS	500

/*
 * Blocks of random size, replaced at random, by one thread or two by turns.  most: more, per cent;
 * locked: instructions, in a hundred operations.  Two threads that replace each other's blocks pay
 * for each slab's way from one to the other, which is a change of state each time.
 */
static const struct load {
	const char *name;
	unsigned threads, blocks, size_min, size_max, bursts, most, locked;
} loads[] = {
    {"slabs that fill and empty by turns", 1, 2000, 16, 1023, 20, 1, 10},
    {"slabs that are full, and not by turns", 1, 20000, 16, 1023, 100, 1, 10},
    {"slabs of large blocks, looked at often", 1, 50000, 1, 4000, 50, 1, 33},
    {"slabs of two threads", 2, 20000, 16, 1023, 40, 1, 200},
    {"slabs of two threads, of large blocks", 2, 20000, 1, 4000, 40, 12, 700},
};

struct cost {
	unsigned long instructions, locked;
	bool good;
};

static void work(const struct load *l, void **block, unsigned long n)
{
	static uint64_t state = 88172645463325252;

	while (n--) {
		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
		unsigned i = state % l->blocks;

		free(block[i]);
		block[i] = malloc(l->size_min + (state >> 32) % (l->size_max - l->size_min + 1));
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

/* The other thread does as much as the one that is counted, while that waits. */
static struct {
	sem_t go, done;
	const struct load *load;
	void **block;
	unsigned long n;
} other;

static void *work_by_turns(void *arg)
{
	for (;;) {
		sem_wait(&other.go);
		work(other.load, other.block, other.n);
		sem_post(&other.done);
	}
	return arg;
}

static void turn(unsigned long n)
{
	if (other.load->threads < 2)
		return;
	other.n = n;
	sem_post(&other.go);
	sem_wait(&other.done);
}

static void begin_turns(const struct load *l, void **block)
{
	pthread_t thread;

	other.load = l;
	other.block = block;
	sem_init(&other.go, 0, 0);
	sem_init(&other.done, 0, 0);
	if (l->threads > 1)
		pthread_create(&thread, NULL, work_by_turns, NULL);
}

/* With the trap flag set a signal after each instruction counts it. */
static int be_child(const struct load *l)
{
	struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};
	void **block = calloc(l->blocks, sizeof *block);

	sigaction(SIGTRAP, &action, NULL);
	begin_turns(l, block);
	for (unsigned i = 0; i < WARM * l->threads; i++) {
		work(l, block, l->blocks / l->threads);
		turn(l->blocks / l->threads);
	}
	for (unsigned i = 0; i < l->bursts; i++) {
		__asm__ volatile("pushfq; orq $0x100, (%%rsp); popfq" ::: "memory", "cc");
		work(l, block, COUNTED);
		__asm__ volatile("pushfq; andq $~0x100, (%%rsp); popfq" ::: "memory", "cc");
		work(l, block, BETWEEN);
		turn(COUNTED + BETWEEN);
	}
	free(block);
	printf("%lu %lu\n", seen.instructions, seen.locked);
	return 0;
}
#else
static int be_child(const struct load *l)
{
	(void)l;
	return 1;
}
#endif

static struct cost count(const char *self, const char *library, const char *dir, unsigned load,
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
		snprintf(number, sizeof number, "%u", load);
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
static void compare(const char *self, const char *library, const char *dir, unsigned load)
{
	struct cost off = count(self, library, dir, load, false);
	struct cost on = count(self, library, dir, load, true);

	ok(access(dir, F_OK) == 0, "one of the two did publish");
	if (!ok(off.good && on.good, "counted: %s", loads[load].name))
		return;
	double more = 100 * ((double)on.instructions / (double)off.instructions - 1);

	ok(more <= loads[load].most, "%.2f %% more instructions (%lu, %lu without)", more,
	   on.instructions, off.instructions);
	if (loads[load].threads == 1) /* with more there are barriers, which are locked, too */
		ok(on.locked <= off.locked + off.locked / 100,
		   "no more locked instructions (%lu, %lu without)", on.locked, off.locked);
	ok(off.locked <= loads[load].bursts * COUNTED * loads[load].locked / 100,
	   "and few (%d operations)", loads[load].bursts * COUNTED);
}
#endif

int main(int argc, char **argv)
{
	const char *build = getenv("BUILD") ? getenv("BUILD") : "build";
	const char *dir;
	char library[4096], relative[4096], sub[80];

	if (argc > 2 && !strcmp(argv[1], "--child"))
		return be_child(&loads[atoi(argv[2])]);
	snprintf(relative, sizeof relative, "%s/libnumaslab.so", build);
	if (!realpath(relative, library) || !(dir = folder_make("/tmp/numaslab-cost-XXXXXX"))) {
		printf("1..0 # SKIP no %s\n", relative);
		return 0;
	}
	snprintf(sub, sizeof sub, "%s/files", dir);
#if !defined(__x86_64__)
	ok(true, "instructions # SKIP the trap flag is known on x86-64 only");
#else
	for (unsigned i = 0; i < sizeof loads / sizeof *loads; i++)
		compare(argv[0], library, sub, i);
#endif
	double best = tick_time(sub);
	ok(best <= 50, "a tick takes %.1f us on one node, at any size of heap", best);
	int status = tap_end();
	folder_remove();
	return status;
}
