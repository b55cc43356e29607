/* SPDX-License-Identifier: MIT */
/*
 * A running process is put under observation and released again, by the file that another process
 * writes.
 *
 *	watched FILE			the process, under the library; FILE gets NAME VALUE lines
 *	watched control PID REQUEST MS	the other one: the request, for so long
 *
 * Threads, a node each, go over small objects that the thread before them allocated; what the
 *kernel makes of it is read from its trace (trace.h) and from numa_maps.
 */
#include "tests/vm/guest.h"
#include "tests/vm/trace.h"
#include "telemetry/ring.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define THREADS	  4
#define SMALL	  500ul
#define COUNT	  (16ul << 20) / SMALL /* of a thread */
#define PAGES	  (THREADS * COUNT * SMALL / GUEST_PAGE)
#define PHASE_MS  3000
#define PATIENCE  120000 /* milliseconds until what was asked must have happened */
#define DIRECTORY "/dev/shm/numaslab-0"

static FILE *out;
static void **small[THREADS];
static int *small_node;
static pthread_barrier_t barrier;
static atomic_bool stop;
static const struct ring_header *header;

static void put(const char *name, long value)
{
	fprintf(out, "%s %ld\n", name, value);
}

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void pause_ms(unsigned ms)
{
	usleep(ms * 1000);
}

/* --- The other process. --- */

/* The file of the process, or what lies beside it, mapped. */
static void *map_file(int pid, const char *beside, int prot)
{
	char part[24], path[300];
	DIR *dir = opendir(DIRECTORY);
	struct dirent *e;

	snprintf(part, sizeof(part), "-%d-", pid);
	while (dir && (e = readdir(dir))) {
		const char *dot = strchr(e->d_name, '.');

		if (!strstr(e->d_name, part) || strcmp(dot ? dot : "", beside))
			continue;
		snprintf(path, sizeof(path), DIRECTORY "/%s", e->d_name);
		int fd = open(path, prot & PROT_WRITE ? O_RDWR : O_RDONLY);
		void *at = mmap(NULL, 4096, prot, MAP_SHARED, fd, 0);
		close(fd);
		closedir(dir);
		return at == MAP_FAILED ? NULL : at;
	}
	if (dir)
		closedir(dir);
	return NULL;
}

static int control(char **args)
{
	struct ring_control *c = map_file(atoi(args[0]), ".control", PROT_READ | PROT_WRITE);
	uint64_t ms = strtoul(args[2], NULL, 10);

	if (!c)
		die("process %s has a control file", args[0]);
	ring_store(&c->lease_ms, 0);
	ring_store(&c->request, strtoul(args[1], NULL, 0));
	cmm_smp_wmb();
	ring_store(&c->lease_ms, ms ? now_ms() + ms : 0);
	return 0;
}

/* By a process of its own, that has ended when this returns. */
static void ask(uint64_t sample, uint32_t seed, unsigned ms)
{
	char pid[16], request[24], lease[16];
	char *args[] = {"watched", "control", pid, request, lease, NULL}, *env[] = {NULL};
	pid_t child;
	int status;

	snprintf(pid, sizeof(pid), "%d", getpid());
	snprintf(request, sizeof(request), "0x%lx", sample << 32 | seed);
	snprintf(lease, sizeof(lease), "%u", ms);
	if (posix_spawn(&child, "/proc/self/exe", NULL, NULL, args, env) ||
	    waitpid(child, &status, 0) != child || status)
		die("another process asks for observation");
}

/* --- The watched one. --- */

static void *worker(void *arg)
{
	int index = (intptr_t)arg, of = (index + 1) % THREADS;

	pin_cpu(cpu_of_node(index));
	for (size_t i = 0; i < COUNT; i++) {
		small[index][i] = malloc(SMALL);
		if (!small[index][i])
			die("malloc(%lu)", SMALL);
		memset(small[index][i], 1, SMALL);
	}
	pthread_barrier_wait(&barrier);
	landing(small[index], COUNT, small_node + index * COUNT);
	pthread_barrier_wait(&barrier);
	while (!atomic_load(&stop)) {
		for (size_t i = 0; i < COUNT; i++)
			(*(volatile char *)small[of][i])++;
		/* What the library does in slow paths gets its turns. */
		for (int i = 0; i < 200; i++)
			free(malloc(SMALL + i % 4 * 3000));
	}
	return NULL;
}

/* Pages that the kernel says are under a policy of observation. */
static long kernel_pages(void)
{
	char line[600];
	long pages = 0;
	FILE *maps = fopen("/proc/self/numa_maps", "re");

	if (!maps)
		die("numa_maps: %m");
	while (fgets(line, sizeof(line), maps)) {
		const char *policy = strchr(line, ' '), *anon = strstr(line, " anon=");

		if (policy && anon &&
		    (!strncmp(policy, " bind", 5) || !strncmp(policy, " prefer (many)", 14)))
			pages += strtol(anon + 6, NULL, 10);
	}
	fclose(maps);
	return pages;
}

