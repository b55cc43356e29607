/* SPDX-License-Identifier: MIT */
/*
 * numaslab hints against the kernel's own account, on four nodes with a CPU each.
 *
 *	hints counts TIER MIB FAULTS [stopped | huge]
 *					all processes: its counts between two readings of vmstat;
 *					stopped: it does not run meanwhile, and its ring overruns;
 *					huge: on huge pages
 *	hints matrix TIER		three classes on three nodes, each used from one node:
 *exactly the traced faults, cell by cell; then slabs born again hints masked
 *placement home: no hint faults, and it says why hints observe			full observation
 *against a sample; nothing moves hints killed			the companion is killed: observation
 *ends by itself
 */
#include "tests/vm/companion.h"
#include "tests/vm/guest.h"

#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NODES	  4
#define HUGE_PAGE (2ul << 20)

static void run(void *(*body)(void *), void *arg)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, body, arg) || pthread_join(thread, NULL))
		die("a thread");
}

/* --- Counts of all processes. --- */

static char *area;
static size_t area_bytes;
static long sweep_until; /* of numa_hint_faults */

#define PATIENCE 120 /* seconds without a new fault; software emulation on shared cores */

/* Each node's thread in turn writes to everything, so that pages go about. */
static void *area_sweeper(void *arg)
{
	int index = (intptr_t)arg;
	double end = seconds() + PATIENCE;
	size_t part = area_bytes / NODES;
	long last = 0, now;

	pin_cpu(cpu_of_node(index));
	for (int turn = index; (now = vmstat("numa_hint_faults")) < sweep_until; turn++) {
		if (now > last)
			end = seconds() + PATIENCE;
		else if (seconds() > end)
			break;
		last = now;
		for (size_t i = part; i > 0; i -= GUEST_PAGE) /* a huge page from its end */
			((volatile char *)area)[turn % NODES * part + i - GUEST_PAGE]++;
	}
	return NULL;
}

static void storm(void)
{
	pthread_t thread[NODES];

	for (intptr_t i = 0; i < NODES; i++)
		if (pthread_create(&thread[i], NULL, area_sweeper, (void *)i))
			die("a thread");
	for (int i = 0; i < NODES; i++)
		pthread_join(thread[i], NULL);
}

static void between(const char *what, long low, long long ours, long high)
{
	check(low <= ours && ours <= high, "%s: %ld <= %lld <= %ld", what, low, ours, high);
}

/* Of faults on huge pages the kernel passes on the page's beginning; we must see where they were.
 */
static void compare_samples(const char *tier)
{
	const char *process = json_process(getpid()), *at = NULL;
	int inside = 0, exact = 0;
	long long pages;
	uint64_t address;

	while (process && (address = json_sample(process, &at, &pages)))
		if (pages > 1 && address - (uintptr_t)area < area_bytes) {
			inside++;
			exact += address % HUGE_PAGE != 0;
		}
	check(inside > 0 && exact > inside / 2,
	      "%s: %d of %d samples of huge pages say where inside", tier, exact, inside);
}

static void counts(const char *tier, size_t mib, long faults, bool stopped, bool huge)
{
	static const char *const rows[] = {"numa_hint_faults", "numa_hint_faults_local",
					   "numa_pages_migrated"};
	static const char *const keys[] = {"faults", "local", "migrated"};
	const char *args[] = {"--tier", tier, NULL};
	long at[4][3];

	area_bytes = mib << 20;
	area = map_pages(area_bytes, -1);
	for (int r = 0; r < 3; r++)
		at[0][r] = vmstat(rows[r]);
	companion_start(args);
	for (int r = 0; r < 3; r++)
		at[1][r] = vmstat(rows[r]);
	if (stopped)
		kill(companion_pid(), SIGSTOP);
	sweep_until = vmstat("numa_hint_faults") + faults;
	storm();
	if (stopped)
		kill(companion_pid(), SIGCONT);
	for (int r = 0; r < 3; r++)
		at[2][r] = vmstat(rows[r]);
	int status = companion_stop();
	for (int r = 0; r < 3; r++)
		at[3][r] = vmstat(rows[r]);
	check(at[2][0] >= sweep_until, "%s: %ld hint faults at least, so this tells", tier, faults);
	check(status == 0 && json_has(NULL, "tier", "\""), "%s: ends well (status %d)", tier,
	      status);
	const char *total = strstr(companion_json(), "\"total\":{");
	for (int r = 0; r < 3; r++)
		between(rows[r], at[2][r] - at[1][r], json_number(total, keys[r]),
			at[3][r] - at[0][r]);
	const char *drops = strstr(companion_json(), "\"drops\":{");
	check(json_number(drops, "cells") == 0 && json_number(drops, "events") == 0,
	      "%s: nothing was dropped", tier);
	check((json_number(drops, "samples") > 0) == stopped, "%s: samples lost: %lld", tier,
	      json_number(drops, "samples"));
	const char *kernel = strstr(companion_json(), "\"kernel\":{");
	check(json_number(kernel, "low") <= json_number(total, "faults") &&
		  json_number(total, "faults") <= json_number(kernel, "high"),
	      "%s: its own comparison with the kernel holds (%lld, %lld, %lld)", tier,
	      json_number(kernel, "low"), json_number(total, "faults"),
	      json_number(kernel, "high"));
	if (huge)
		compare_samples(tier);
	note("%s: %lld faults, %lld local, %lld migrated, %lld unjoined", tier,
	     json_number(total, "faults"), json_number(total, "local"),
	     json_number(total, "migrated"), json_number(total, "unjoined"));
}

