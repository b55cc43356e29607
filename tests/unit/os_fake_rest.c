/* SPDX-License-Identifier: MIT */
/* The machine to order apart from its memory: what it says of itself in /proc and /sys, waiting. */
#include "tests/unit/os_fake_internal.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static long text_nodes(char *to, size_t room_, bool memory)
{
	long n = 0;

	for (unsigned i = 0; i < fake.count; i++)
		if (!memory || fake.node[i].pages)
			n += snprintf(to + n, room_ - (size_t)n, "%s%d", n ? "," : "",
				      fake.node[i].number);
	return n + snprintf(to + n, room_ - (size_t)n, "\n");
}

static long text_distances(char *to, size_t room_, int node)
{
	int at = fake_position(node);
	long n = 0;

	for (unsigned i = 0; at >= 0 && i < fake.count; i++)
		n += snprintf(to + n, room_ - (size_t)n, "%d ", fake.distance[at][i]);
	return at < 0 ? -ENOENT : n + snprintf(to + n, room_ - (size_t)n, "\n");
}

static long text_memory(char *to, size_t room_, int node)
{
	int at = fake_position(node);

	return at < 0 ? -ENOENT
		      : snprintf(to, room_,
				 "Node %d MemTotal:       %ld kB\nNode %d MemFree:        %ld kB\n",
				 node, fake.node[at].pages * 4, node, fake_free((unsigned)at) * 4);
}

long os_read_file(const char *path, char *to, size_t room_)
{
	int node;

	if (fake_fails(FAKE_read_file))
		return -fake.call[FAKE_read_file].error;
	if (strstr(path, "/node/has_memory"))
		return text_nodes(to, room_, true);
	if (strstr(path, "/node/online"))
		return text_nodes(to, room_, false);
	if (sscanf(path, "/sys/devices/system/node/node%d/", &node) == 1)
		return strstr(path, "/meminfo") ? text_memory(to, room_, node)
						: text_distances(to, room_, node);
	if (strcmp(path, "/proc/self/status") == 0)
		return snprintf(to, room_, "Name:\tx\nSeccomp:\t%d\n", fake.seccomp ? 2 : 0);
	if (strcmp(path, "/proc/sys/vm/overcommit_memory") == 0)
		return (to[0] = (char)(48 + fake.overcommit), 1);
	return -ENOENT;
}

uint64_t os_rlimit(int resource)
{
	(void)resource;
	return UINT64_MAX;
}

uint64_t os_now_ms(void)
{
	return fake.now_ms;
}

void os_wait(_Atomic uint32_t *word, uint32_t while_is)
{
	syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, while_is, NULL, NULL, 0);
}

void os_wake_one(_Atomic uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

void os_yield(void)
{
	sched_yield();
}

void os_write_error(const char *text, size_t n)
{
	if (write(2, text, n) < 0)
		return;
}

_Noreturn void os_abort(void)
{
	abort();
}
