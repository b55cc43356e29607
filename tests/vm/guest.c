/* SPDX-License-Identifier: MIT */
#include "tests/vm/guest.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/mempolicy.h>

#define BATCH 256

static int probe_read = -1, probe_write = -1;

static void say(const char *prefix, const char *fmt, va_list ap)
{
	char line[600];
	int n = snprintf(line, sizeof(line), "%s", prefix);

	n += vsnprintf(line + n, sizeof(line) - n - 1, fmt, ap);
	if (n > (int)sizeof(line) - 2)
		n = sizeof(line) - 2;
	line[n++] = '\n';
	if (write(1, line, n) != n)
		_exit(3);
}

bool check(bool cond, const char *name, ...)
{
	va_list ap;

	va_start(ap, name);
	say(cond ? "ok - " : "not ok - ", name, ap);
	va_end(ap);
	return cond;
}

void note(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say("# ", fmt, ap);
	va_end(ap);
}

void die(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say("not ok - ", fmt, ap);
	va_end(ap);
	_exit(1);
}

/* Reads a small file whole; false when it is not there. */
static bool read_file(const char *path, char *buf, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n, got = 0;

	if (fd < 0)
		return false;
	while ((n = read(fd, buf + got, size - 1 - got)) > 0)
		got += n;
	close(fd);
	buf[got] = '\0';
	return true;
}

void guest_start(void)
{
	const char *probe = getenv("GUEST_PROBE");
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (fd >= 0) {
		if (write(fd, "0", 1) != 1)
			note("oom_score_adj: %m");
		close(fd);
	}
	if (probe)
		sscanf(probe, "%d,%d", &probe_read, &probe_write);
}

void *map_pages(size_t bytes, int node)
{
	unsigned long mask = node < 0 ? 0 : 1ul << node;
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		die("mmap of %zu bytes: %m", bytes);
	if (mask)
		syscall(SYS_mbind, p, bytes, MPOL_PREFERRED, &mask, 64ul, 0);
	for (size_t i = 0; i < bytes; i += GUEST_PAGE)
		((volatile char *)p)[i] = 0;
	return p;
}

int node_count(void)
{
	char path[80];
	int count = 0;

	for (int n = 0; n < GUEST_NODES; n++) {
		snprintf(path, sizeof(path), "/sys/devices/system/node/node%d", n);
		if (!access(path, F_OK))
			count = n + 1;
	}
	return count;
}

int node_of_cpu(int cpu)
{
	char path[80];

	for (int n = 0; n < GUEST_NODES; n++) {
		snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/node%d", cpu, n);
		if (!access(path, F_OK))
			return n;
	}
	return -1;
}

int cpu_of_node(int node)
{
	for (int cpu = 0; cpu < GUEST_NODES; cpu++)
		if (node_of_cpu(cpu) == node)
			return cpu;
	return -1;
}

bool node_has_memory(int node)
{
	return node_kb(node, "MemTotal") > 0;
}

void pin_cpu(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		die("pinned to cpu %d: %m", cpu);
}

/* The number after "NAME:" or "NAME " in a text of lines; -1 if there is none. */
static long field(const char *text, const char *name)
{
	size_t len = strlen(name);

	for (const char *p = text; (p = strstr(p, name)); p += len)
		if ((p == text || p[-1] == ' ' || p[-1] == '\n') &&
		    (p[len] == ' ' || p[len] == ':'))
			return strtol(p + len + 1, NULL, 10);
	return -1;
}

long node_kb(int node, const char *name)
{
	char path[80], text[8192];

	snprintf(path, sizeof(path), "/sys/devices/system/node/node%d/meminfo", node);
	return read_file(path, text, sizeof(text)) ? field(text, name) : -1;
}

long vmstat(const char *name)
{
	char text[16384];

	return read_file("/proc/vmstat", text, sizeof(text)) ? field(text, name) : -1;
}

long status_kb(const char *name)
{
	char text[8192];

	return read_file("/proc/self/status", text, sizeof(text)) ? field(text, name) : -1;
}

uint64_t next_random(uint64_t *state)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15u); /* splitmix64, public domain (S. Vigna) */

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

static bool move_all(int fd, void *buf, size_t size, bool out)
{
	for (size_t done = 0; done < size;) {
		ssize_t n = out ? write(fd, (char *)buf + done, size - done)
				: read(fd, (char *)buf + done, size - done);
		if (n <= 0)
			return false;
		done += n;
	}
	return true;
}

