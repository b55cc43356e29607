/* SPDX-License-Identifier: MIT */
/*
 * A process in placement `home`, and numaslab hints beside it.
 *
 *	hinted masked		no hint faults on the heap, and it says why
 *	hinted observe N	all under observation, then 1 in N: the same shares; nothing moves
 *	hinted killed		the companion is killed: nothing stays attached, the lease ends
 *	hinted silent		who does not allocate does not take it up; and that is said
 *
 * Each class has a home; each of its pages is used by one of two threads, at home or elsewhere, by
 * the page's number: the remote share of each class is known.
 */
#include "tests/vm/companion.h"
#include "tests/vm/guest.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define CLASSES	  3
#define BYTES	  (24ul << 20) /* of a class: a dozen chunks */
#define FULL_TIME 25
#define SAMPLES	  2
#define PATIENCE  500 /* seconds; software emulation on shared cores */

static struct use {
	size_t size, count;
	int home, away;
	unsigned of_4; /* pages of four that are used from away */
	void **object;
	int *landed;
	pthread_barrier_t turn;
	bool last; /* written at home, between two turns */
} uses[CLASSES] = {
    {.size = 160, .home = 1, .away = 0, .of_4 = 1},
    {.size = 640, .home = 2, .away = 3, .of_4 = 2},
    {.size = 2560, .home = 3, .away = 0, .of_4 = 3},
};
static atomic_bool stop;
static bool quiet; /* does not allocate */

static bool is_away(const struct use *u, const void *at)
{
	return (uintptr_t)at / GUEST_PAGE % 4 < u->of_4;
}

static void *allocate(void *arg)
{
	struct use *u = arg;

	pin_cpu(cpu_of_node(u->home));
	u->count = BYTES / u->size;
	u->object = map_pages(u->count * sizeof(void *), u->home);
	u->landed = map_pages(u->count * sizeof(int), u->home);
	for (size_t i = 0; i < u->count; i++) {
		u->object[i] = malloc(u->size);
		if (!u->object[i])
			die("malloc(%zu)", u->size);
		memset(u->object[i], 1, u->size);
	}
	return NULL;
}

/* Both as often, however the CPUs are shared: else the slower one's pages take fewer faults. */
static void go_over(struct use *u, bool away)
{
	for (;;) {
		if (!away)
			u->last = stop;
		pthread_barrier_wait(&u->turn);
		if (u->last)
			return;
		for (size_t i = 0; i < u->count; i++)
			if (is_away(u, u->object[i]) == away)
				(*(volatile char *)u->object[i])++;
		/* What the library does in slow paths must get its turns. */
		for (int i = 0; i < 100 && !quiet; i++)
			free(malloc(100 + i * 200));
		pthread_barrier_wait(&u->turn);
	}
}

static void *at_home(void *arg)
{
	struct use *u = arg;

	pin_cpu(cpu_of_node(u->home));
	go_over(u, false);
	return NULL;
}

static void *away(void *arg)
{
	struct use *u = arg;

	pin_cpu(cpu_of_node(u->away));
	go_over(u, true);
	return NULL;
}

static pthread_t threads[2 * CLASSES];

static void begin_use(void)
{
	stop = false;
	for (int i = 0; i < CLASSES; i++)
		if (pthread_barrier_init(&uses[i].turn, NULL, 2) ||
		    pthread_create(&threads[2 * i], NULL, at_home, &uses[i]) ||
		    pthread_create(&threads[2 * i + 1], NULL, away, &uses[i]))
			die("a thread");
}

static void end_use(void)
{
	stop = true;
	for (int i = 0; i < 2 * CLASSES; i++)
		pthread_join(threads[i], NULL);
}

static void prepare(void)
{
	for (int i = 0; i < CLASSES; i++)
		if (pthread_create(&threads[i], NULL, allocate, &uses[i]) ||
		    pthread_join(threads[i], NULL))
			die("a thread");
	await_publication();
	for (int i = 0; i < CLASSES; i++)
		landing(uses[i].object, uses[i].count, uses[i].landed);
}

