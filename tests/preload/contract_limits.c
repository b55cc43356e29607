/* SPDX-License-Identifier: MIT */
/* Limits: a clean NULL or a quiet fallback, recovery, and memory that goes back. */
#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB (1ul << 20)

static void limit(int what, rlim_t value)
{
	struct rlimit r = {value, value};

	if (setrlimit(what, &r))
		skip("setrlimit: %s", strerror(errno));
}

/* A list whose links lie in the blocks, so that an exhausted process needs nothing else. */
struct link {
	struct link *next;
	size_t size;
};

static size_t grab_all(struct link **list, size_t size, size_t most)
{
	size_t total = 0;

	while (total < most) {
		struct link *p;

		errno = 0;
		p = malloc(size);
		if (!p) {
			CHECK_EQ(errno, ENOMEM);
			break;
		}
		block_fill(p + 1, size - sizeof(*p));
		p->next = *list;
		p->size = size;
		*list = p;
		total += size;
	}
	return total;
}

static void release_all(struct link **list)
{
	while (*list) {
		struct link *p = *list;

		if (!block_holds(p + 1, p->size - sizeof(*p)))
			fail("a block of %zu bytes was overwritten", p->size);
		*list = p->next;
		free(p);
	}
}

/* To the end and back, in several sizes; at least `enough` bytes must be there each time. */
static void exhaust(size_t enough, size_t most)
{
	static const size_t sizes[] = {100, 40000, 9 << 20, 64};
	struct link *list = NULL;

	for (int i = 0; i < 4; i++) {
		size_t got = grab_all(&list, sizes[i], most);

		CHECK(calloc(1, most) == NULL && errno == ENOMEM);
		CHECK(realloc(list, most) == NULL && errno == ENOMEM);
		if (got < enough)
			fail("only %zu KiB in blocks of %zu", got >> 10, sizes[i]);
		release_all(&list);
	}
}

/* --- resource limits --------------------------------------------------------------------------- */

static void as_128m(void)
{
	limit(RLIMIT_AS, 128 * MIB);
}

static void data_128m(void)
{
	limit(RLIMIT_DATA, 128 * MIB);
}

static void as_24m(void)
{
	limit(RLIMIT_AS, 24 * MIB);
}

static void data_4m(void)
{
	limit(RLIMIT_DATA, 4 * MIB);
}

static void exhaust_128m(void)
{
	exhaust(64 * MIB, 1024 * MIB);
}

static void exhaust_later(void)
{
	exercise(20, 1);
	as_128m();
	/* What was reserved at start counts too: the limit may leave nothing new, but no crash. */
	exhaust(0, 1024 * MIB);
	data_128m();
	exhaust(0, 1024 * MIB);
}

static void small_process(void)
{
	struct link *list = NULL;

	for (int i = 0; i < 3; i++) {
		CHECK(grab_all(&list, 500, MIB) == (MIB + 499) / 500 * 500);
		release_all(&list);
	}
}

static void *exhaust_thread(void *gate)
{
	struct link *list = NULL;

	for (int i = 0; i < 5; i++) {
		grab_all(&list, 1000 + 50000 * (i & 1), 400 * MIB);
		pthread_barrier_wait(gate);
		release_all(&list);
		pthread_barrier_wait(gate);
	}
	return NULL;
}

static void exhaust_threads(void)
{
	pthread_barrier_t gate;
	pthread_t threads[3];

	pthread_barrier_init(&gate, NULL, 3);
	for (int i = 0; i < 3; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, exhaust_thread, &gate), 0);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	exhaust(24 * MIB, 1024 * MIB);
}

static void fork_exhausted(void)
{
	struct link *list = NULL;
	struct outcome *out = mmap(NULL, sizeof(*out), PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pid_t pid;

	CHECK(out != MAP_FAILED);
	grab_all(&list, 5000, 1024 * MIB);
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		release_all(&list);
		exhaust(24 * MIB, 1024 * MIB);
		_exit(0);
	}
	CHECK(waitpid(pid, &out->status, 0) == pid);
	CHECK_EQ(out->status, 0);
	release_all(&list);
}

static void fsize_0(void)
{
	limit(RLIMIT_FSIZE, 0);
}

/* Standard ones and the one that ld.so needs. */
static void nofile_4(void)
{
	limit(RLIMIT_NOFILE, 4);
}

static void work(void)
{
	exercise(100, 1);
	malloc_trim(0);
	exercise(50, 2);
}

