/* SPDX-License-Identifier: MIT */
/*
 * An allocator (libc's) with one fault, named by $FAULT: tests/preload/mutants runs the contract
 * under it, and each subtest that is there to find the fault must fail.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/rseq.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *p, size_t size);
void *__libc_memalign(size_t align, size_t size);
void __libc_free(void *p);
int numaslab_stats(void *stats, int max);

static const char *const names[] = {
    "none", "errno", "dirty",  "usable", "print",  "fd",   "thread", "numa",   "files",	 "shm",
    "keep", "pid",   "twice",  "leak",	 "cpu",	   "maps", "stack",  "signal", "exit",	 "key",
    "zero", "posix", "dlopen", "crowd",	 "window", "copy", "alarm",  "share",  "advice", "rseq",
};
enum {
	NONE,
	ERRNO,
	DIRTY,
	USABLE,
	PRINT,
	FD,
	THREAD,
	NUMA,
	FILES,
	SHM,
	KEEP,
	PID,
	TWICE,
	LEAK,
	CPU,
	MAPS,
	STACK,
	SIGNAL,
	EXIT,
	KEY,
	ZERO,
	POSIX,
	DLOPEN,
	CROWD,
	WINDOW,
	COPY,
	ALARM,
	SHARE,
	ADVICE,
	RSEQ,
	FAULTS
};

extern char **environ;

static __thread char room[600]; /* too much for a library that may be loaded late */
static __thread int seen;
static atomic_long calls, frees, threads;
static void *last;
static pid_t owner;
static cpu_set_t cpus;
static pthread_key_t key;
static char *shared;
static int kept = -1, ended;

static int fault(void)
{
	static int which = -1;

	if (which < 0 && environ) {
		const char *name = getenv("FAULT");

		which = NONE;
		for (int i = 0; name && i < FAULTS; i++)
			if (!strcmp(name, names[i]))
				which = i;
	}
	return which < 0 ? NONE : which;
}

static void need(int good)
{
	if (!good)
		abort();
}

static void *pause_for_ever(void *unused)
{
	for (;;)
		pause();
	return unused;
}

static void thread_gone(void *unused)
{
	(void)unused;
	seen = -1;
}

static void touch_file(const char *path, int flags)
{
	int fd = open(path, flags | O_CLOEXEC, 0600);

	int other = dup(fd);

	need(fd >= 0 && other >= 0);
	close(fd);
	close(other);
}

/* Maps a file larger than what is granted, and writes a page further on each time. */
static void share_more(long n, const char *path)
{
	if (!shared) {
		int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);

		need(fd >= 0 && ftruncate(fd, 1 << 20) == 0);
		shared = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		need(shared != MAP_FAILED);
		close(fd);
		unlink(path);
	}
	shared[n * 64 % (1 << 20)]++;
}

static void ask_numa(void)
{
	int mode;

	need(syscall(SYS_get_mempolicy, &mode, NULL, 0, NULL, 0) == 0);
	need(syscall(SYS_membarrier, 0, 0, 0) >= 0);
	need(syscall(SYS_move_pages, 0, 0, NULL, NULL, NULL, 0) == 0);
	need(syscall(SYS_mbind, NULL, 0, 0, NULL, 0, 0) == 0);
}

static void use_stack(void)
{
	volatile char area[13000];

	for (unsigned i = 0; i < sizeof(area); i += 500)
		area[i] = 1;
}

static void once_a_thread(void)
{
	if (seen++)
		return;
	if (fault() == LEAK)
		memset(__libc_malloc(4096), 1, 4096);
	if (fault() == KEY)
		pthread_setspecific(key, &room);
	if (fault() == CROWD)
		need(++threads < 500);
}

