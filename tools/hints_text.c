/* SPDX-License-Identifier: MIT */
/* The report for people. */
#include <stdlib.h>
#include <string.h>

#include "telemetry/ring.h"
#include "tools/cmd.h"
#include "tools/hints.h"
#include "tools/hints_session.h"
#include "tools/reader_text.h"

#define CLASS_ROWS  10u
#define SLAB_ROWS   10u
#define THREAD_ROWS 5u
#define POINTS	    12u
#define WIDTH	    80

#define COLUMN_MAX 12u /* nodes side by side */

static const char *share_text(char buf[TEXT_NUMBER], const struct hints_counts *n)
{
	double share = hints_local_share(n);

	if (share < 0)
		snprintf(buf, TEXT_NUMBER, "-");
	else
		snprintf(buf, TEXT_NUMBER, "%.1f%%", 100 * share);
	return buf;
}

static const char *node_text(char buf[TEXT_NUMBER], int node)
{
	if (node < 0)
		snprintf(buf, TEXT_NUMBER, "?");
	else
		snprintf(buf, TEXT_NUMBER, "%d", node);
	return buf;
}

/* --- The session. --- */

static void put_kernel(FILE *out, const struct hints *h)
{
	if (!h->all || !h->exact || !h->faults.known)
		return;
	fprintf(out,
		"  the kernel counted %llu to %llu faults, %llu to %llu local, %llu to %llu pages "
		"migrated\n",
		(unsigned long long)h->faults.low, (unsigned long long)h->faults.high,
		(unsigned long long)h->local.low, (unsigned long long)h->local.high,
		(unsigned long long)h->migrated.low, (unsigned long long)h->migrated.high);
}

static void put_drops(FILE *out, const struct hints_drops *d)
{
	if (d->cells + d->slabs + d->threads + d->samples + d->events == 0) {
		fputs("  nothing was dropped\n", out);
		return;
	}
	fprintf(
	    out,
	    "  dropped, for want of room: %llu faults from everything, %llu from the slabs, %llu "
	    "from the threads, %llu samples; %llu events did not reach us\n",
	    (unsigned long long)d->cells, (unsigned long long)d->slabs,
	    (unsigned long long)d->threads, (unsigned long long)d->samples,
	    (unsigned long long)d->events);
}

static void put_machine_counts(FILE *out, const struct hints *h)
{
	if (h->tier != HINTS_PROC)
		return;
	fprintf(out, "  the machine: %llu hint faults, %llu local, %llu pages migrated\n",
		(unsigned long long)h->faults.low, (unsigned long long)h->local.low,
		(unsigned long long)h->migrated.low);
}

void hints_text_session(FILE *out, const struct hints *h)
{
	char b[6][TEXT_NUMBER];

	fprintf(out, "tier %s, %s; %s, %s\n", h->tier_name,
		h->exact ? "every hint fault" : "an estimate",
		h->all ? "all processes" : "the processes named",
		text_age(b[0], h->now_ms - h->start_ms));
	for (int i = 0; i < (int)h->tier; i++)
		if (*h->tier_why[i])
			fprintf(out, "  not %s: %s\n", hints_tier_name(i), h->tier_why[i]);
	if (*h->tier_unknown) {
		fputs("  ", out);
		print_wrapped(out, h->tier_unknown, 2, 2, WIDTH);
	}
	if (h->balancing == 0)
		fputs(
		    "  NUMA balancing is off: no hint faults ('sysctl kernel.numa_balancing=1')\n",
		    out);
	put_machine_counts(out, h);
	if (h->tier == HINTS_PROC)
		return;
	fprintf(out, "  %s faults, %s local; %s pages migrated, %s failed; %s threads moved\n",
		text_count(b[1], (double)h->total.faults), share_text(b[2], &h->total),
		text_count(b[3], (double)h->total.migrated),
		text_count(b[4], (double)h->total.failed), text_count(b[5], (double)h->task_moves));
	put_kernel(out, h);
	put_drops(out, &h->drops);
}

/* --- A process. --- */

static size_t columns(const struct hints *h)
{
	return h->node_count < COLUMN_MAX ? h->node_count : COLUMN_MAX;
}

static void put_row(FILE *out, const struct hints *h, const struct hints_process *p,
		    const char *name, enum hints_kind kind, int home)
{
	char b[TEXT_NUMBER];
	struct hints_counts sum;

	hints_sum(h, p, kind, HINTS_CLASS_NONE, home, HINTS_ANY, &sum);
	if (sum.faults == 0)
		return;
	fprintf(out, "  %10s", name);
	for (size_t i = 0; i < columns(h); i++) {
		struct hints_counts n;

		hints_sum(h, p, kind, HINTS_CLASS_NONE, home, h->node[i], &n);
		fprintf(out, " %8s", text_count(b, (double)n.faults));
	}
	fprintf(out, " %7s", share_text(b, &sum));
	fprintf(out, " %8s", text_count(b, (double)sum.migrated));
	fprintf(out, " %8s\n", text_count(b, (double)sum.failed));
}