static void limits_in_main(void)
{
	exercise(5, 1);
	limit(RLIMIT_FSIZE, 0);
	limit(RLIMIT_NOFILE, 0);
	limit(RLIMIT_NPROC, 0);
	limit(RLIMIT_SIGPENDING, 0);
	work();
}

static void lock_user(void)
{
	struct rlimit r;

	getrlimit(RLIMIT_MEMLOCK, &r);
	limit(RLIMIT_MEMLOCK, r.rlim_max < 64 * MIB ? r.rlim_max : 64 * MIB);
	if (!become_nobody())
		skip("cannot leave root");
}

/* Without privilege: what is there can be locked, what comes is refused when it is too much. */
static void mlockall_limited(void)
{
	struct link *list = NULL;
	struct rlimit r;

	getrlimit(RLIMIT_MEMLOCK, &r);
	free(malloc(100));
	if (mlockall(MCL_CURRENT))
		fail("mlockall(MCL_CURRENT) under %zu KiB: %s", (size_t)r.rlim_cur >> 10,
		     strerror(errno));
	CHECK_EQ(munlockall(), 0);
	if (mlockall(MCL_CURRENT | MCL_FUTURE))
		fail("mlockall(MCL_CURRENT|MCL_FUTURE): %s", strerror(errno));
	for (int i = 0; i < 3; i++) {
		size_t got = grab_all(&list, i == 1 ? 70000 : 500, 256 * MIB);

		if (got < r.rlim_cur / 8)
			fail("only %zu KiB of %zu", got >> 10, (size_t)r.rlim_cur >> 10);
		release_all(&list);
	}
}

/* With privilege: it must not try to make a window of 1 TiB resident. */
static void mlockall_root(void)
{
	size_t before = rss_kib();

	if (geteuid())
		skip("not root");
	exercise(2, 1);
	if (mlockall(MCL_CURRENT | MCL_FUTURE))
		fail("mlockall: %s", strerror(errno));
	if (rss_kib() > before + 64 * 1024)
		fail("mlockall makes %zu KiB resident", rss_kib());
	work();
}

/* --- overcommit_memory=2 ------------------------------------------------------------------------- */

#define OVERCOMMIT "/proc/sys/vm/overcommit_memory"
#define COMMIT_KB  "/proc/sys/vm/overcommit_kbytes"

static long meminfo(const char *key)
{
	char text[4096], *at;
	int fd = open("/proc/meminfo", O_RDONLY | O_CLOEXEC);
	ssize_t n = read(fd, text, sizeof(text) - 1);

	close(fd);
	text[n > 0 ? n : 0] = 0;
	at = strstr(text, key);
	return at ? strtol(at + strlen(key), NULL, 10) : -1;
}

static void strict_child(void *arg)
{
	char *args[] = {(char *)dir_file("contract_limits"), "--run", arg, NULL};

	execv(args[0], args);
	_exit(127);
}

/* The whole machine is strict for a moment, with 4 GiB to spare, however this ends. */
static void under_strict(const char *name)
{
	struct outcome out;
	long old = read_number(OVERCOMMIT), old_kb = read_number(COMMIT_KB);
	long old_ratio = read_number("/proc/sys/vm/overcommit_ratio");
	char text[32];
	sigset_t all;

	if (old < 0 || access(OVERCOMMIT, W_OK))
		skip("may not set vm.overcommit_memory");
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	snprintf(text, sizeof(text), "%ld", meminfo("Committed_AS:") + (4l << 20));
	if (!write_text(COMMIT_KB, text) || !write_text(OVERCOMMIT, "2"))
		skip("may not set vm.overcommit_memory");
	run_function(&out, strict_child, (void *)name);
	snprintf(text, sizeof(text), "%ld", old);
	write_text(OVERCOMMIT, text);
	snprintf(text, sizeof(text), "%ld", old_kb ? old_kb : old_ratio);
	write_text(old_kb ? COMMIT_KB : "/proc/sys/vm/overcommit_ratio", text);
	if (out.status)
		fail("%s %s", status_text(out.status), out.text);
}

static void overcommit_exhaust(void)
{
	under_strict("strict_exhaust");
}

static void overcommit_release(void)
{
	under_strict("strict_release");
}

static void strict_exhaust(void)
{
	/* Take what is to spare but 300 MiB, so that little is touched and others live on. */
	size_t big = (size_t)(meminfo("CommitLimit:") - meminfo("Committed_AS:")) * 1024;
	void *filler;

	CHECK(big > 600 * MIB);
	filler = mmap(NULL, big - 300 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		      -1, 0);
	CHECK(filler != MAP_FAILED);
	exhaust(50 * MIB, 2048 * MIB);
}

