/* SPDX-License-Identifier: MIT */
#include "tools/compare_counters.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/compare_metrics.h"
#include "tools/reader.h"

#define PROCESSES_MAX 64 /* of a tree; more are not looked at */

struct publisher {
	pid_t pid;
	struct reader *reader; /* NULL: has no file yet */
};

struct cmp_counters {
	struct publisher process[PROCESSES_MAX];
	size_t processes;
	uint64_t most_held;
	double fragmentation; /* when most_held was held */
	struct reader_snapshot snapshot;
};

struct cmp_counters *cmp_counters_begin(void)
{
	struct cmp_counters *c = calloc(1, sizeof *c);

	if (!c)
		abort();
	return c;
}

static void look_for_file(struct publisher *p)
{
	char why[READER_WHY_SIZE];
	struct reader_files files;

	if (reader_find_pid(&files, p->pid) &&
	    reader_open(&p->reader, files.path[0], why) != READER_OK)
		p->reader = NULL;
	reader_files_free(&files);
}

void cmp_counters_see(struct cmp_counters *c, pid_t pid)
{
	size_t i = 0;

	while (i < c->processes && c->process[i].pid != pid)
		i++;
	if (i == PROCESSES_MAX)
		return;
	if (i == c->processes)
		c->process[c->processes++] = (struct publisher){.pid = pid};
	if (!c->process[i].reader)
		look_for_file(&c->process[i]);
}

/* Sums up the nodes' pools (the large blocks are no slabs) of every process; true if any was read.
 */
static bool sum_up(struct cmp_counters *c, struct reader_counts *sum)
{
	bool any = false;

	*sum = (struct reader_counts){0};
	for (size_t i = 0; i < c->processes; i++) {
		if (!c->process[i].reader ||
		    reader_snapshot(c->process[i].reader, &c->snapshot) != READER_OK)
			continue;
		any = true;
		for (unsigned p = 0; p < c->snapshot.pools; p++) {
			const struct reader_counts *one = &c->snapshot.pool[p].sum;

			if (c->snapshot.pool[p].node < 0)
				continue;
			for (int k = 0; k < COUNTER_COUNT; k++)
				sum->counter[k] += one->counter[k];
			sum->used_bytes += one->used_bytes;
			sum->capacity_bytes += one->capacity_bytes;
			sum->cached_bytes += one->cached_bytes;
		}
	}
	return any;
}

bool cmp_counters_sample(struct cmp_counters *c)
{
	struct reader_counts sum;

	if (!sum_up(c, &sum))
		return false;
	if (sum.counter[COUNT_held] > c->most_held) {
		c->most_held = sum.counter[COUNT_held];
		c->fragmentation = reader_fragmentation(&sum);
	}
	return true;
}

void cmp_counters_end(struct cmp_counters *c, double *v)
{
	static const struct {
		int metric, counter;
	} steps[] = {
	    {CMP_M_LADDER_OWN, COUNT_own},
	    {CMP_M_LADDER_NODE_PARTIAL, COUNT_node_partial},
	    {CMP_M_LADDER_NODE_NEW, COUNT_node_new},
	    {CMP_M_LADDER_ANY_PARTIAL, COUNT_any_partial},
	    {CMP_M_LADDER_ANY_NEW, COUNT_any_new},
	};
	struct reader_counts sum;

	cmp_counters_sample(c);
	if (sum_up(c, &sum)) {
		v[CMP_M_FRAGMENTATION] = c->fragmentation;
		for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
			v[steps[i].metric] = (double)sum.counter[steps[i].counter];
	}
	for (size_t i = 0; i < c->processes; i++)
		if (c->process[i].reader)
			reader_close(c->process[i].reader);
	reader_snapshot_free(&c->snapshot);
	free(c);
}

void cmp_counters_forget(pid_t pid, time_t since)
{
	const char *own = getenv("NUMASLAB_DIR");
	char path[64], prefix[64];
	struct dirent *e;
	struct stat st;
	DIR *dir;

	snprintf(path, sizeof path, "/dev/shm/numaslab-%u", (unsigned)geteuid());
	snprintf(prefix, sizeof prefix, "%" PRIu64 "-%d-", reader_pid_namespace(), (int)pid);
	dir = opendir(own && *own == '/' ? own : path);
	while (dir && (e = readdir(dir))) {
		const char *name = e->d_name + (strncmp(e->d_name, ".new-", 5) ? 0 : 5);

		if (!strncmp(name, prefix, strlen(prefix)) &&
		    !fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) &&
		    st.st_uid == geteuid() && st.st_mtime >= since)
			unlinkat(dirfd(dir), e->d_name, 0);
	}
	if (dir)
		closedir(dir);
}