static void put_matrix(FILE *out, const struct hints *h, const struct hints_process *p)
{
	static const char *const names[HINTS_KINDS] = {
	    [HINTS_STACK] = "stack", [HINTS_FILE] = "file", [HINTS_OTHER] = "other"};
	char name[24];

	fputs("  home\\node ", out);
	for (size_t i = 0; i < columns(h); i++)
		fprintf(out, " %8d", h->node[i]);
	fputs("   LOCAL MIGRATED   FAILED\n", out);
	for (size_t i = 0; i < h->node_count; i++) {
		snprintf(name, sizeof name, "%d", h->node[i]);
		put_row(out, h, p, name, HINTS_KINDS, h->node[i]);
	}
	put_row(out, h, p, "?", HINTS_KINDS, HINTS_NODE_UNKNOWN);
	for (int kind = HINTS_STACK; kind < HINTS_KINDS; kind++)
		put_row(out, h, p, names[kind], (enum hints_kind)kind, HINTS_ANY);
	if (h->node_count > columns(h))
		fprintf(out, "  (%zu nodes more: see --json)\n", h->node_count - columns(h));
}

static void put_classes(FILE *out, const struct hints *h, const struct hints_process *p)
{
	struct hints_class class[CLASS_ROWS];
	size_t count = hints_classes(h, p, class, CLASS_ROWS);
	char b[9][TEXT_NUMBER];

	if (count)
		fputs("      size   FAULTS   REMOTE   LOCAL  HOME  FROM    SLABS AFFECTED MIGRATED "
		      "  FAILED\n",
		      out);
	for (size_t i = 0; i < count && (i == 0 || class[i].n.remote); i++)
		fprintf(out, "  %8u %8s %8s %7s %5s %5s %8s %8s %8s %8s\n", class[i].block_size,
			text_count(b[0], (double)class[i].n.faults),
			text_count(b[1], (double)class[i].n.remote), share_text(b[2], &class[i].n),
			node_text(b[3], class[i].home), node_text(b[4], class[i].from),
			text_count(b[5], (double)class[i].slabs),
			text_bytes(b[6], class[i].affected_bytes),
			text_count(b[7], (double)class[i].n.migrated),
			text_count(b[8], (double)class[i].n.failed));
}

static void put_slabs(FILE *out, const struct hints_process *p)
{
	const struct hints_slab *slab[SLAB_ROWS];
	size_t count = hints_slabs(p, slab, SLAB_ROWS);
	char b[6][TEXT_NUMBER];

	if (count == 0 || slab[0]->n.remote == 0)
		return;
	fputs("              slab     size   FAULTS   REMOTE  HOME  FROM AFFECTED  BIRTH\n", out);
	for (size_t i = 0; i < count && slab[i]->n.remote; i++)
		fprintf(out, "  %16llx %8u %8s %8s %5s %5s %8s %6u%s\n",
			(unsigned long long)slab[i]->address, slab[i]->block_size,
			text_count(b[0], (double)slab[i]->n.faults),
			text_count(b[1], (double)slab[i]->n.remote), node_text(b[2], slab[i]->home),
			node_text(b[3], slab[i]->from), text_bytes(b[4], slab[i]->slab_bytes),
			slab[i]->generation, slab[i]->late ? " (or later)" : "");
}

static void put_threads(FILE *out, const struct hints_process *p)
{
	const struct hints_thread *thread[THREAD_ROWS];
	size_t count = hints_threads(p, thread, THREAD_ROWS);
	char b[4][TEXT_NUMBER];

	if (count == 0 || thread[0]->n.remote == 0)
		return;
	fputs("    thread             name     size  FROM   FAULTS   REMOTE\n", out);
	for (size_t i = 0; i < count && thread[i]->n.remote; i++) {
		snprintf(b[0], sizeof b[0], "%u", thread[i]->block_size);
		fprintf(out, "  %8d %16s %8s %5s %8s %8s\n", thread[i]->tid, thread[i]->comm,
			thread[i]->block_size ? b[0] : "-", node_text(b[1], thread[i]->from),
			text_count(b[2], (double)thread[i]->n.faults),
			text_count(b[3], (double)thread[i]->n.remote));
	}
}

/* Some spans of time of equal length, the share of each. */
static void put_history(FILE *out, const struct hints *h, const struct hints_process *p)
{
	uint64_t length = h->now_ms - h->start_ms;
	struct hints_counts span[POINTS] = {0};
	char b[TEXT_NUMBER];

	if (p->point_count < 2 || length == 0 || p->total.local + p->total.remote == 0)
		return;
	for (size_t i = 0; i < p->point_count; i++) {
		uint64_t at = (p->point[i].time_ms - h->start_ms) * POINTS / (length + 1);

		hints_counts_add(&span[at < POINTS ? at : POINTS - 1], &p->point[i].n);
	}
	fputs("  local share over time:", out);
	for (unsigned i = 0; i < POINTS; i++)
		fprintf(out, " %s", share_text(b, &span[i]));
	fputc('\n', out);
}

