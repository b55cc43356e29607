/* SPDX-License-Identifier: MIT */
/*
 * The control file: what becomes of any value in it, torn ones too, what the header says back, and
 * that no file that its user cuts takes the program with it.
 */
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "tests/telemetry/fake.h"
#include "tests/telemetry/folder.h"
#include "tests/telemetry/tap.h"

static char path[600], control_path[620];
static struct ring_control *control;
static struct ring_header *header;
static uint64_t now = 1000000;

static void *map_file(const char *name, int flags, int prot)
{
	int fd = open(name, flags);
	void *at = fd < 0 ? MAP_FAILED : mmap(NULL, 4096, prot, MAP_SHARED, fd, 0);

	close(fd);
	return at;
}

static bool find_files(const char *dir)
{
	struct dirent *e;
	DIR *d = opendir(dir);

	while (d && (e = readdir(d)))
		if (!strchr(e->d_name, '.'))
			snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
	if (d)
		closedir(d);
	snprintf(control_path, sizeof control_path, "%s.control", path);
	header = map_file(path, O_RDONLY, PROT_READ);
	control = map_file(control_path, O_RDWR, PROT_READ | PROT_WRITE);
	return header != MAP_FAILED && control != MAP_FAILED;
}

static void tick(void)
{
	telemetry_tick(++now);
}

static void set(uint64_t request, uint64_t lease_ms)
{
	control->request = request;
	control->lease_ms = lease_ms;
	tick();
}

static void is_there(void)
{
	struct stat st = {0};

	ok(stat(control_path, &st) == 0 && (st.st_mode & 07777) == 0600 && st.st_uid == geteuid(),
	   "it lies beside the file, mode 0600");
	ok(st.st_size >= (off_t)sizeof *control, "of its full size");
	tick();
	ok(fake_observe.request == 0, "empty, it asks for nothing");
}

static void leases(void)
{
	uint64_t request = (uint64_t)16 << 32 | 77;

	set(request, now + 5000);
	ok(fake_observe.request == request && fake_observe.end_ms == control->lease_ms,
	   "a request and its lease are passed on");
	ok(fake_observe.ticks > 0, "and a step is made at once");
	set(request, now + 1 + RING_LEASE_MS);
	ok(fake_observe.request == request, "60 s are allowed");
	set(request, now + 1 + RING_LEASE_MS + 200);
	ok(fake_observe.request == 0, "a longer lease counts as none");
	set(request, UINT64_MAX);
	ok(fake_observe.request == 0, "nor does one for ever");
	set(request, now + 1);
	ok(fake_observe.request == 0, "nor one that has just ended");
	set(request, now + 20);
	ok(fake_observe.request == request, "a short one");
	for (int i = 0; i < 20; i++)
		tick();
	ok(fake_observe.request == 0, "ends by itself");
	set(request, 0);
	ok(fake_observe.request == 0, "lease 0 takes a request back");
}

static void header_answers(void)
{
	fake_observe.report = (struct observe_report){
	    .request = (uint64_t)4 << 32 | 9, .bytes = 6 << 20, .how = OBSERVE_BIND};
	tick();
	ok(header->observe_request == ((uint64_t)4 << 32 | 9) &&
	       header->observed_bytes == 6 << 20 && header->observe_how == RING_OBSERVE_BIND,
	   "the header says what is done about it");
	fake_observe.report = (struct observe_report){.how = OBSERVE_NONE};
	tick();
	ok(header->observe_request == 0 && header->observed_bytes == 0 &&
	       header->observe_how == RING_OBSERVE_NONE,
	   "and when it is over");
}

static _Atomic bool done;

/* Words of any value, written while the other side reads. */
static void *scribble(void *arg)
{
	uint64_t random = 1;

	while (!atomic_load(&done))
		for (unsigned i = 0; i < sizeof *control / 8; i++) {
			random = random * 6364136223846793005u + 1442695040888963407u;
			ring_store((uint64_t *)control + i,
				   random >> 60 ? random : now + random % 70000);
		}
	return arg;
}