static void strict_release(void)
{
	struct link *list = NULL;
	long before, during, after;

	before = meminfo("Committed_AS:");
	grab_all(&list, 1000, 1024 * MIB);
	during = meminfo("Committed_AS:");
	CHECK(during - before > 900 * 1024);
	release_all(&list);
	malloc_trim(0);
	after = meminfo("Committed_AS:");
	if (after - before > 300 * 1024)
		fail("%ld of %ld KiB stay committed after free", after - before, during - before);
}

/* --- max_map_count ---------------------------------------------------------------------------------- */

static char *maps_area;
static size_t maps_size;

static void use_up_maps(void)
{
	size_t page = sysconf(_SC_PAGESIZE);
	long most = read_number("/proc/sys/vm/max_map_count");

	if (most < 0 || most > 300000)
		skip("vm.max_map_count is %ld", most);
	maps_size = (most + 10) * 2 * page;
	maps_area = mmap(NULL, maps_size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
			 0);
	CHECK(maps_area != MAP_FAILED);
	for (size_t at = 0; at < maps_size; at += 2 * page)
		if (mprotect(maps_area + at, page, PROT_READ)) {
			CHECK_EQ(errno, ENOMEM);
			return;
		}
	fail("vm.max_map_count could not be used up");
}

static void max_map_count(void)
{
	enum { N = 400 };
	void *large[N], *small[N];
	struct link *list = NULL;

	for (int i = 0; i < N; i++) {
		large[i] = malloc((100 << 10) + i * 5000);
		small[i] = malloc(i * 20 + 1);
		memset(large[i], 1, 100 << 10);
	}
	use_up_maps();
	for (int i = 0; i < N; i++) { /* every other one: munmap would have to split */
		errno = 4242;
		if (i & 1)
			free(large[i]);
		free(small[i]);
		CHECK_EQ(errno, 4242);
	}
	for (int round = 0; round < 3; round++) {
		grab_all(&list, 200, 16 * MIB);
		grab_all(&list, 9000, 64 * MIB);
		grab_all(&list, 1 << 20, 64 * MIB);
		for (int i = 0; i < N; i += 2) {
			void *p = realloc(large[i], (100 << 10) + i * 9000);

			if (p)
				large[i] = p;
			CHECK(*(char *)large[i] == 1);
		}
		release_all(&list);
		malloc_trim(0);
	}
	CHECK_EQ(munmap(maps_area, maps_size), 0);
	for (int i = 0; i < N; i += 2)
		free(large[i]);
	CHECK(grab_all(&list, 1 << 20, 64 * MIB) >= 64 * MIB);
	release_all(&list);
	exercise(50, 3);
}

/* --- system calls that fail --------------------------------------------------------------------------- */

static const int memory_calls[] = {
	SYS_mmap,   SYS_munmap, SYS_madvise,	   SYS_mprotect,   SYS_mremap,
	SYS_mbind,  SYS_get_mempolicy, SYS_move_pages, SYS_membarrier,
};

struct refused {
	const int *calls;
	int count, error;
	struct link *list;
	pthread_barrier_t gate;
};

/* A filter of this thread alone: the others see what it leaves behind. */
static void *refused_thread(void *arg)
{
	struct refused *r = arg;
	struct link *mine = NULL;

	grab_all(&mine, 3000, 8 * MIB);
	grab_all(&mine, 300000, 16 * MIB);
	filter_calls(SECCOMP_RET_ERRNO | r->error, r->calls, r->count);
	grab_all(&r->list, 100, 4 * MIB);
	grab_all(&r->list, 20000, 16 * MIB);
	grab_all(&r->list, 2 << 20, 32 * MIB);
	errno = 4242;
	free(mine->next ? NULL : mine);
	for (struct link *next; mine; mine = next) {
		next = mine->next;
		free(mine);
		CHECK_EQ(errno, 4242);
	}
	malloc_trim(0);
	for (size_t size = 10; size < (4ul << 20); size *= 3) {
		char *p = realloc(NULL, size), *q;

		if (!p)
			continue;
		memset(p, 1, size);
		q = realloc(p, size * 3);
		p = q ? q : p;
		CHECK(p[0] == 1 && p[size - 1] == 1);
		free(p);
		p = calloc(1, size);
		for (size_t i = 0; p && i < size; i++)
			CHECK(!p[i]);
		free(p);
	}
	pthread_barrier_wait(&r->gate);
	pthread_barrier_wait(&r->gate);
	return NULL;
}

