/* SPDX-License-Identifier: MIT */
/* A preloaded library whose wrappers of the calls an allocator starts with allocate. */
#include <dlfcn.h>
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysinfo.h>
#include <unistd.h>

static void *kept[64];
static unsigned next;

/* Allocates and keeps a few, so that memory of start-up is freed much later. */
static void allocate(void)
{
	static __thread int depth;
	unsigned slot = next++ % 64;
	char *p;

	if (depth)
		return;
	depth++;
	p = malloc(300);
	if (p)
		memset(p, 5, 300);
	free(kept[slot]);
	kept[slot] = realloc(p, 5000);
	free(calloc(3, 40));
	free(aligned_alloc(64, 128));
	depth--;
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

void *mmap(void *at, size_t size, int prot, int flags, int fd, off_t offset)
{
	allocate();
	return NEXT(mmap)(at, size, prot, flags, fd, offset);
}

void *mmap64(void *at, size_t size, int prot, int flags, int fd, off64_t offset)
{
	allocate();
	return NEXT(mmap64)(at, size, prot, flags, fd, offset);
}

int munmap(void *at, size_t size)
{
	allocate();
	return NEXT(munmap)(at, size);
}

int madvise(void *at, size_t size, int advice)
{
	allocate();
	return NEXT(madvise)(at, size, advice);
}

int mprotect(void *at, size_t size, int prot)
{
	allocate();
	return NEXT(mprotect)(at, size, prot);
}

static int mode_of(int flags, va_list args)
{
	return flags & (O_CREAT | O_TMPFILE) ? va_arg(args, int) : 0;
}

int open(const char *path, int flags, ...)
{
	va_list args;
	int mode;

	va_start(args, flags);
	mode = mode_of(flags, args);
	va_end(args);
	allocate();
	return NEXT(open)(path, flags, mode);
}

int open64(const char *path, int flags, ...)
{
	va_list args;
	int mode;

	va_start(args, flags);
	mode = mode_of(flags, args);
	va_end(args);
	allocate();
	return NEXT(open64)(path, flags, mode);
}

int openat(int dir, const char *path, int flags, ...)
{
	va_list args;
	int mode;

	va_start(args, flags);
	mode = mode_of(flags, args);
	va_end(args);
	allocate();
	return NEXT(openat)(dir, path, flags, mode);
}

ssize_t read(int fd, void *to, size_t size)
{
	allocate();
	return NEXT(read)(fd, to, size);
}

int close(int fd)
{
	allocate();
	return NEXT(close)(fd);
}

FILE *fopen(const char *path, const char *mode)
{
	allocate();
	return NEXT(fopen)(path, mode);
}

long sysconf(int name)
{
	allocate();
	return NEXT(sysconf)(name);
}

int get_nprocs(void)
{
	allocate();
	return NEXT(get_nprocs)();
}

int sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set)
{
	allocate();
	return NEXT(sched_getaffinity)(pid, size, set);
}

char *secure_getenv(const char *name)
{
	allocate();
	return NEXT(secure_getenv)(name);
}
