/* SPDX-License-Identifier: MIT */
/*
 * T2: programs with the shapes of numa01 and numa02, and one more, under NUMA balancing.
 *
 *	t2 numa01 FILE		2 processes, a thread per CPU each, all over one block of the
 process *	t2 numa02 FILE		1 process, a thread per CPU, each over its own part of one
 block *	t2 crossed FILE		each thread over small objects that the thread before it
 allocated *
 * Threads are pinned, a node each, so that "remote" is well defined.  FILE gets NAME VALUE lines
 for
 * the script.  Hint faults are counted on the program's own blocks: the script has a kprobe on
 * mpol_misplaced, whose third argument is the address, and its trace is read here.
 */
#include "tests/vm/guest.h"
#include "tests/vm/trace.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define THREADS	    4
#define BLOCK	    (24ul << 20) /* of a process; scaled, the shape is kept */
#define SMALL	    500ul
#define SMALL_COUNT (4ul << 20) / SMALL /* of a thread */
#define SWEEP_TIME  6 /* seconds of guest time: scan periods, not speed, are what counts */
#define PATIENCE    120

static const char *const rows[] = {
    "numa_hint_faults", "numa_hint_faults_local", "numa_hit", "numa_local",
    "numa_pte_updates", "numa_pages_migrated",	  "pgfault",  "pgmajfault",
};
#define ROWS (sizeof(rows) / sizeof(*rows))

/* What the processes of one run share. */
static struct shared {
	struct {
		uintptr_t from, to; /* page addresses of the process's block */
		uint64_t pages, remote, touching;
	} process[2];
} * shared;

static FILE *out;
static char *block; /* of this process */
static size_t part; /* what each thread sweeps */
static pthread_barrier_t barrier;

static void put(const char *name, double value)
{
	fprintf(out, "%s %.0f\n", name, value);
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static void put_faults(void)
{
	long seen;

	put("heap_hint_faults", trace_count(&seen));
	put("traced", seen);
}

/* --- the programs --- */

static void sweep(char *p, size_t size, int stride)
{
	double end = seconds() + SWEEP_TIME;

	do {
		for (size_t i = 0; i < size; i += stride)
			p[i]++;
	} while (seconds() < end);
}

/* numa01: everyone over the whole block; numa02: each over its part. */
static void *sweeper(void *arg)
{
	int index = (intptr_t)arg;

	pin_cpu(cpu_of_node(index));
	memset(block + index * (BLOCK / THREADS), 1, BLOCK / THREADS);
	pthread_barrier_wait(&barrier);
	sweep(part == BLOCK ? block : block + index * part, part, 64);
	return NULL;
}

static void run_threads(void *(*body)(void *))
{
	pthread_t thread[THREADS];

	for (intptr_t i = 0; i < THREADS; i++)
		if (pthread_create(&thread[i], NULL, body, (void *)i))
			die("a thread");
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
}

/* One process of numa01 or numa02. */
static void block_process(int which)
{
	pthread_barrier_init(&barrier, NULL, THREADS);
	block = malloc(BLOCK);
	if (!block)
		die("malloc of %lu bytes", BLOCK);
	run_threads(sweeper);
	shared->process[which].from = (uintptr_t)block & -GUEST_PAGE;
	shared->process[which].to = (uintptr_t)block + BLOCK;
	/* For each page and each thread that touches it: is it on another node? */
	for (size_t i = 0; i < BLOCK; i += GUEST_PAGE) {
		int node = landing_of(block + i);

		for (int t = 0; t < THREADS; t++) {
			if (part != BLOCK && i / part != (size_t)t)
				continue;
			shared->process[which].touching++;
			shared->process[which].remote += node != t;
		}
		shared->process[which].pages++;
	}
}

static void report_rows(const long *before)
{
	for (size_t r = 0; r < ROWS; r++)
		put(rows[r], vmstat(rows[r]) - before[r]);
}

static void read_rows(long *row)
{
	for (size_t r = 0; r < ROWS; r++)
		row[r] = vmstat(rows[r]);
}

static void blocks(int processes)
{
	uint64_t remote = 0, touching = 0;
	uintptr_t from = UINTPTR_MAX, to = 0;
	long before[ROWS];
	pid_t pid = 0;

	read_rows(before);
	part = processes == 2 ? BLOCK : BLOCK / THREADS;
	if (processes == 2 && !(pid = fork())) {
		block_process(1);
		_exit(0);
	}
	block_process(0);
	if (pid && waitpid(pid, NULL, 0) != pid)
		die("the other process");
	report_rows(before);
	for (int i = 0; i < processes; i++) {
		remote += shared->process[i].remote;
		touching += shared->process[i].touching;
		from = shared->process[i].from < from ? shared->process[i].from : from;
		to = shared->process[i].to > to ? shared->process[i].to : to;
	}
	trace_pages(from, to);
	for (int i = 0; i < processes; i++)
		for (uintptr_t p = shared->process[i].from; p < shared->process[i].to;
		     p += GUEST_PAGE)
			trace_mark((void *)p);
	put_faults();
	put("remote_permille", 1000.0 * remote / touching);
}

/* --- small objects, used by another node's thread --- */

static void **small[THREADS];
static int *small_node;

static atomic_bool small_done;

/*
 * Enough was swept: the time is over, and where the script says how many hint faults there must be
 * (T2_FAULTS), so many were, or PATIENCE is over.  The kernel looks when it likes.
 */
static bool swept_enough(double begin, long faults_before)
{
	const char *wanted = getenv("T2_FAULTS");
	double now = seconds();

	if (now < begin + SWEEP_TIME)
		return false;
	return !wanted || now > begin + PATIENCE ||
	       vmstat("numa_hint_faults") > faults_before + atol(wanted);
}

static void *small_sweeper(void *arg)
{
	int index = (intptr_t)arg, of = (index + 1) % THREADS;
	long before = vmstat("numa_hint_faults");
	double begin;

	pin_cpu(cpu_of_node(index));
	for (size_t i = 0; i < SMALL_COUNT; i++) {
		small[index][i] = malloc(SMALL);
		if (!small[index][i])
			die("malloc(%lu)", SMALL);
		memset(small[index][i], 1, SMALL);
	}
	pthread_barrier_wait(&barrier);
	landing(small[index], SMALL_COUNT, small_node + index * SMALL_COUNT);
	pthread_barrier_wait(&barrier);
	/* Some allocation goes on: what the library does in slow paths must get its turns. */
	begin = seconds();
	do {
		for (size_t i = 0; i < SMALL_COUNT; i++)
			(*(volatile char *)small[of][i])++;
		for (int i = 0; i < 200; i++)
			free(malloc(SMALL + i % 4 * 3000));
		if (index == 0 && swept_enough(begin, before))
			atomic_store(&small_done, true);
	} while (!atomic_load(&small_done));
	pthread_barrier_wait(&barrier);
	return NULL;
}

/* From here on no page moves while we look. */
static void stop_balancing(void)
{
	int fd = open("/proc/sys/kernel/numa_balancing", O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, "0", 1) != 1)
		die("NUMA balancing is stopped: %m");
	close(fd);
}

