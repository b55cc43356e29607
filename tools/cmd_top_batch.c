/* SPDX-License-Identifier: MIT */
/* numaslab top as lines: text, JSON or CSV, one block for each tick. */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "tools/cmd.h"
#include "tools/cmd_top.h"
#include "tools/cmd_top_hints.h"
#include "tools/machine.h"
#include "tools/missing.h"
#include "tools/reader_json.h"
#include "tools/reader_text.h"
#include "tools/screen_rows.h"

static uint64_t wall_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void put_row(const struct row *row)
{
	const struct reader_counts *c = &row->counts;
	char b[11][TEXT_NUMBER], node[16] = "-";

	if (row->node >= 0)
		snprintf(node, sizeof node, "%d", row->node);
	printf(
	    "%7d %4s %7s %7s %5.1f %6s %6s %6s %6s %6s %6s %6s %6s %5s %s\n",
	    row->process->info->pid, node, text_bytes(b[0], c->used_bytes),
	    text_bytes(b[1], c->counter[COUNT_held]), 100 * reader_fragmentation(c),
	    text_count(b[2], (double)counts_slabs(c)),
	    text_count(b[3], (double)c->counter[COUNT_partial]),
	    text_count(b[4], row->rate[RATE_OWN]), text_count(b[5], row->rate[RATE_NODE_PARTIAL]),
	    text_count(b[6], row->rate[RATE_NODE_NEW]),
	    text_count(b[7], row->rate[RATE_ANY_PARTIAL]),
	    text_count(b[8], row->rate[RATE_ANY_NEW]), text_count(b[9], row->rate[RATE_REMOTE_IN]),
	    text_count(b[10], (double)c->counter[COUNT_misplaced]), row->process->info->comm);
}

/* They belong to no node: their pages are where they were touched first. */
static void put_large(const struct process *p)
{
	for (unsigned i = 0; i < p->now.pools; i++) {
		struct reader_large large = reader_large(&p->now.pool[i].sum);
		char b[2][TEXT_NUMBER];

		if (p->now.pool[i].node < 0 && large.count)
			printf("%7d    - %7s in %s large block%s of %s\n", p->info->pid,
			       text_bytes(b[0], large.bytes), text_count(b[1], (double)large.count),
			       large.count == 1 ? "" : "s", p->info->comm);
	}
}

/* Of the whole heap, whatever the node. */
static void put_hints(const struct process *p, const struct top_hints *hints)
{
	const struct hints_process *h = top_hints_find(hints, p->id);
	struct hints_counts heap;
	char b[2][TEXT_NUMBER];

	if (!h || h->masked)
		return;
	hints_sum(hints->model, h, HINTS_KINDS, HINTS_CLASS_NONE, HINTS_ANY, HINTS_ANY, &heap);
	printf("%7d    - %7s hint faults so far, %s remote, of %s\n", p->info->pid,
	       text_count(b[0], (double)heap.faults), text_count(b[1], (double)heap.remote),
	       p->info->comm);
}

static bool put_text(const struct process_set *set, struct rows *rows, struct top_hints *hints,
		     bool first)
{
	const char *said = top_hints_line(hints);
	char clock[16];
	time_t now = time(NULL);
	struct tm tm;

	strftime(clock, sizeof clock, "%H:%M:%S", localtime_r(&now, &tm));
	printf("%snumaslab top - %s, %zu process%s; refills and remote frees per second\n",
	       first ? "" : "\n", clock, set->count, set->count == 1 ? "" : "es");
	if (said)
		puts(said);
	puts("    PID NODE    USED    HELD FRAG%  SLABS   PART    OWN N.PART  N.NEW A.PART  A.NEW "
	     "REMOTE MISPL COMMAND");
	for (size_t i = 0; i < set->count; i++) {
		if (!rows_nodes(rows, &set->process[i]))
			return false;
		for (size_t k = 0; k < rows->count; k++)
			put_row(&rows->row[k]);
		put_large(&set->process[i]);
		put_hints(&set->process[i], hints);
	}
	return true;
}

static void put_csv_text(const char *text)
{
	putchar('"');
	for (; *text; text++) {
		if (*text == '"')
			putchar('"');
		putchar(*text);
	}
	putchar('"');
}

/* On the memory of a node; nothing where it is not known, or masked. */
static void put_csv_hints(const struct top_hints *hints, uint64_t id, int node)
{
	const struct hints_process *h = top_hints_find(hints, id);
	struct hints_counts n;

	if (!h || h->masked) {
		fputs(",,", stdout);
		return;
	}
	hints_sum(hints->model, h, HINTS_KINDS, HINTS_CLASS_NONE, node, HINTS_ANY, &n);
	printf(",%llu,%llu", (unsigned long long)n.faults, (unsigned long long)n.remote);
}