/* --- A known pattern. --- */

/* Objects of one class, allocated on one node, used from another. */
struct pattern {
	size_t size, count;
	int home, user;
	void **object;
	long faults[NODES]; /* traced, by the node of the CPU */
};

#define PATTERN_BYTES (6ul << 20)
static struct pattern patterns[3];
static double use_time = 4;
static int own_node; /* of this thread */

static void *allocate(void *arg)
{
	struct pattern *p = arg;

	pin_cpu(cpu_of_node(p->home));
	for (size_t i = 0; i < p->count; i++) {
		p->object[i] = malloc(p->size);
		if (!p->object[i])
			die("malloc(%zu)", p->size);
		memset(p->object[i], 1, p->size);
	}
	return NULL;
}

static void *release(void *arg)
{
	struct pattern *p = arg;

	pin_cpu(cpu_of_node(p->home));
	for (size_t i = 0; i < p->count; i++)
		free(p->object[i]);
	malloc_trim(0);
	return NULL;
}

static void *use(void *arg)
{
	struct pattern *p = arg;
	double end = seconds() + use_time;

	pin_cpu(cpu_of_node(p->user));
	while (seconds() < end)
		for (size_t i = 0; i < p->count; i++)
			(*(volatile char *)p->object[i])++;
	return NULL;
}

static void pattern_init(struct pattern *p, size_t size, int home, int user)
{
	if (!p->object)
		p->object = map_pages(PATTERN_BYTES / 64 * sizeof(void *), home);
	p->size = size;
	p->count = PATTERN_BYTES / size;
	p->home = home;
	p->user = user;
	memset(p->faults, 0, sizeof(p->faults));
	run(allocate, p);
}