/* Until the header says so; false: it did not in time. */
static bool await(uint64_t request, bool some)
{
	uint64_t end = now_ms() + PATIENCE;

	while (ring_load(&header->observe_request) != request ||
	       (ring_load(&header->observed_bytes) != 0) != some) {
		if (now_ms() > end) {
			note("request %#lx, %lu bytes, how %u at %lu", header->observe_request,
			     header->observed_bytes, header->observe_how, header->head.entry);
			return false;
		}
		pause_ms(20);
	}
	return true;
}

/* Hint faults on the heap in a while; longer, until `enough` were: the kernel looks when it likes.
 */
static long count_phase(long enough)
{
	uint64_t end = now_ms() + PATIENCE;
	long seen, faults = 0;

	do {
		trace_restart();
		pause_ms(PHASE_MS);
		faults += trace_count(&seen);
	} while (faults < enough && now_ms() < end);
	return faults;
}

static void switched_on_and_off(void)
{
	put("home_faults", count_phase(0));
	put("home_pages", kernel_pages());
	ask(1, 1, 60000);
	put("on_acknowledged", await(1ul << 32 | 1, true));
	pause_ms(1500);
	put("on_faults", count_phase(PAGES / 8 + 1));
	put("on_how", ring_load(&header->observe_how));
	put("on_pages", kernel_pages());
	put("on_promised", (long)(ring_load(&header->observed_bytes) / GUEST_PAGE));
	ask(4, 7, 60000);
	put("sample_acknowledged", await(4ul << 32 | 7, true));
	pause_ms(2500);
	put("sample_pages", kernel_pages());
	put("sample_promised", (long)(ring_load(&header->observed_bytes) / GUEST_PAGE));
	put("sample_faults", count_phase(PAGES / 40 + 1));
	ask(0, 0, 0);
	put("off_acknowledged", await(0, false));
	put("off_pages", kernel_pages());
	/* What the kernel had made inaccessible is touched once more. */
	pause_ms(2000);
	put("off_faults", count_phase(0));
}

/* Who asked is gone without a word. */
static void left_alone(void)
{
	ask(1, 3, 3000);
	put("lease_acknowledged", await(1ul << 32 | 3, true));
	put("lease_ended", await(0, false));
	put("lease_pages", kernel_pages());
}

static void forked(void)
{
	int status = -1;

	ask(1, 5, 60000);
	put("fork_acknowledged", await(1ul << 32 | 5, true));
	pause_ms(1000);
	fflush(out);
	pid_t pid = fork();
	if (pid == 0) {
		uint64_t end = now_ms() + PATIENCE;
		long first = kernel_pages();

		for (int i = 0; kernel_pages() && now_ms() < end; i++)
			for (int k = 0; k < 2000; k++)
				free(malloc(SMALL + (i + k) % 4 * 3000));
		put("child_first", first);
		put("child_pages", kernel_pages());
		fflush(out);
		_exit(0);
	}
	put("child_ended", waitpid(pid, &status, 0) == pid && status == 0);
	ask(0, 0, 0);
	await(0, false);
}

static void watched(void)
{
	pthread_t thread[THREADS];
	uintptr_t from = UINTPTR_MAX, to = 0;
	long changed = 0;

	pthread_barrier_init(&barrier, NULL, THREADS + 1);
	small_node = map_pages(THREADS * COUNT * sizeof(int), 0);
	for (int i = 0; i < THREADS; i++)
		small[i] = map_pages(COUNT * sizeof(void *), i);
	for (intptr_t i = 0; i < THREADS; i++)
		if (pthread_create(&thread[i], NULL, worker, (void *)i))
			die("a thread");
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < THREADS; i++)
		for (size_t j = 0; j < COUNT; j++) {
			uintptr_t p = (uintptr_t)small[i][j];

			from = p < from ? p : from;
			to = p + SMALL > to ? p + SMALL : to;
		}
	trace_pages(from, to);
	for (int i = 0; i < THREADS; i++)
		for (size_t j = 0; j < COUNT; j++)
			trace_mark(small[i][j]);
	uint64_t end = now_ms() + PATIENCE;
	while (!(header = map_file(getpid(), "", PROT_READ)) && now_ms() < end)
		pause_ms(20);
	if (!header)
		die("the process publishes");
	switched_on_and_off();
	left_alone();
	forked();
	atomic_store(&stop, true);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	for (int i = 0; i < THREADS; i++)
		for (size_t j = 0; j < COUNT; j++)
			changed += landing_of(small[i][j]) != small_node[i * COUNT + j];
	put("changed_node", changed);
	put("heap_pages", PAGES);
}

int main(int argc, char **argv)
{
	guest_start();
	if (argc == 5 && !strcmp(argv[1], "control"))
		return control(argv + 2);
	if (argc != 2 || !(out = fopen(argv[1], "we")))
		die("usage: watched FILE");
	setvbuf(out, NULL, _IOLBF, 0);
	watched();
	put("done", 1);
	return fclose(out) != 0;
}
