/* SPDX-License-Identifier: MIT */
#include "allocator/os.h"
#include "allocator/syscall.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <numaif.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif
#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif
#ifndef AT_RSEQ_FEATURE_SIZE
#define AT_RSEQ_FEATURE_SIZE 27
#endif

size_t os_page_size = 4096;

extern char **environ;
extern void *__libc_stack_end
    __attribute__((weak)); /* ld.so's: where the kernel left argc, argv, envp */

/* Called before libc set `environ` (a .preinit_array): the variables as the kernel laid them out.
 */
static char *const *environ_early(void)
{
	long *argc = &__libc_stack_end ? __libc_stack_end : NULL;

	return argc ? (char *const *)(argc + 1 + *argc + 1) : NULL;
}

/* Whether the variable is there and its value has the word in it. */
static bool has_variable(char *const *envp, const char *name, const char *word)
{
	for (; envp && *envp; envp++)
		if (strncmp(*envp, name, strlen(name)) == 0 && strstr(*envp, word))
			return true;
	return false;
}

void os_init(struct os_start *start)
{
	const uint64_t *seed = (const uint64_t *)getauxval(AT_RANDOM);

	os_page_size = getauxval(AT_PAGESZ);
	if (os_page_size == 0)
		os_page_size = 4096;
	start->envp = environ ? environ : environ_early();
	start->valgrind = has_variable(start->envp, "LD_PRELOAD=", "vgpreload");
	start->secure = getauxval(AT_SECURE) != 0;
	start->random = seed ? seed[0] ^ (seed[1] << 1) : (uint64_t)(uintptr_t)start;
	start->rseq_feature_size = (unsigned)getauxval(AT_RSEQ_FEATURE_SIZE);
}