static bool put_csv(const struct process_set *set, struct rows *rows, const struct top_hints *hints,
		    bool first)
{
	unsigned long long now = wall_ms();

	if (first) {
		fputs("time_ms,pid,comm,node,used_bytes,capacity_bytes,cached_bytes,fragmentation",
		      stdout);
#define X(name, unit, help) fputs("," #name, stdout);
		COUNTERS(X)
#undef X
		puts(",hint_faults,hint_faults_remote");
	}
	for (size_t i = 0; i < set->count; i++) {
		if (!rows_nodes(rows, &set->process[i]))
			return false;
		for (size_t k = 0; k < rows->count; k++) {
			const struct reader_counts *c = &rows->row[k].counts;

			printf("%llu,%d,", now, set->process[i].info->pid);
			put_csv_text(set->process[i].info->comm);
			printf(",%d,%llu,%llu,%llu,%.6f", rows->row[k].node,
			       (unsigned long long)c->used_bytes,
			       (unsigned long long)c->capacity_bytes,
			       (unsigned long long)c->cached_bytes, reader_fragmentation(c));
			for (unsigned n = 0; n < COUNTER_COUNT; n++)
				printf(",%llu", (unsigned long long)c->counter[n]);
			put_csv_hints(hints, set->process[i].id, rows->row[k].node);
			putchar('\n');
		}
	}
	return true;
}

static void put_json(const struct process_set *set, const struct machine *machine,
		     const struct top_hints *hints)
{
	struct json j = {.out = stdout};

	json_open(&j, NULL, '{');
	json_number(&j, "schema", 1);
	json_number(&j, "time_ms", wall_ms());
	top_hints_json(hints, &j);
	json_open(&j, "processes", '[');
	for (size_t i = 0; i < set->count; i++) {
		json_process_open(&j, set->process[i].info, &set->process[i].now, machine);
		top_hints_json_process(hints, &j, set->process[i].id);
		json_close(&j, '}');
	}
	json_close(&j, ']');
	json_close(&j, '}');
	putchar('\n');
}

static bool is_answered(const struct process_set *set, int pid)
{
	for (size_t i = 0; i < set->count; i++)
		if (set->process[i].asked == pid)
			return true;
	for (size_t i = 0; i < set->refused_count; i++)
		if (set->refused[i].pid == pid)
			return true;
	return false;
}

/* What is not shown at the first tick: why, and the status for it. */
static int missing(const struct process_set *set, const struct top_options *o)
{
	int status = STATUS_DONE;

	for (size_t i = 0; i < set->refused_count; i++)
		cmd_fail(0, "top", "%s: %s", set->refused[i].path, set->refused[i].why);
	for (size_t i = 0; i < o->pid_count; i++)
		if (!is_answered(set, o->pids[i]))
			status = missing_process("top", o->pids[i]);
	if (set->count && (!o->pids || !set->refused_count))
		return status;
	for (size_t i = 0; i < set->refused_count; i++)
		if (set->refused[i].result == READER_VERSION)
			return STATUS_FORMAT;
	for (size_t i = 0; i < set->refused_count; i++)
		if (set->refused[i].result == READER_DENIED)
			return STATUS_DENIED;
	if (set->refused_count)
		return STATUS_NOTHING;
	return o->pids ? status : missing_all("top", set);
}

static int left_ms(const struct timespec *until)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int)((until->tv_sec - now.tv_sec) * 1000 +
		     (until->tv_nsec - now.tv_nsec) / 1000000);
}

static void wait_until(struct timespec *next, double delay, struct top_hints *hints)
{
	next->tv_sec += (time_t)delay;
	next->tv_nsec += (long)((delay - (double)(time_t)delay) * 1e9);
	if (next->tv_nsec >= 1000000000) {
		next->tv_nsec -= 1000000000;
		next->tv_sec++;
	}
	for (int ms; (ms = left_ms(next)) > 0 && top_hints_wait(hints, ms);)
		;
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, next, NULL) != 0)
		;
}

struct batch {
	struct process_set set;
	struct rows rows;
	struct top_hints hints;
	struct machine machine;
	bool known; /* the machine */
};

static bool put_tick(const struct top_options *o, struct batch *b, bool first)
{
	if (o->form == TOP_JSON)
		put_json(&b->set, b->known ? &b->machine : NULL, &b->hints);
	else if (o->form == TOP_CSV ? !put_csv(&b->set, &b->rows, &b->hints, first)
				    : !put_text(&b->set, &b->rows, &b->hints, first))
		return false;
	return fflush(stdout) == 0;
}

/* False: the end, and its status. */
static bool do_tick(const struct top_options *o, struct batch *b, bool first, int *status)
{
	if (!process_set_look(&b->set, o->pids, o->pid_count, false)) {
		*status = cmd_fail(STATUS_UNABLE, "top", "out of memory");
		return false;
	}
	if (first)
		*status = missing(&b->set, o);
	if (b->set.count == 0 && (first || o->pids)) /* those that were asked for have ended */
		return false;
	top_hints_look(&b->hints, o);
	if (put_tick(o, b, first))
		return true;
	*status = errno == EPIPE
		      ? STATUS_UNABLE
		      : cmd_fail(STATUS_UNABLE, "top", "standard output: %s", strerror(errno));
	return false;
}

int top_batch(const struct top_options *o)
{
	struct batch b = {0};
	struct timespec next;
	int status = STATUS_DONE;

	b.known = machine_read_sysfs(&b.machine, "");
	bool more = do_tick(o, &b, true, &status);
	clock_gettime(CLOCK_MONOTONIC, &next);
	for (long tick = 1; more && (o->ticks == 0 || tick < o->ticks); tick++) {
		wait_until(&next, o->delay, &b.hints);
		more = do_tick(o, &b, false, &status);
	}
	top_hints_end(&b.hints);
	rows_free(&b.rows);
	process_set_free(&b.set);
	if (b.known)
		machine_free(&b.machine);
	return status;
}