static void use_all(void)
{
	pthread_t thread[3];

	for (int i = 0; i < 3; i++)
		if (pthread_create(&thread[i], NULL, use, &patterns[i]))
			die("a thread");
	for (int i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
}

/* Whose page it is: by the 64 KiB that a slab's objects lie in. */
static uint8_t *owner; /* by unit, 1 + index of the pattern */
static uintptr_t owner_base, owner_units;

static void owners_make(void)
{
	uintptr_t low = UINTPTR_MAX, high = 0;

	for (int k = 0; k < 3; k++)
		for (size_t i = 0; i < patterns[k].count; i++) {
			uintptr_t at = (uintptr_t)patterns[k].object[i];

			low = at < low ? at : low;
			high = at > high ? at : high;
		}
	owner_base = low >> 16;
	owner_units = (high >> 16) - owner_base + 1;
	owner = mmap(NULL, owner_units, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (owner == MAP_FAILED)
		die("a table of %lu units: %m", owner_units);
	for (int k = 0; k < 3; k++)
		for (size_t i = 0; i < patterns[k].count; i++)
			owner[((uintptr_t)patterns[k].object[i] >> 16) - owner_base] = 1 + k;
}

static long others;

static void see(int tid, int cpu, uint64_t address)
{
	uintptr_t unit = (address >> 16) - owner_base;

	(void)tid;
	if (unit < owner_units && owner[unit])
		patterns[owner[unit] - 1].faults[node_of_cpu(cpu)]++;
	else
		others++;
}

static long long cell_faults(const char *process, size_t size, int home, int node)
{
	struct cell c;
	const char *at = NULL;
	long long sum = 0;

	while (json_cell(process, &at, &c))
		if (!strcmp(c.kind, "slab") && c.size == (long long)size && c.home == home &&
		    c.node == node)
			sum += c.faults;
	return sum;
}

/* No other cell of these classes may have anything. */
static long long class_faults(const char *process, size_t size)
{
	struct cell c;
	const char *at = NULL;
	long long sum = 0;

	while (json_cell(process, &at, &c))
		if (!strcmp(c.kind, "slab") && c.size == (long long)size)
			sum += c.faults;
	return sum;
}

static void compare_matrix(const char *when)
{
	const char *process = json_process(getpid());

	if (!check(process != NULL, "%s: this process is in the document", when))
		return;
	for (int k = 0; k < 3; k++) {
		struct pattern *p = &patterns[k];

		for (int n = 0; n < NODES; n++) {
			long long ours = cell_faults(process, p->size, p->home, n);

			/* The C library may have a block or two of this class, too. */
			bool same = n == p->user ? ours == p->faults[n] && ours > 100
						 : ours >= p->faults[n] && ours <= p->faults[n] + 8;
			if (p->faults[n] || ours || n == p->user)
				check(same,
				      "%s: class %zu of node %d used from node %d: %lld of %ld "
				      "traced faults",
				      when, p->size, p->home, n, ours, p->faults[n]);
		}
		long long cells = 0;
		for (int n = 0; n < NODES; n++)
			cells += cell_faults(process, p->size, p->home, n);
		/* The C library's block or two lie where we ran, and are used from where we run. */
		long long own = 0;
		for (int n = 0; n < NODES; n++)
			own += n == p->home ? 0 : cell_faults(process, p->size, n, own_node);
		check(own <= 8 && class_faults(process, p->size) == cells + own,
		      "%s: class %zu has no other home (%lld our own)", when, p->size, own);
	}
	const char *resolve = strstr(process, "\"resolve\":{");
	check(json_number(resolve, "failed") == 0 && json_number(resolve, "damaged") == 0,
	      "%s: each slab was read (late: %lld)", when, json_number(resolve, "late"));
}

static void watch_use(const char *tier, const char *when)
{
	char pid[16];
	const char *args[] = {"--tier", tier, "-p", pid, NULL};

	snprintf(pid, sizeof(pid), "%d", getpid());
	owners_make();
	companion_start(args);
	if (!trace_start())
		die("hint faults can be traced");
	use_all();
	trace_stop(see);
	check(companion_stop() == 0, "%s: the companion ends well", when);
	compare_matrix(when);
}

/* Slabs of the same address, of two lives; each is of one class. */
static void compare_generations(const char *process)
{
	struct slab_row a, b;
	const char *at = NULL, *from;
	int twice = 0, mixed = 0;

	while (json_slab(process, &at, &a)) {
		from = at;
		while (json_slab(process, &from, &b)) {
			twice += a.address == b.address && a.generation != b.generation;
			mixed += a.address == b.address && a.generation == b.generation;
		}
	}
	check(twice > 0 && mixed == 0,
	      "slabs that were born again have rows of their own (%d, %d mixed up)", twice, mixed);
}

static void run_on(int node)
{
	own_node = node;
	pin_cpu(cpu_of_node(node));
}

static void matrix(const char *tier)
{
	run_on(2); /* where no user is: what we touch ourselves is no user's */
	pattern_init(&patterns[0], 192, 1, 0);
	pattern_init(&patterns[1], 768, 2, 3);
	pattern_init(&patterns[2], 3072, 3, 1);
	await_publication();
	watch_use(tier, tier);
	/* The same memory again, as other classes and for other users, in one session. */
	char pid[16];
	const char *args[] = {"--tier", tier, "-p", pid, NULL};
	long before[3];

	snprintf(pid, sizeof(pid), "%d", getpid());
	companion_start(args);
	trace_start();
	memset(patterns[0].faults, 0, sizeof(patterns[0].faults));
	memset(patterns[1].faults, 0, sizeof(patterns[1].faults));
	memset(patterns[2].faults, 0, sizeof(patterns[2].faults));
	use_all();
	trace_stop(see);
	for (int k = 0; k < 3; k++) {
		before[k] = patterns[k].faults[patterns[k].user];
		run(release, &patterns[k]);
	}
	trace_start(); /* births touch their pages, too */
	run_on(3);
	pattern_init(&patterns[0], 384, 1, 2);
	pattern_init(&patterns[1], 1536, 2, 0);
	pattern_init(&patterns[2], 96, 3, 2);
	owners_make();
	use_all();
	trace_stop(see);
	check(companion_stop() == 0, "born again: the companion ends well");
	compare_matrix("born again");
	const char *process = json_process(getpid());
	for (int k = 0; process && k < 3; k++) {
		static const size_t size[] = {192, 768, 3072};
		static const int home[] = {1, 2, 3}, user[] = {0, 3, 1};
		long long ours = cell_faults(process, size[k], home[k], user[k]);

		/* The allocator itself touches some when the memory changes hands. */
		check(ours >= before[k] && ours <= before[k] + 64,
		      "born again: class %zu, which was there before, keeps its own: %lld of %ld",
		      size[k], ours, before[k]);
	}
	if (process)
		compare_generations(process);
}

int main(int argc, char **argv)
{
	guest_start();
	if (argc >= 5 && !strcmp(argv[1], "counts"))
		counts(argv[2], atoi(argv[3]), atol(argv[4]),
		       argc > 5 && !strcmp(argv[5], "stopped"),
		       argc > 5 && !strcmp(argv[5], "huge"));
	else if (argc == 3 && !strcmp(argv[1], "matrix"))
		matrix(argv[2]);
	else
		die("usage: hints counts TIER MIB SECONDS | matrix TIER");
	return 0;
}
