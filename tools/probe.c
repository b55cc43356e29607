/* SPDX-License-Identifier: MIT */
/* Tries the system calls that the library uses, by number: no library stands between. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tools/facts.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

/* linux/mempolicy.h, whose constants are the kernel's ABI. */
enum { POLICY_LOCAL = 4, POLICY_F_NODE = 1, POLICY_F_ADDR = 2, PAGES_F_MOVE = 2 };

static int call_result(long got)
{
	return got < 0 ? errno : 0;
}

static int try_mbind(char *page, size_t size)
{
	return call_result(syscall(SYS_mbind, page, size, POLICY_LOCAL, NULL, 0ul, 0u));
}

static int try_get_mempolicy(char *page, size_t size)
{
	int node = -1;

	(void)size;
	*page = 1;
	return call_result(
	    syscall(SYS_get_mempolicy, &node, NULL, 0ul, page, POLICY_F_NODE | POLICY_F_ADDR));
}

static int try_move_pages(char *page, size_t size)
{
	void *pages[] = {page};
	int where = -1;

	(void)size;
	*page = 1;
	return call_result(syscall(SYS_move_pages, 0, 1ul, pages, NULL, &where, PAGES_F_MOVE));
}

static int try_populate(char *page, size_t size)
{
	return call_result(madvise(page, size, MADV_POPULATE_WRITE));
}

/* 0 to 20: the policy of the task, above it an errno: a child has one byte to say it. */
static int ask_policy(char *page, size_t size)
{
	int mode = 0;

	(void)page;
	(void)size;
	if (syscall(SYS_get_mempolicy, &mode, NULL, 0ul, NULL, 0ul))
		return 255;
	return mode & 0x1f;
}

/* The exit status of attempt() in a child of its own, or PROBE_KILLED. */
static int in_child(int (*attempt)(char *page, size_t size))
{
	size_t size = (size_t)sysconf(_SC_PAGESIZE);
	int status;
	pid_t pid = fork();

	if (pid < 0)
		return PROBE_SKIPPED;
	if (!pid) {
		char *page;

		prctl(PR_SET_DUMPABLE, 0);
		page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		_exit(page == MAP_FAILED ? errno : attempt(page, size));
	}
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return PROBE_SKIPPED;
	return WIFEXITED(status) ? WEXITSTATUS(status) : PROBE_KILLED;
}

void facts_probe(struct facts *f)
{
	int policy;

	f->mbind = in_child(try_mbind);
	f->get_mempolicy = in_child(try_get_mempolicy);
	f->move_pages = in_child(try_move_pages);
	f->populate = in_child(try_populate);
	policy = in_child(ask_policy);
	f->policy = policy >= 0 && policy != 255 ? policy : -1;
}