static void any_value(void)
{
	unsigned long wrong = 0, asked = fake_observe.asked, some = 0;
	pthread_t t;

	pthread_create(&t, NULL, scribble, NULL);
	for (long i = 0; i < 20000 || (some == 0 && i < 20000000); i++) {
		tick();
		if (i % 100 == 0)
			sched_yield();
		some += fake_observe.request != 0;
		wrong += fake_observe.request && (fake_observe.end_ms <= now ||
						  fake_observe.end_ms > now + RING_LEASE_MS + 100);
	}
	atomic_store(&done, true);
	pthread_join(t, NULL);
	ok(fake_observe.asked - asked >= 20000 && wrong == 0,
	   "whatever another process writes, no lease beyond 60 s comes through");
	ok(some > 0, "some of it was a lease (%lu)", some);
}

static void cut_files(void)
{
	char name[620];
	uint64_t before;

	set((uint64_t)1 << 32, now + 10000);
	ok(fake_observe.request != 0, "asked");
	if (truncate(control_path, 0) < 0)
		puts("# truncate failed");
	tick();
	ok(fake_observe.request == 0, "the control file was cut: nobody asks, no signal");
	if (truncate(control_path, 16) < 0)
		puts("# truncate failed");
	tick();
	ok(fake_observe.request == 0, "nor does a shorter one of zeros");
	snprintf(name, sizeof name, "%s.pins", path);
	before = header->head.entry;
	if (truncate(name, 0) < 0)
		puts("# truncate failed");
	for (int i = 0; i < 10; i++)
		tick();
	ok(header->head.entry == before + 10, "the file of pins was cut: the history goes on");
}

#if defined(__x86_64__)
/*
 * Cuts the file at the k-th instruction of a tick, for each k: no load of it is between two of
 * them.  (test_interleave.c does so with the pins.)
 */

#define TRAP_FLAG 0x100

static unsigned long step, cut_at;

static void cut(off_t length)
{
	if (truncate(control_path, length) < 0)
		abort();
}

static void on_trap(int number, siginfo_t *info, void *context)
{
	greg_t *flags = &((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL];

	(void)number, (void)info;
	if (step++ != cut_at)
		return;
	*flags &= ~(greg_t)TRAP_FLAG;
	cut(0);
}

/* A process of its own: without a history a tick is short. */
static int cut_at_any_instruction(const char *dir)
{
	struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};
	const struct rlimit limit = {128 << 10, 128 << 10};
	unsigned long asked = 0;
	bool more = true;

	setrlimit(RLIMIT_FSIZE, &limit);
	fake_init(2, dir);
	tick();
	if (!find_files(dir) || header->sections[RING_HISTORY - 1].count != 0)
		return 2;
	sigaction(SIGTRAP, &action, NULL);
	for (cut_at = 0; more; cut_at++) {
		cut(4096);
		control->request = (uint64_t)1 << 32;
		control->lease_ms = now + 1000;
		step = 0;
		__asm__ volatile("pushfq; orq $0x100, (%%rsp); popfq" ::: "memory", "cc");
		tick();
		__asm__ volatile("pushfq; andq $~0x100, (%%rsp); popfq" ::: "memory", "cc");
		more = step > cut_at;
		asked += fake_observe.request != 0;
	}
	printf("# at %lu instructions; in %lu of them it was asked before\n", cut_at, asked);
	fflush(stdout);
	return cut_at > 50 && asked > 10 && asked < cut_at ? 0 : 3;
}

static void in_another_process(const char *dir)
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0)
		_exit(cut_at_any_instruction(dir));
	ok(waitpid(pid, &status, 0) == pid && status == 0,
	   "cut at each instruction of a tick: no signal (status %#x)", (unsigned)status);
}
#else
static void in_another_process(const char *dir)
{
	(void)dir;
}
#endif

int main(void)
{
	const char *dir;
	char sub[80];

	if (!(dir = folder_make("/tmp/numaslab-control-XXXXXX")))
		return 1;
	snprintf(sub, sizeof sub, "%s/short", dir);
	in_another_process(sub);
	snprintf(sub, sizeof sub, "%s/files", dir);
	fake_init(2, sub);
	tick();
	if (ok(find_files(sub), "the files are there")) {
		is_there();
		leases();
		header_answers();
		any_value();
		cut_files();
	}
	int status = tap_end();
	folder_remove();
	_exit(status);
}