static void probe_serve(int in, int out, pid_t pid)
{
	void *addr[BATCH];
	int node[BATCH];
	uint32_t count;

	while (move_all(in, &count, sizeof(count), false) && count <= BATCH &&
	       move_all(in, addr, count * sizeof(*addr), false)) {
		if (syscall(SYS_move_pages, pid, (unsigned long)count, addr, NULL, node, 0))
			for (uint32_t i = 0; i < count; i++)
				node[i] = -errno;
		if (!move_all(out, node, count * sizeof(*node), true))
			break;
	}
}

void probe_start(void)
{
	int ask[2], answer[2];
	char text[40];
	pid_t owner = getpid();

	if (pipe(ask) || pipe(answer))
		die("pipe: %m");
	switch (fork()) {
	case -1:
		die("fork: %m");
	case 0:
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(ask[1]);
		close(answer[0]);
		probe_serve(ask[0], answer[1], owner);
		_exit(0);
	}
	close(ask[0]);
	close(answer[1]);
	probe_read = answer[0];
	probe_write = ask[1];
	snprintf(text, sizeof(text), "%d,%d", probe_read, probe_write);
	setenv("GUEST_PROBE", text, 1);
}

static void ask_kernel(void **addr, unsigned long count, int *node)
{
	uint32_t count32 = count;

	if (probe_write >= 0) {
		if (!move_all(probe_write, &count32, sizeof(count32), true) ||
		    !move_all(probe_write, addr, count * sizeof(*addr), true) ||
		    !move_all(probe_read, node, count * sizeof(*node), false))
			die("the probe process answers");
	} else if (syscall(SYS_move_pages, 0, count, addr, NULL, node, 0)) {
		die("move_pages: %m");
	}
}

/* One batch of pages, none twice in a row. */
static void ask_pages(void **page, size_t count, int *node)
{
	ask_kernel(page, count, node);
	for (size_t i = 0; i < count; i++) {
		if (node[i] != -ENOENT)
			continue;
		/* Not there, or made inaccessible by the balancer: a read tells. */
		(void)*(volatile char *)page[i];
		ask_kernel(&page[i], 1, &node[i]);
	}
}

void landing(void *const *addr, size_t count, int *node)
{
	void *page[BATCH];
	int page_node[BATCH];

	for (size_t i = 0, next; i < count; i = next) {
		size_t pages = 0;

		for (next = i; next < count; next++) {
			void *p = (void *)((uintptr_t)addr[next] & -GUEST_PAGE);

			if (pages && page[pages - 1] == p)
				continue;
			if (pages == BATCH)
				break;
			page[pages++] = p;
		}
		ask_pages(page, pages, page_node);
		for (size_t j = i, k = 0; j < next; j++) {
			if ((void *)((uintptr_t)addr[j] & -GUEST_PAGE) != page[k])
				k++;
			node[j] = page_node[k];
		}
	}
}

int landing_of(const void *addr)
{
	void *a = (void *)addr;
	int node;

	landing(&a, 1, &node);
	return node;
}

void tally_objects(struct tally *t, void *const *objects, size_t count)
{
	int node[BATCH];

	for (size_t i = 0; i < count; i += BATCH) {
		size_t n = count - i < BATCH ? count - i : BATCH;

		landing(objects + i, n, node);
		for (size_t j = 0; j < n; j++) {
			bool there = node[j] >= 0 && node[j] < GUEST_NODES;

			t->on[there ? node[j] : GUEST_NODES]++;
			if (numaslab_node_of)
				t->disagree += numaslab_node_of(objects[i + j]) != node[j];
		}
	}
	t->total += count;
}

double tally_share(const struct tally *t, int node)
{
	return t->total ? 100.0 * t->on[node] / t->total : 0;
}

void tally_note(const struct tally *t, const char *what)
{
	char line[400];
	int n = 0;

	for (int i = 0; i <= GUEST_NODES && n < 350; i++)
		if (t->on[i])
			n += snprintf(line + n, sizeof(line) - n, " %s%d:%lu",
				      i < GUEST_NODES ? "" : "none", i % GUEST_NODES, t->on[i]);
	line[n] = '\0';
	note("%s: objects by node%s; node_of differs for %lu of %lu", what, line, t->disagree,
	     t->total);
}
