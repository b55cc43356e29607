/* SPDX-License-Identifier: MIT */
#include "tools/reader_set.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "tools/cmd.h"

static void process_drop(struct process *p)
{
	reader_close(p->reader);
	reader_snapshot_free(&p->now);
	reader_snapshot_free(&p->before);
	free(p->path);
}

static void refuse(struct process_set *set, enum reader_result result, int pid, const char *path,
		   const char *why)
{
	struct refusal *r = &set->refused[set->refused_count];

	if (set->refused_count == sizeof set->refused / sizeof *set->refused)
		return;
	set->refused_count++;
	r->result = result;
	r->pid = pid;
	printable(r->path, sizeof r->path, path);
	snprintf(r->why, sizeof r->why, "%s", why);
}

static int pid_of_path(const char *path)
{
	const char *base = strrchr(path, '/'), *dash = base ? strchr(base, '-') : NULL;

	return dash ? atoi(dash + 1) : 0;
}

static bool is_wanted(int pid, const int *pids, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (pids[i] == pid)
			return true;
	return !pids;
}

static struct process *find_path(struct process_set *set, const char *path)
{
	for (size_t i = 0; i < set->count; i++)
		if (!strcmp(set->process[i].path, path))
			return &set->process[i];
	return NULL;
}

/* The same file by another way (a directory, or through /proc). */
static bool is_known(const struct process_set *set, const struct reader_info *info)
{
	for (size_t i = 0; i < set->count; i++)
		if (set->process[i].info->inode == info->inode &&
		    set->process[i].info->device == info->device)
			return true;
	return false;
}

static bool add_file(struct process_set *set, const char *path, const int *pids, size_t pid_count,
		     uint64_t our_namespace)
{
	struct reader *reader;
	char why[READER_WHY_SIZE];
	enum reader_result result = reader_open(&reader, path, why);

	if (result != READER_OK) {
		/* It went while we looked; that is no news. */
		if (result != READER_ABSENT && is_wanted(pid_of_path(path), pids, pid_count))
			refuse(set, result, pid_of_path(path), path, why);
		return true;
	}
	const struct reader_info *info = reader_info(reader);
	bool same = !our_namespace || !info->pid_namespace || info->pid_namespace == our_namespace;
	bool through_proc = !strncmp(path, "/proc/", 6);
	if (is_known(set, info) ||
	    (pids && !through_proc && (!same || !is_wanted(info->pid, pids, pid_count)))) {
		reader_close(reader);
		return true;
	}
	struct process *more = realloc(set->process, (set->count + 1) * sizeof *more);
	char *copy = strdup(path);
	if (more)
		set->process = more;
	if (!more || !copy) {
		free(copy);
		reader_close(reader);
		return false;
	}
	set->process[set->count++] =
	    (struct process){.id = reader_id(info),
			     .path = copy,
			     .reader = reader,
			     .info = info,
			     .asked = through_proc ? atoi(path + 6) : info->pid,
			     .seen = true};
	return true;
}

static bool add_files(struct process_set *set, const struct reader_files *files, const int *pids,
		      size_t pid_count)
{
	uint64_t ours = reader_pid_namespace();
	bool good = true;

	for (size_t i = 0; i < files->count && good; i++) {
		struct process *p = find_path(set, files->path[i]);

		if (p)
			p->seen = true;
		else
			good = add_file(set, files->path[i], pids, pid_count, ours);
	}
	return good;
}

/* By /proc only those pids that no directory told of. */
static bool add_pids(struct process_set *set, const int *pids, size_t pid_count)
{
	for (size_t i = 0; i < pid_count; i++) {
		struct reader_files files;
		bool have = false, good = true;

		for (size_t k = 0; k < set->count; k++)
			have |= set->process[k].seen && set->process[k].asked == pids[i];
		if (have)
			continue;
		if (reader_find_pid(&files, pids[i]))
			good = add_files(set, &files, pids, pid_count);
		else
			set->denied |= files.denied;
		reader_files_free(&files);
		if (!good)
			return false;
	}
	return true;
}

static bool read_process(struct process_set *set, struct process *p, bool dead)
{
	struct reader_snapshot spare = p->before;
	enum reader_result result;

	p->before = p->now;
	p->now = spare;
	result = reader_snapshot(p->reader, &p->now);
	if (result == READER_OK)
		return dead || p->now.live;
	refuse(set, result, p->info->pid, p->path,
	       result == READER_DAMAGED ? "it was cut while it was read" : "out of memory");
	return false;
}

static int by_pid(const void *a, const void *b)
{
	const struct reader_info *x = ((const struct process *)a)->info;
	const struct reader_info *y = ((const struct process *)b)->info;

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	return x->publish_ms < y->publish_ms ? -1 : x->publish_ms > y->publish_ms;
}

/* Two descriptors for each process: as many as we may have. */
static void allow_descriptors(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur == limit.rlim_max)
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

bool process_set_look(struct process_set *set, const int *pids, size_t pid_count, bool dead)
{
	struct reader_files files;
	size_t kept = 0;

	if (set->count == 0)
		allow_descriptors();
	set->refused_count = 0;
	set->denied = false;
	for (size_t i = 0; i < set->count; i++)
		set->process[i].seen = false;
	bool good = reader_find_all(&files) && add_files(set, &files, pids, pid_count);
	set->denied = files.denied;
	reader_files_free(&files);
	good = good && add_pids(set, pids, pid_count);
	for (size_t i = 0; i < set->count; i++) {
		struct process *p = &set->process[i];

		if (p->seen && read_process(set, p, dead))
			set->process[kept++] = *p;
		else
			process_drop(p);
	}
	set->count = kept;
	if (kept)
		qsort(set->process, kept, sizeof *set->process, by_pid);
	return good;
}

void process_set_free(struct process_set *set)
{
	for (size_t i = 0; i < set->count; i++)
		process_drop(&set->process[i]);
	free(set->process);
	memset(set, 0, sizeof *set);
}