static void put_observation(FILE *out, const struct hints_observation *o)
{
	char b[5][TEXT_NUMBER];

	if (!o->asked)
		return;
	fprintf(out, "  observation: 1 in %u chunks of 2 MiB, ", o->sample);
	if (o->how == RING_OBSERVE_REFUSED)
		fputs("refused: the kernel takes no such policy, or no node has room for it", out);
	else if (!o->acknowledged && o->silent)
		fputs("not taken up yet: the process is not allocating", out);
	else if (!o->acknowledged)
		fputs("asked for", out);
	else
		fprintf(out, "%s now, sample %u, scanned %u times%s",
			text_bytes(b[0], o->observed_bytes), o->seeds, o->passes,
			o->how == RING_OBSERVE_BIND ? " (bound; where the node has room)" : "");
	fprintf(out,
		"\n  its cost: %s page table entries, %s hint faults (of the machine), %s of "
		"system time (of the process)\n",
		text_count(b[1], (double)o->pte_updates), text_count(b[2], (double)o->hint_faults),
		text_age(b[3], o->system_ms));
}

static void put_residency(FILE *out, const struct hints_process *p, uint32_t page_size)
{
	char b[2][TEXT_NUMBER];

	for (size_t i = 0; i < p->residency_count; i++)
		fprintf(out, "  node %d: %s, of these %s of the heap\n", p->residency[i].node,
			text_bytes(b[0], p->residency[i].pages * page_size),
			text_bytes(b[1], p->residency[i].heap_pages * page_size));
}

static void put_resolve(FILE *out, const struct hints_process *p)
{
	if (p->resolve_late + p->resolve_failed + p->damaged == 0)
		return;
	fprintf(out,
		"  faults on the heap whose slab was looked up afterwards: %llu; not found: %llu; "
		"whose slab map contradicts itself: %llu\n",
		(unsigned long long)p->resolve_late, (unsigned long long)p->resolve_failed,
		(unsigned long long)p->damaged);
}

static void put_title(FILE *out, const struct hints_process *p)
{
	static const char *const states[] = {"", ", exited", ", replaced by another program"};

	fprintf(out, "%d %s%s: ", p->pid, p->comm, states[p->state]);
	if (*p->refusal)
		fprintf(out, "its telemetry file is refused: %s\n", p->refusal);
	else if (!p->publishes)
		fputs("not under libnumaslab.so\n", out);
	else if (p->masked)
		fprintf(out, "placement %s: masked by policy (see --observe)\n", p->placement);
	else
		fprintf(out, "placement %s\n", p->placement);
}

void hints_text_process(FILE *out, const struct hints *h, const struct hints_process *p)
{
	char advice[HINTS_ADVICE_SIZE];

	fputc('\n', out);
	put_title(out, p);
	if (p->total.faults)
		put_matrix(out, h, p);
	put_classes(out, h, p);
	put_slabs(out, p);
	put_threads(out, p);
	put_history(out, h, p);
	put_residency(out, p, h->page_size);
	put_resolve(out, p);
	put_observation(out, &p->observation);
	fputs("  ", out);
	print_wrapped(out, hints_advice(h, p, advice, sizeof advice), 2, 2, WIDTH);
}

/* Of all processes, those that had nothing are left out unless they are ours. */
#define PROCESSES_SHOWN 10u

void hints_text(FILE *out, const struct hints *h)
{
	size_t shown = 0, left = 0;

	hints_text_session(out, h);
	for (size_t i = 0; i < h->process_count; i++) {
		const struct hints_process *p = &h->process[i];

		if (h->all && ((p->total.faults == 0 && !p->residency_count &&
				(!p->publishes || p->state != HINTS_LIVE)) ||
			       shown == PROCESSES_SHOWN)) {
			left++;
			continue;
		}
		hints_text_process(out, h, p);
		shown++;
	}
	if (left)
		fprintf(out, "\n%zu processes more, with fewer remote faults: see --json\n", left);
}

void hints_line(FILE *out, const struct hints *h)
{
	const struct hints_point *now = h->point_count ? &h->point[h->point_count - 1] : NULL;
	char b[5][TEXT_NUMBER];

	if (!now)
		return;
	fprintf(out, "%8s: %s faults, %s local, %s migrated, %s failed",
		text_age(b[0], now->time_ms - h->start_ms), text_count(b[1], (double)now->n.faults),
		share_text(b[2], &now->n), text_count(b[3], (double)now->n.migrated),
		text_count(b[4], (double)now->n.failed));
	for (size_t i = 0, named = 0; i < h->process_count && named < 3; i++) {
		const struct hints_process *p = &h->process[i];
		const struct hints_point *last =
		    p->point_count ? &p->point[p->point_count - 1] : NULL;

		if (!last || last->time_ms != now->time_ms || last->n.faults == 0)
			continue;
		fprintf(out, "%s%s (%d) %s", named++ ? ", " : "; ", p->comm, p->pid,
			text_count(b[1], (double)last->n.faults));
	}
	fputc('\n', out);
}