/* Frees everything and allocates it again on the same nodes: what the library believes of them
 * then. */
static void *small_again(void *arg)
{
	int index = (intptr_t)arg;

	pin_cpu(cpu_of_node(index));
	for (size_t i = 0; i < SMALL_COUNT; i++)
		free(small[index][i]);
	pthread_barrier_wait(&barrier);
	for (size_t i = 0; i < SMALL_COUNT; i++) {
		small[index][i] = malloc(SMALL);
		memset(small[index][i], 1, SMALL);
	}
	return NULL;
}

static void crossed(void)
{
	uintptr_t from = UINTPTR_MAX, to = 0;
	long before[ROWS], changed = 0;
	struct tally t = {0};

	pthread_barrier_init(&barrier, NULL, THREADS);
	small_node = map_pages(THREADS * SMALL_COUNT * sizeof(int), 0);
	for (int i = 0; i < THREADS; i++)
		small[i] = map_pages(SMALL_COUNT * sizeof(void *), i);
	read_rows(before);
	run_threads(small_sweeper);
	report_rows(before);
	for (int i = 0; i < THREADS; i++)
		for (size_t j = 0; j < SMALL_COUNT; j++) {
			uintptr_t p = (uintptr_t)small[i][j];

			from = p < from ? p : from;
			to = p + SMALL > to ? p + SMALL : to;
		}
	trace_pages(from, to);
	for (int i = 0; i < THREADS; i++)
		for (size_t j = 0; j < SMALL_COUNT; j++)
			trace_mark(small[i][j]);
	put_faults();
	for (int i = 0; i < THREADS; i++)
		for (size_t j = 0; j < SMALL_COUNT; j++)
			changed += landing_of(small[i][j]) != small_node[i * SMALL_COUNT + j];
	put("changed_node", changed);
	stop_balancing();
	run_threads(small_again);
	for (int i = 0; i < THREADS; i++)
		tally_objects(&t, small[i], SMALL_COUNT);
	tally_note(&t, "after migration, freed and allocated again");
	put("disagree_permille", 1000.0 * t.disagree / t.total);
}

int main(int argc, char **argv)
{
	guest_start();
	if (argc < 3 || !(out = fopen(argv[2], "we")))
		die("usage: t2 numa01|numa02|crossed FILE");
	shared =
	    mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (!strcmp(argv[1], "numa01"))
		blocks(2);
	else if (!strcmp(argv[1], "numa02"))
		blocks(1);
	else
		crossed();
	put("done", 1);
	return fclose(out) != 0;
}
