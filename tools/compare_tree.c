/* SPDX-License-Identifier: MIT */
#include "tools/compare_tree.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/compare_counters.h"
#include "tools/compare_machine.h"
#include "tools/machine.h"

/* pid and parent of every process that /proc shows */
struct process {
	pid_t pid, parent;
	bool ours;
};

static pid_t *strangers; /* children we had before the first run */
static size_t strangers_n;

/* Field number `field` (from 1, as proc(5) counts) of a stat file; the name in field 2 may hold
 * anything, so counting starts after its last parenthesis. */
static int stat_field(const char *stat, int field)
{
	const char *at = strrchr(stat, ')');
	char *end;
	long value;

	for (int i = 2; at && i < field; i++) {
		at = strchr(at, ' ');
		at += at != NULL;
	}
	if (!at)
		return -1;
	value = strtol(at, &end, 10);
	return end == at ? -1 : (int)value;
}

int cmp_stat_parent(const char *stat)
{
	return stat_field(stat, 4);
}

int cmp_stat_cpu(const char *stat)
{
	return stat_field(stat, 39);
}

static size_t processes_read(struct process **out)
{
	struct process *all = NULL;
	size_t n = 0, room = 0;
	struct dirent *d;
	DIR *dir = opendir("/proc");

	while (dir && (d = readdir(dir))) {
		char path[64], text[1024];
		int pid = atoi(d->d_name);

		snprintf(path, sizeof(path), "/proc/%d/stat", pid);
		if (pid <= 0 || !read_text("", path, text, sizeof text))
			continue;
		if (n == room) {
			room = room ? 2 * room : 128;
			all = realloc(all, room * sizeof(*all));
			if (!all)
				abort();
		}
		all[n++] = (struct process){.pid = pid, .parent = cmp_stat_parent(text)};
	}
	if (dir)
		closedir(dir);
	*out = all;
	return n;
}

static bool is_stranger(pid_t pid)
{
	for (size_t i = 0; i < strangers_n; i++)
		if (strangers[i] == pid)
			return true;
	return false;
}

/* Marks the descendants of this process, in as many rounds as the tree is deep. */
static size_t tree_mark(struct process *all, size_t n)
{
	size_t marked = 0;
	bool more = true;

	while (more) {
		more = false;
		for (size_t i = 0; i < n; i++) {
			bool below = all[i].parent == getpid() && !is_stranger(all[i].pid);

			for (size_t k = 0; k < n && !below; k++)
				below = all[k].ours && all[k].pid == all[i].parent;
			if (below && !all[i].ours) {
				all[i].ours = more = true;
				marked++;
			}
		}
	}
	return marked;
}

void cmp_tree_init(void)
{
	struct process *all;
	size_t n = processes_read(&all);

	prctl(PR_SET_CHILD_SUBREAPER, 1);
	free(strangers);
	strangers = calloc(n + 1, sizeof(*strangers));
	strangers_n = 0;
	for (size_t i = 0; i < n && strangers; i++)
		if (all[i].parent == getpid())
			strangers[strangers_n++] = all[i].pid;
	free(all);
}

/* Appends the children that one thread of `parent` has. */
static void children_add(int parent, const char *thread, pid_t **list, size_t *n, size_t *room)
{
	char path[96], text[16384], *at = text, *end;

	snprintf(path, sizeof path, "/proc/%d/task/%.16s/children", parent, thread);
	if (!read_text("", path, text, sizeof text))
		return;
	for (long pid; (pid = strtol(at, &end, 10)) > 0 && end != at; at = end) {
		if (parent == getpid() && is_stranger((pid_t)pid))
			continue;
		if (*n == *room) {
			*room = *room ? 2 * *room : 64;
			*list = realloc(*list, *room * sizeof **list);
			if (!*list)
				abort();
		}
		(*list)[(*n)++] = (pid_t)pid;
	}
}

static void children_of(int parent, pid_t **list, size_t *n, size_t *room)
{
	char path[64];
	struct dirent *d;
	DIR *dir;

	snprintf(path, sizeof path, "/proc/%d/task", parent);
	dir = opendir(path);
	while (dir && (d = readdir(dir)))
		if (d->d_name[0] != '.')
			children_add(parent, d->d_name, list, n, room);
	if (dir)
		closedir(dir);
}

/* The tree's processes at about this time: from the kernel's lists of children, which cost as much
 * as the tree is large; where it keeps none (CONFIG_PROC_CHILDREN), from all processes. */
static size_t tree_pids(pid_t **list)
{
	size_t n = 0, room = 0;

	*list = NULL;
	if (!access("/proc/thread-self/children", R_OK)) {
		children_of(getpid(), list, &n, &room);
		for (size_t i = 0; i < n; i++)
			children_of((*list)[i], list, &n, &room);
		return n;
	}
	struct process *all;
	size_t count = processes_read(&all);

	*list = calloc(count + 1, sizeof **list);
	if (!*list)
		abort();
	tree_mark(all, count);
	for (size_t i = 0; i < count; i++)
		if (all[i].ours)
			(*list)[n++] = all[i].pid;
	free(all);
	return n;
}