static void refuse(const int *calls, int count, int error)
{
	struct refused r = {.calls = calls, .count = count, .error = error};
	struct link *list = NULL;
	pthread_t thread;

	pthread_barrier_init(&r.gate, NULL, 2);
	CHECK_EQ(pthread_create(&thread, NULL, refused_thread, &r), 0);
	pthread_barrier_wait(&r.gate);
	CHECK(grab_all(&list, 1000, 32 * MIB) >= 32 * MIB); /* recovered, elsewhere */
	release_all(&r.list);
	exercise(2, 4);
	release_all(&list);
	pthread_barrier_wait(&r.gate);
	pthread_join(thread, NULL);
	exercise(2, 5);
	malloc_trim(0);
}

static void refused_each(void)
{
	static const int errors[] = {ENOMEM, EAGAIN, EPERM};

	for (size_t i = 0; i < sizeof(memory_calls) / sizeof(memory_calls[0]); i++) {
		for (int e = 0; e < 3; e++) {
			struct outcome *out = calloc(1, sizeof(*out));
			pid_t pid = fork();

			if (!pid) {
				refuse(&memory_calls[i], 1, errors[e]);
				_exit(0);
			}
			waitpid(pid, &out->status, 0);
			if (out->status)
				fail("system call %d refused with %s: %s", memory_calls[i],
				     strerrorname_np(errors[e]), status_text(out->status));
			free(out);
		}
	}
}

static void refused_all(void)
{
	refuse(memory_calls, sizeof(memory_calls) / sizeof(memory_calls[0]), ENOMEM);
}

/* --- memory goes back ------------------------------------------------------------------------------------- */

enum { MANY = 600000 };
static void **many; /* not in .bss, which RLIMIT_DATA and mlockall count */