static void *map(void *at, size_t bytes, int prot, int flags)
{
	long p = sys(SYS_mmap, at, bytes, prot, flags | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p < 0 && p > -4096 ? NULL : (void *)p;
}

bool os_range_is_free(uintptr_t at, size_t bytes)
{
	long p = sys(SYS_mmap, at, bytes, PROT_NONE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);

	if (p < 0 && p > -4096)
		return p != -EEXIST;
	os_unmap((void *)p, bytes);
	return (uintptr_t)p == at;
}

bool os_map_at(void *at, size_t bytes)
{
	void *p = map(at, bytes, PROT_READ | PROT_WRITE, MAP_FIXED_NOREPLACE);

	/* A kernel that does not know the flag (before 4.17) takes the address for a hint. */
	if (p && p != at)
		os_unmap(p, bytes);
	return p == at;
}

void *os_map(size_t bytes)
{
	return map(NULL, bytes, PROT_READ | PROT_WRITE, 0);
}

bool os_unmap(void *at, size_t bytes)
{
	return sys(SYS_munmap, at, bytes, 0, 0, 0, 0) == 0;
}

int os_populate(void *at, size_t bytes)
{
	return (int)sys(SYS_madvise, at, bytes, MADV_POPULATE_WRITE, 0, 0, 0);
}

bool os_discard(void *at, size_t bytes)
{
	return sys(SYS_madvise, at, bytes, MADV_DONTNEED, 0, 0, 0) == 0;
}

bool os_remap_fresh(void *at, size_t bytes)
{
	return map(at, bytes, PROT_READ | PROT_WRITE, MAP_FIXED) != NULL;
}

bool os_move_range(void *from, void *to, size_t bytes)
{
	long p = sys(SYS_mremap, from, bytes, bytes,
		     MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP, to, 0);

	return p == (long)to;
}

bool os_no_huge(void *at, size_t bytes)
{
	return sys(SYS_madvise, at, bytes, MADV_NOHUGEPAGE, 0, 0, 0) == 0;
}

bool os_huge(void *at, size_t bytes)
{
	return sys(SYS_madvise, at, bytes, MADV_HUGEPAGE, 0, 0, 0) == 0;
}

int os_set_policy(void *at, size_t bytes, int mode, int node)
{
	uint64_t mask[OS_NODE_WORDS] = {0};

	if (node < 0)
		return (int)sys(SYS_mbind, at, bytes, mode, 0, 0, 0);
	mask[node / 64] = (uint64_t)1 << (node % 64);
	return (int)sys(SYS_mbind, at, bytes, mode, mask, OS_NODE_BITS, 0);
}

int os_task_policy(void)
{
	int mode = 0;
	long r = sys(SYS_get_mempolicy, &mode, 0, 0, 0, 0, 0);

	return r < 0 ? (int)r : mode;
}

int os_mems_allowed(uint64_t mask[OS_NODE_WORDS])
{
	return (int)sys(SYS_get_mempolicy, 0, mask, OS_NODE_BITS, 0, MPOL_F_MEMS_ALLOWED, 0);
}

int os_page_node(const void *at)
{
	int node = -1;
	long r = sys(SYS_get_mempolicy, &node, 0, 0, at, MPOL_F_NODE | MPOL_F_ADDR, 0);

	return r < 0 ? (int)r : node;
}

int os_move_pages(void *at, size_t bytes, int node)
{
	enum { BATCH = 16 };
	size_t pages = (bytes + os_page_size - 1) / os_page_size;

	for (size_t done = 0; done < pages; done += BATCH) {
		size_t n = min_size(BATCH, pages - done);
		void *list[BATCH];
		int nodes[BATCH], status[BATCH];

		for (size_t i = 0; i < n; i++) {
			list[i] = (char *)at + (done + i) * os_page_size;
			nodes[i] = node;
			status[i] = -EAGAIN;
		}
		long r = sys(SYS_move_pages, 0, n, list, nodes, status, MPOL_MF_MOVE);
		if (r < 0)
			return (int)r;
		for (size_t i = 0; i < n; i++)
			if (status[i] != node)
				return status[i] < 0 ? status[i] : -ENOMEM;
	}
	return 0;
}

int os_getcpu(unsigned *cpu, unsigned *node)
{
	int saved = errno;

	/* By the vDSO: no call that a filter could kill for. */
	int r = getcpu(cpu, node) ? -errno : 0;
	errno = saved;
	return r;
}

long os_read_file(const char *path, char *to, size_t room)
{
	long fd = sys(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW, 0, 0, 0);
	size_t have = 0;

	if (fd < 0)
		return fd;
	while (have < room) {
		long n = sys(SYS_read, fd, to + have, room - have, 0, 0, 0);

		if (n == -EINTR)
			continue;
		if (n <= 0)
			break;
		have += (size_t)n;
	}
	sys(SYS_close, fd, 0, 0, 0, 0, 0);
	return (long)have;
}

uint64_t os_rlimit(int resource)
{
	struct {
		uint64_t soft, hard;
	} limit = {UINT64_MAX, UINT64_MAX};

	if (sys(SYS_prlimit64, 0, resource, 0, &limit, 0, 0) < 0)
		return UINT64_MAX;
	return limit.soft;
}

uint64_t os_now_ms(void)
{
	struct timespec t = {0, 0};

	clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

void os_wait(_Atomic uint32_t *word, uint32_t while_is)
{
	sys(SYS_futex, word, FUTEX_WAIT_PRIVATE, while_is, 0, 0, 0);
}

void os_wake_one(_Atomic uint32_t *word)
{
	sys(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0);
}

void os_yield(void)
{
	sys(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
}

void os_write_error(const char *text, size_t n)
{
	while (n > 0) {
		long r = sys(SYS_write, 2, text, n, 0, 0, 0);

		if (r == -EINTR)
			continue;
		if (r <= 0)
			return;
		text += r;
		n -= (size_t)r;
	}
}

_Noreturn void os_abort(void)
{
	abort();
}

long os_call(enum os_passed call, long a, long b, long c, long d, long e, long f)
{
	static const long number[] = {
	    [OS_mprotect] = SYS_mprotect, [OS_mlock] = SYS_mlock, [OS_mlock2] = SYS_mlock2,
	    [OS_mbind] = SYS_mbind,	  [OS_prctl] = SYS_prctl,
	};

	return sys(number[call], a, b, c, d, e, f);
}
