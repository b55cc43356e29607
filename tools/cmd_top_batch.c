/* SPDX-License-Identifier: MIT */
/* numaslab top as lines: text, JSON or CSV, one block for each tick. */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "tools/cmd.h"
#include "tools/cmd_top.h"
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

static bool put_text(const struct process_set *set, struct rows *rows, bool first)
{
	char clock[16];
	time_t now = time(NULL);
	struct tm tm;

	strftime(clock, sizeof clock, "%H:%M:%S", localtime_r(&now, &tm));
	printf("%snumaslab top - %s, %zu process%s; refills and remote frees per second\n",
	       first ? "" : "\n", clock, set->count, set->count == 1 ? "" : "es");
	puts("    PID NODE    USED    HELD FRAG%  SLABS   PART    OWN N.PART  N.NEW A.PART  A.NEW "
	     "REMOTE MISPL COMMAND");
	for (size_t i = 0; i < set->count; i++) {
		if (!rows_nodes(rows, &set->process[i]))
			return false;
		for (size_t k = 0; k < rows->count; k++)
			put_row(&rows->row[k]);
		put_large(&set->process[i]);
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

static bool put_csv(const struct process_set *set, struct rows *rows, bool first)
{
	unsigned long long now = wall_ms();

	if (first) {
		fputs("time_ms,pid,comm,node,used_bytes,capacity_bytes,cached_bytes,fragmentation",
		      stdout);
#define X(name, unit, help) fputs("," #name, stdout);
		COUNTERS(X)
#undef X
		putchar('\n');
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
			putchar('\n');
		}
	}
	return true;
}

static void put_json(const struct process_set *set, const struct machine *machine)
{
	struct json j = {.out = stdout};

	json_open(&j, NULL, '{');
	json_number(&j, "schema", 1);
	json_number(&j, "time_ms", wall_ms());
	json_open(&j, "processes", '[');
	for (size_t i = 0; i < set->count; i++)
		json_process(&j, set->process[i].info, &set->process[i].now, machine, false, NULL,
			     NULL);
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

static void wait_until(struct timespec *next, double delay)
{
	next->tv_sec += (time_t)delay;
	next->tv_nsec += (long)((delay - (double)(time_t)delay) * 1e9);
	if (next->tv_nsec >= 1000000000) {
		next->tv_nsec -= 1000000000;
		next->tv_sec++;
	}
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, next, NULL) != 0)
		;
}

static bool put_tick(const struct top_options *o, const struct process_set *set,
		     const struct machine *machine, struct rows *rows, bool first)
{
	if (o->form == TOP_JSON)
		put_json(set, machine);
	else if (o->form == TOP_CSV ? !put_csv(set, rows, first) : !put_text(set, rows, first))
		return false;
	return fflush(stdout) == 0;
}

int top_batch(const struct top_options *o)
{
	struct process_set set = {0};
	struct rows rows = {0};
	struct machine machine = {0};
	bool known = machine_read_sysfs(&machine, "");
	struct timespec next;
	int status = STATUS_DONE;

	clock_gettime(CLOCK_MONOTONIC, &next);
	for (long tick = 0; o->ticks == 0 || tick < o->ticks; tick++) {
		if (tick > 0)
			wait_until(&next, o->delay);
		if (!process_set_look(&set, o->pids, o->pid_count, false)) {
			status = cmd_fail(STATUS_UNABLE, "top", "out of memory");
			break;
		}
		if (tick == 0)
			status = missing(&set, o);
		if (tick == 0 && set.count == 0)
			break;
		if (o->pids && set.count == 0) /* those that were asked for have ended */
			break;
		if (!put_tick(o, &set, known ? &machine : NULL, &rows, tick == 0)) {
			status = errno == EPIPE ? STATUS_UNABLE
						: cmd_fail(STATUS_UNABLE, "top",
							   "standard output: %s", strerror(errno));
			break;
		}
	}
	rows_free(&rows);
	process_set_free(&set);
	if (known)
		machine_free(&machine);
	return status;
}