static double pss_of(pid_t pid)
{
	char path[64], text[4096], *at;

	snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", pid);
	if (!read_text("", path, text, sizeof text))
		return 0;
	at = strstr(text, "\nPss:");
	return at ? strtod(at + 5, NULL) * 1024 : 0;
}

void cmp_numa_maps_line(const char *line, double *bytes, int (*index_of)(int node))
{
	const char *size = strstr(line, " kernelpagesize_kB=");
	double page = size ? strtod(size + 19, NULL) * 1024 : 4096;

	if (strstr(line, " file=") || !strstr(line, " anon="))
		return;
	for (const char *at = strstr(line, " N"); at; at = strstr(at + 2, " N")) {
		char *end;
		long node = strtol(at + 2, &end, 10);
		int i;

		if (end == at + 2 || *end != '=')
			continue;
		i = index_of((int)node);
		if (i >= 0)
			bytes[i] += strtod(end + 1, NULL) * page;
	}
}

/* Which nodes' CPUs did this process's threads run on last? */
static void threads_nodes(pid_t pid, bool *here)
{
	char path[300], text[1024];
	struct dirent *d;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	while (dir && (d = readdir(dir))) {
		int i;

		if (d->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "/proc/%d/task/%.32s/stat", pid, d->d_name);
		if (!read_text("", path, text, sizeof text))
			continue;
		i = cmp_node_index(cmp_node_of_cpu(cmp_stat_cpu(text)));
		if (i >= 0)
			here[i] = true;
	}
	if (dir)
		closedir(dir);
}

/* Adds one process's heap to bytes and the part of it on other nodes to *remote. */
static void placement_of(pid_t pid, double *bytes, double *remote)
{
	double own[CMP_NODES_MAX] = {0};
	bool here[CMP_NODES_MAX] = {false};
	char path[64], *line = NULL;
	size_t room = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/numa_maps", pid);
	f = fopen(path, "re");
	while (f && getline(&line, &room, f) > 0)
		cmp_numa_maps_line(line, own, cmp_node_index);
	free(line);
	if (f)
		fclose(f);
	threads_nodes(pid, here);
	for (int i = 0; i < CMP_NODES_MAX; i++) {
		bytes[i] += own[i];
		*remote += here[i] ? 0 : own[i];
	}
}

void cmp_tree_sample(struct cmp_peak *peak, const struct cmp_watch *watch)
{
	double bytes[CMP_NODES_MAX] = {0}, remote = 0, pss = 0, heap = 0;
	pid_t *pids;
	size_t n = tree_pids(&pids);

	for (size_t i = 0; i < n; i++) {
		if (watch->pss && n > 1)
			pss += pss_of(pids[i]);
		if (watch->nodes)
			placement_of(pids[i], bytes, &remote);
	}
	free(pids);
	if (pss > peak->pss)
		peak->pss = pss;
	for (int i = 0; i < CMP_NODES_MAX; i++)
		heap += bytes[i];
	if (heap > peak->heap) {
		peak->heap = heap;
		peak->remote_share = remote / heap;
		memcpy(peak->node_bytes, bytes, sizeof(bytes));
	}
}

bool cmp_tree_counters(struct cmp_counters *counters)
{
	pid_t *pids;
	size_t n = tree_pids(&pids);

	for (size_t i = 0; i < n; i++)
		cmp_counters_see(counters, pids[i]);
	free(pids);
	return cmp_counters_sample(counters);
}

void cmp_rusage_add(struct rusage *sum, const struct rusage *one)
{
	timeradd(&sum->ru_utime, &one->ru_utime, &sum->ru_utime);
	timeradd(&sum->ru_stime, &one->ru_stime, &sum->ru_stime);
	if (one->ru_maxrss > sum->ru_maxrss)
		sum->ru_maxrss = one->ru_maxrss;
	sum->ru_minflt += one->ru_minflt;
	sum->ru_majflt += one->ru_majflt;
	sum->ru_nvcsw += one->ru_nvcsw;
	sum->ru_nivcsw += one->ru_nivcsw;
}

int cmp_tree_end(pid_t launcher, struct rusage *sum, time_t since)
{
	int reaped = 0;
	pid_t *dead = NULL;
	size_t dead_n = 0;

	for (;;) {
		struct process *all;
		struct rusage usage;
		size_t n, left;
		pid_t pid;

		n = processes_read(&all);
		left = tree_mark(all, n);
		dead = realloc(dead, (dead_n + left + 1) * sizeof *dead);
		if (!dead)
			abort();
		for (size_t i = 0; i < n; i++)
			if (all[i].ours) {
				kill(all[i].pid, SIGKILL);
				dead[dead_n++] = all[i].pid;
			}
		free(all);
		if (!left)
			break;
		/* At least one child is dying; wait for it, then take the others that are done. */
		pid = wait4(-1, NULL, 0, &usage);
		for (; pid > 0; pid = wait4(-1, NULL, WNOHANG, &usage)) {
			if (pid != launcher)
				cmp_rusage_add(sum, &usage);
			reaped++;
		}
		if (pid < 0 && errno == ECHILD && !reaped)
			break;
	}
	for (size_t i = 0; i < dead_n; i++)
		cmp_counters_forget(dead[i], since);
	free(dead);
	return reaped;
}