static long changed(void)
{
	int *now = map_pages(BYTES / uses[0].size * sizeof(int), -1);
	long count = 0;

	for (int k = 0; k < CLASSES; k++) {
		landing(uses[k].object, uses[k].count, now);
		for (size_t i = 0; i < uses[k].count; i++)
			count += now[i] != uses[k].landed[i];
	}
	return count;
}

/* Until so many samples have had their turn: the last of them is not over. */
static void await_samples(int count)
{
	uint64_t last = 0, now;
	int seen = 0;

	for (double end = seconds() + PATIENCE; seconds() < end && seen <= count; usleep(100000)) {
		now = observed_request();
		seen += now && now != last;
		last = now ? now : last;
	}
}

/* The companion beside the use, for so long (0: until SAMPLES were observed); the process's part
 * of its document. */
static const char *watch(double time, const char *observe)
{
	char pid[16];
	const char *args[] = {"-p", pid, observe ? "--observe" : NULL, observe, NULL};
	double end;

	snprintf(pid, sizeof(pid), "%d", getpid());
	if (quiet)
		begin_use(); /* threads that begin allocate */
	companion_start(args);
	if (!quiet)
		begin_use();
	for (end = seconds() + time; seconds() < end;)
		usleep(100000);
	if (time == 0)
		await_samples(SAMPLES);
	end_use();
	check(companion_stop() == 0, "%s: the companion ends well", observe ? observe : "home");
	const char *process = json_process(getpid());
	if (!process)
		die("this process is in the document");
	return process;
}

static void masked(void)
{
	char output[65536];

	prepare();
	const char *process = watch(6, NULL);
	check(json_has(process, "masked", "true") && json_has(process, "placement", "\"home\""),
	      "masked by policy, it says");
	const char *slab = strstr(process, "\"slab\":{");
	check(json_number(slab, "faults") == 0, "no hint fault on a slab");
	check(json_number(NULL, "faults") > 0, "elsewhere there are some, so this tells (%lld)",
	      json_number(NULL, "faults"));
	snprintf(output, sizeof(output), "LD_PRELOAD= numaslab hints -d 0.3 -p %d 2>&1", getpid());
	FILE *p = popen(output, "re");
	size_t n = p ? fread(output, 1, sizeof(output) - 1, p) : 0;
	output[n] = 0;
	check(p && pclose(p) == 0 && strstr(output, "masked by policy") &&
		  strstr(output, "--observe"),
	      "for people, too, and how to observe");
}

struct share {
	double remote; /* per cent */
	long long faults;
};

static struct share share_of(const char *process, const struct use *u)
{
	struct share s = {0};
	struct cell c;
	const char *at = NULL;
	long long remote = 0;

	while (json_cell(process, &at, &c)) {
		if (strcmp(c.kind, "slab") != 0 || c.size != (long long)u->size)
			continue;
		s.faults += c.faults;
		remote += c.remote;
	}
	s.remote = s.faults ? 100.0 * remote / s.faults : -1;
	return s;
}

static void see_observation(const char *process, const char *what)
{
	const char *o = strstr(process, "\"observation\":{");

	if (!check(o && json_has(o, "acknowledged", "true"), "%s: it is taken up", what))
		return;
	note("%s: %lld samples, %lld bytes now, %lld passes; %lld entries, %lld faults, %lld ms",
	     what, json_number(o, "seeds"), json_number(o, "observed_bytes"),
	     json_number(o, "passes"), json_number(o, "pte_updates"), json_number(o, "hint_faults"),
	     json_number(o, "system_ms"));
	check(json_number(o, "pte_updates") > 0 && json_number(o, "hint_faults") > 0,
	      "%s: its cost is told", what);
}

