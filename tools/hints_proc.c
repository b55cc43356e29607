/* SPDX-License-Identifier: MIT */
/* The last tier: nothing but /proc.  Where pages lie, by process; faults are the machine's. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/hints_internal.h"
#include "tools/cmd.h"

#define LOOK_MS 5000u /* numa_maps walks all page tables of a process */

struct proc {
	uint64_t looked_ms;
};

static int proc_start(struct hints_session *s, enum hints_tier tier, char *why, size_t size)
{
	struct vm_counts v;

	(void)tier;
	vm_counts_read(&v);
	if (!v.known) {
		snprintf(why, size,
			 "/proc/vmstat has no NUMA counters: the kernel was built without "
			 "CONFIG_NUMA_BALANCING, or /proc is not mounted");
		return STATUS_UNABLE;
	}
	s->state = calloc(1, sizeof(struct proc));
	if (!s->state)
		snprintf(why, size, "out of memory");
	return s->state ? 0 : STATUS_UNABLE;
}

static void proc_wait(struct hints_session *s, int timeout_ms)
{
	(void)s;
	poll(NULL, 0, timeout_ms);
}

static bool proc_follow(struct hints_session *s)
{
	follow_poll(&s->follow);
	return follow_look(&s->follow, reader_now_ms());
}

static struct hints_residency *residency_of(struct hints_process *p, int node)
{
	for (size_t i = 0; i < p->residency_count; i++)
		if (p->residency[i].node == node)
			return &p->residency[i];
	struct hints_residency *more =
	    realloc(p->residency, (p->residency_count + 1) * sizeof *more);
	if (!more)
		return NULL;
	p->residency = more;
	more[p->residency_count] = (struct hints_residency){.node = node};
	return &more[p->residency_count++];
}

/* "ADDRESS POLICY ... N0=12 N2=1 kernelpagesize_kB=4" */
static bool see_area(struct hints_process *p, const struct hints_geometry *g, uint32_t page_size,
		     char *line)
{
	uint64_t address = strtoull(line, NULL, 16), unit = 1;
	const char *kb = strstr(line, " kernelpagesize_kB=");
	char *at = line, *rest;

	if (kb)
		unit = strtoull(kb + strlen(" kernelpagesize_kB="), NULL, 10) * 1024 / page_size;
	for (; (at = strstr(at, " N")); at += 2) {
		long node = strtol(at + 2, &rest, 10);

		if (rest == at + 2 || *rest != '=' || node < 0 || node >= MACHINE_NODES)
			continue;
		struct hints_residency *r = residency_of(p, (int)node);
		if (!r)
			return false;
		uint64_t pages = strtoull(rest + 1, NULL, 10) * unit;
		r->pages += pages;
		if (g && address - g->base < g->span)
			r->heap_pages += pages;
	}
	return true;
}

static bool read_areas(struct hints_session *s, const struct followed *item)
{
	struct hints_process *p = hints_process_get(&s->model, item->pid, item->image);
	char path[64], *line = NULL;
	size_t room = 0;
	bool good = p != NULL;

	snprintf(path, sizeof path, "/proc/%d/numa_maps", item->pid);
	FILE *f = good ? fopen(path, "re") : NULL;
	if (!f)
		return good;
	p->residency_count = 0;
	while (good && getline(&line, &room, f) > 0)
		good = see_area(p, item->geometry.span ? &item->geometry : NULL, s->model.page_size,
				line);
	free(line);
	fclose(f);
	return good;
}

static bool proc_read(struct hints_session *s)
{
	struct proc *proc = s->state;
	uint64_t now = reader_now_ms();

	if (proc->looked_ms && !s->stopped && now - proc->looked_ms < LOOK_MS)
		return true;
	proc->looked_ms = now;
	for (size_t i = 0; i < s->follow.count; i++)
		if (s->follow.item[i].state == HINTS_LIVE && !read_areas(s, &s->follow.item[i]))
			return false;
	return true;
}

static void proc_stop(struct hints_session *s)
{
	(void)s;
}

static void proc_close(struct hints_session *s)
{
	free(s->state);
	s->state = NULL;
}

const struct collector collector_proc = {
    .start = proc_start,
    .wait = proc_wait,
    .follow = proc_follow,
    .read = proc_read,
    .stop = proc_stop,
    .close = proc_close,
};