static void make_many(void)
{
	many = mmap(NULL, MANY * sizeof(*many), PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	CHECK(many != MAP_FAILED);
}

static void shuffle(uint64_t seed)
{
	for (int i = MANY - 1; i > 0; i--) {
		int k = random_next(&seed) % (i + 1);
		void *p = many[i];

		many[i] = many[k];
		many[k] = p;
	}
}

static void fill_many(size_t *before, size_t *peak)
{
	uint64_t seed = 17;

	if (!many)
		make_many();
	free(malloc(100));
	*before = anon_kib();
	for (int i = 0; i < MANY; i++) {
		size_t size = i % 5000 ? 16 + random_next(&seed) % 1000 : 20000 + (size_t)i;

		memset(many[i] = malloc(size), 1, size);
	}
	*peak = anon_kib() - *before;
	CHECK(*peak > 250 * 1024);
}

static void check_back(size_t before, size_t peak, const char *what)
{
	size_t now = anon_kib(), stays = now > before ? now - before : 0;

	if (stays > (peak / 64 > 1024 ? peak / 64 : 1024))
		fail("%s: %zu of %zu KiB stay", what, stays, peak);
}

static void back_order(int order)
{
	size_t before, peak;

	fill_many(&before, &peak);
	if (order == 2)
		shuffle(3);
	for (int i = 0; i < MANY; i++)
		free(many[order == 1 ? MANY - 1 - i : i]);
	check_back(before, peak, "after free");
}

static void back_fifo(void)
{
	back_order(0);
}

static void back_lifo(void)
{
	back_order(1);
}

static void back_shuffled(void)
{
	back_order(2);
}

static void *free_quarter(void *at)
{
	for (int i = 0; i < MANY / 4; i++)
		free(((void **)at)[i]);
	return NULL;
}

static void back_threads(void)
{
	size_t before, peak;
	pthread_t threads[4];

	fill_many(&before, &peak);
	for (int i = 0; i < 4; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, free_quarter, many + i * (MANY / 4)), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	malloc_trim(0);
	check_back(before, peak, "after free by other threads and malloc_trim");
}

/* Habit must not change it: filled and emptied many times, by threads that come and go. */
static void *fill_quarter(void *at)
{
	for (int i = 0; i < MANY / 16; i++)
		memset(((void **)at)[i] = malloc(16 + i * 7 % 500), 1, 16);
	return NULL;
}

static void *empty_quarter(void *at)
{
	for (int i = 0; i < MANY / 16; i++)
		free(((void **)at)[i]);
	return NULL;
}

static void back_rounds(void)
{
	size_t before, peak = 0;
	pthread_t thread;

	make_many();
	free(malloc(100));
	before = anon_kib();
	for (int round = 0; round < 40; round++) {
		for (int i = 0; i < 8; i++) {
			CHECK_EQ(pthread_create(&thread, NULL, i < 4 ? fill_quarter : empty_quarter,
						many + i % 4 * (MANY / 4)),
				 0);
			pthread_join(thread, NULL);
			if (i == 3)
				peak = anon_kib() - before;
		}
	}
	check_back(before, peak, "after 40 rounds");
}

static void back_large(void)
{
	size_t before, peak;

	make_many();
	free(malloc(100));
	before = anon_kib();
	for (int i = 0; i < 300; i++)
		memset(many[i] = malloc(MIB + i * 4096), 1, MIB);
	peak = anon_kib() - before;
	for (int i = 0; i < 300; i++)
		free(many[i]);
	check_back(before, peak, "large blocks");
}

/* Nine in ten freed at random, then trimmed: whole pages of large objects go back. */
static void back_partly(void)
{
	enum { N = 30000 };
	size_t before, peak, now;
	uint64_t seed = 5;

	make_many();
	before = anon_kib();
	for (int i = 0; i < N; i++)
		memset(many[i] = malloc(9000), 1, 9000);
	peak = anon_kib() - before;
	for (int i = 0; i < N; i++)
		if (random_next(&seed) % 10)
			free(many[i]);
	malloc_trim(0);
	now = anon_kib() - before;
	if (now > peak / 2)
		fail("%zu of %zu KiB stay with a tenth of the objects", now, peak);
}

/* The machine sees it too, with transparent huge pages wherever they are on.  Others use the
 * machine as well, so that one of several tries is enough; memory kept shows in none. */
static void back_to_machine(void)
{
	long got = 0;

	for (int try = 0; try < 5; try++) {
		size_t before, peak;
		long at_peak;

		fill_many(&before, &peak);
		at_peak = meminfo("MemAvailable:");
		for (int i = 0; i < MANY; i++)
			free(many[i]);
		malloc_trim(0);
		got = meminfo("MemAvailable:") - at_peak;
		if (got > (long)peak * 4 / 5)
			return;
	}
	fail("of 340 MiB freed the machine got %ld KiB", got);
}

const struct test tests[] = {
	{.name = "as_limit", .run = exhaust_128m, .before = as_128m, .timeout = 60},
	{.name = "data_limit", .run = exhaust_128m, .before = data_128m, .timeout = 60},
	{.name = "limits_set_later", .run = exhaust_later, .timeout = 60},
	{.name = "as_small", .run = small_process, .before = as_24m},
	{.name = "data_small", .run = small_process, .before = data_4m},
	{.name = "as_limit_threads", .run = exhaust_threads, .before = as_128m, .timeout = 60},
	{.name = "as_limit_fork", .run = fork_exhausted, .before = as_128m, .timeout = 60},
	{.name = "fsize_0", .run = work, .before = fsize_0, .env = {"NUMASLAB_PUBLISH_AFTER_MS=0"}},
	{.name = "nofile_4", .run = work, .before = nofile_4},
	{.name = "limits_in_main", .run = limits_in_main},
	{.name = "mlockall_limited", .run = mlockall_limited, .before = lock_user},
	{.name = "mlockall_root", .run = mlockall_root},
	{.name = "overcommit_exhaust", .run = overcommit_exhaust, .timeout = 60},
	{.name = "overcommit_release", .run = overcommit_release, .timeout = 60},
	{.name = "strict_exhaust", .run = strict_exhaust, .part = true},
	{.name = "strict_release", .run = strict_release, .part = true},
	{.name = "max_map_count", .run = max_map_count, .timeout = 60},
	{.name = "refused_each", .run = refused_each, .timeout = 120},
	{.name = "refused_all", .run = refused_all},
	{.name = "back_fifo", .run = back_fifo, .timeout = 60},
	{.name = "back_lifo", .run = back_lifo, .timeout = 60},
	{.name = "back_shuffled", .run = back_shuffled, .timeout = 60},
	{.name = "back_threads", .run = back_threads, .timeout = 60},
	{.name = "back_rounds", .run = back_rounds, .timeout = 60},
	{.name = "back_large", .run = back_large},
	{.name = "back_partly", .run = back_partly},
	{.name = "back_to_machine", .run = back_to_machine, .timeout = 60},
	{.name = NULL},
};