static void observe(const char *n)
{
	struct share full[CLASSES], part[CLASSES];
	char sample[24];

	snprintf(sample, sizeof(sample), "1/%s", n);
	prepare();
	const char *process = watch(FULL_TIME, "1/1");
	see_observation(process, "1/1");
	for (int i = 0; i < CLASSES; i++)
		full[i] = share_of(process, &uses[i]);
	process = watch(0, sample);
	see_observation(process, sample);
	for (int i = 0; i < CLASSES; i++)
		part[i] = share_of(process, &uses[i]);
	for (int i = 0; i < CLASSES; i++) {
		double known = 25.0 * uses[i].of_4;

		check(full[i].faults > 500 && full[i].remote > known - 10 &&
			  full[i].remote < known + 10,
		      "all: class %zu is %.0f %% remote (%.1f of %lld faults)", uses[i].size, known,
		      full[i].remote, full[i].faults);
		check(part[i].faults > 100 && part[i].remote > full[i].remote - 10 &&
			  part[i].remote < full[i].remote + 10,
		      "%s: class %zu: %.1f %% of %lld faults, within 10 points of %.1f", sample,
		      uses[i].size, part[i].remote, part[i].faults, full[i].remote);
	}
	const char *o = strstr(process, "\"observation\":{");
	check(o && json_number(o, "seeds") > SAMPLES, "%s: %d samples had their turn", sample,
	      SAMPLES);
	check(changed() == 0, "no heap page changed node");
}

static bool is_attached(void)
{
	static char text[1 << 20];
	int fd = open("/sys/kernel/tracing/enabled_functions", O_RDONLY | O_CLOEXEC);
	size_t used = 0;
	ssize_t n;

	if (fd < 0)
		die("the list of traced functions: %m");
	while ((n = read(fd, text + used, sizeof(text) - 1 - used)) > 0)
		used += n;
	close(fd);
	text[used] = 0;
	return strstr(text, "task_numa_fault") != NULL;
}

static long heap_faults;

static void see(int tid, int cpu, uint64_t address)
{
	(void)tid;
	(void)cpu;
	for (int i = 0; i < CLASSES; i++)
		heap_faults += address >= ((uintptr_t)uses[i].object[0] & -(1ul << 30)) &&
			       address < ((uintptr_t)uses[i].object[0] | ((1ul << 30) - 1));
}

static long faults_for(double time)
{
	heap_faults = 0;
	if (!trace_start())
		die("hint faults can be traced");
	for (double end = seconds() + time; seconds() < end;)
		usleep(100000);
	trace_stop(see);
	return heap_faults;
}

static void killed(void)
{
	char pid[16];
	const char *args[] = {"--tier", "fentry", "-p", pid, "--observe", "1/1", NULL};
	long before = 0, after = -1;

	snprintf(pid, sizeof(pid), "%d", getpid());
	prepare();
	companion_start(args);
	check(is_attached(), "while it runs, a probe is attached: so this tells");
	begin_use();
	for (int i = 0; i < 40 && before < 500; i++)
		before += faults_for(2);
	check(before >= 500, "under observation the heap takes hint faults (%ld)", before);
	kill(companion_pid(), SIGKILL);
	waitpid(companion_pid(), NULL, 0);
	for (double end = seconds() + PATIENCE; seconds() < end && is_attached();)
		usleep(100000); /* the kernel frees links when it comes to it */
	check(!is_attached(), "the companion is killed: nothing stays attached");
	for (double end = seconds() + PATIENCE; seconds() < end && after != 0;)
		after = faults_for(2);
	end_use();
	check(after == 0, "and observation ends by itself (%ld faults)", after);
}

static void silent(void)
{
	quiet = true;
	prepare();
	const char *process = watch(9, "1/4");
	const char *o = strstr(process, "\"observation\":{");

	check(o && json_has(o, "acknowledged", "false"), "not taken up, it says");
	check(strstr(process, "it is not allocating") != NULL, "and why");
}

int main(int argc, char **argv)
{
	guest_start();
	if (argc == 2 && !strcmp(argv[1], "masked"))
		masked();
	else if (argc == 3 && !strcmp(argv[1], "observe"))
		observe(argv[2]);
	else if (argc == 2 && !strcmp(argv[1], "killed"))
		killed();
	else if (argc == 2 && !strcmp(argv[1], "silent"))
		silent();
	else
		die("usage: hinted masked | observe N | killed | silent");
	return 0;
}
