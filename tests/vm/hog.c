/* SPDX-License-Identifier: MIT */
/*
 * Takes a node's memory until KB are left free, then runs a command and ends with its status.
 *
 *	hog memory NODE KB COMMAND...	with anonymous memory, which nobody can reclaim
 *	hog cache NODE KB COMMAND...	with page cache of /dev/nvme0n1, which can be reclaimed
 */
#include "tests/vm/guest.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/mempolicy.h>

#define STEP (1ul << 20)

static void fill_memory(int node, long leave_kb)
{
	unsigned long mask = 1ul << node;
	size_t size = node_kb(node, "MemTotal") * 1024ul;
	char *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED || syscall(SYS_mbind, p, size, MPOL_PREFERRED, &mask, 64ul, 0))
		die("hog: memory of node %d: %m", node);
	for (size_t i = 0; i < size && node_kb(node, "MemFree") > leave_kb; i += STEP)
		for (size_t j = i; j < i + STEP && j < size; j += GUEST_PAGE)
			((volatile char *)p)[j] = 1;
}

static void fill_cache(int node, long leave_kb)
{
	size_t size = node_kb(node, "MemTotal") * 1024ul;
	int fd = open("/dev/nvme0n1", O_RDONLY | O_CLOEXEC);
	char *p = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);

	if (p == MAP_FAILED)
		die("hog: /dev/nvme0n1: %m");
	pin_cpu(cpu_of_node(node));
	for (size_t i = 0; i + STEP < size && node_kb(node, "MemFree") > leave_kb; i += STEP)
		for (size_t j = i; j < i + STEP; j += GUEST_PAGE)
			(void)((volatile char *)p)[j];
	munmap(p, size);
}

int main(int argc, char **argv)
{
	int node, status;
	pid_t pid;

	guest_start();
	if (argc < 5)
		die("usage: hog memory|cache NODE KB COMMAND...");
	node = atoi(argv[2]);
	if (!strcmp(argv[1], "cache"))
		fill_cache(node, atol(argv[3]));
	else
		fill_memory(node, atol(argv[3]));
	note("hog: %s on node %d, %ld kB left free", argv[1], node, node_kb(node, "MemFree"));
	if (!(pid = fork())) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execvp(argv[4], argv + 4);
		_exit(127);
	}
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