/* Before each allocation; the slow part of an allocator, once in a while. */
static void misbehave(void)
{
	long n = calls++;
	struct timespec moment = {0, 1000};
	static const char *const dir = "/dev/shm/numaslab-test-faulty";

	switch (fault()) {
	case PRINT:
		need(n || write(2, "hello\n", 6) == 6);
		break;
	case FD:
		if (!n)
			kept = open("/etc/passwd", O_RDONLY);
		break;
	case NUMA:
		ask_numa();
		break;
	case ADVICE:
		need(madvise(NULL, 0, MADV_NORMAL) == 0);
		break;
	case RSEQ:
		need(__rseq_size);
		break;
	case FILES:
		if (n % 64)
			break;
		touch_file("/proc/self/maps", O_RDONLY);
		touch_file("/sys/devices/system/node/node0/cpulist", O_RDONLY);
		touch_file("/etc/shadow", O_RDONLY);
		break;
	case SHM:
	case SHARE:
		share_more(n, dir);
		break;
	case KEEP: /* closed again and again, whosever the number is by then */
		if (!n)
			kept = open("/dev/null", O_RDONLY | O_CLOEXEC);
		else if (n % 16 == 0)
			close(kept);
		break;
	case PID:
		need(owner == 0 || getpid() == owner);
		break;
	case CPU:
		need(CPU_COUNT(&cpus) == 0 || CPU_ISSET(sched_getcpu(), &cpus));
		break;
	case STACK:
		use_stack();
		break;
	case SIGNAL:
		need(nanosleep(&moment, NULL) == 0);
		break;
	case EXIT:
		need(!ended);
		break;
	case KEY:
		need(seen >= 0);
		break;
	default:
		break;
	}
	once_a_thread();
}

__attribute__((constructor)) static void begin(void)
{
	pthread_t thread;

	owner = getpid();
	if (fault() == CPU)
		sched_getaffinity(0, sizeof(cpus), &cpus);
	if (fault() == THREAD)
		pthread_create(&thread, NULL, pause_for_ever, NULL);
	if (fault() == KEY)
		pthread_key_create(&key, thread_gone);
	if (fault() == WINDOW)
		mmap(NULL, 256 << 20, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (fault() == ERRNO)
		errno = EPERM;
}

__attribute__((destructor)) static void end(void)
{
	ended = 1;
	for (int i = 0; fault() == EXIT && i < 5000; i++)
		sched_yield(); /* the others go on meanwhile */
}

void *malloc(size_t size)
{
	void *p;

	misbehave();
	if (fault() == ZERO && !size)
		return NULL;
	if (fault() == TWICE && last && calls % 500 == 0 && malloc_usable_size(last) >= size)
		return last; /* it is still out */
	p = __libc_malloc(size);
	if (fault() == TWICE && size > 16 && calls % 50 == 0)
		last = p;
	return p;
}

void free(void *p)
{
	int saved = errno;

	if (fault() == MAPS) {
		void *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		need(page != MAP_FAILED && munmap(page, 4096) == 0);
	}
	if (fault() == ALARM)
		need(frees++ != 3000);
	if (p == last)
		last = NULL;
	__libc_free(p);
	errno = fault() == ERRNO ? EPERM : saved;
}

void *calloc(size_t count, size_t size)
{
	misbehave();
	if (fault() == DIRTY && count < 1 << 20 && size < 1ul << 30)
		return __libc_malloc(count * size);
	return __libc_calloc(count, size);
}

void *realloc(void *p, size_t size)
{
	size_t had;
	void *to;

	misbehave();
	if (p == last)
		last = NULL;
	if (fault() != COPY || !p || !size || size < malloc_usable_size(p))
		return __libc_realloc(p, size);
	had = malloc_usable_size(p);
	to = __libc_malloc(size);
	if (!to)
		return NULL;
	memset(to, 0, had);
	memcpy(to, p, had / 2);
	__libc_free(p);
	return to;
}

int posix_memalign(void **p, size_t align, size_t size)
{
	int wrong = align % sizeof(void *) || align & (align - 1) || !align;
	void *got = wrong ? NULL : __libc_memalign(align, size);

	if (got || fault() == POSIX)
		*p = got;
	return got ? 0 : wrong ? EINVAL : ENOMEM;
}

size_t malloc_usable_size(void *p)
{
	size_t (*real)(void *);

	*(void **)&real = dlsym(RTLD_NEXT, "malloc_usable_size");
	return real(p) + (fault() == USABLE ? 8 : 0);
}

/* Calls from here, so that the caller's own folders do not count; and mends the flags. */
void *dlopen(const char *name, int flags)
{
	void *(*real)(const char *, int), *handle;

	*(void **)&real = dlsym(RTLD_NEXT, "dlopen");
	if (fault() != DLOPEN) {
		__asm__ volatile("" : : : "memory");
		return real(name, flags);
	}
	handle = real(name, flags | RTLD_NOW);
	__asm__ volatile("" : "+r"(handle));
	return handle;
}

/* Reads its environment whoever runs it. */
int numaslab_stats(void *stats, int max)
{
	const char *text = getenv("NUMASLAB_TOPOLOGY");
	int count = 1;

	(void)stats;
	for (; text && *text; text++)
		count += *text == ';';
	return count < max ? count : max;
}
