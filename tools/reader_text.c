/* SPDX-License-Identifier: MIT */
#include "tools/reader_text.h"

#include <stdio.h>
#include <stdlib.h>

#include "tools/reader_json.h"

#define CLASS_ROWS   12
#define HISTORY_ROWS 12

static char *scaled(char buf[TEXT_NUMBER], double n, double step, const char *units)
{
	while (n >= step && units[1]) {
		n /= step;
		units++;
	}
	/* 999.96 shall not become 1000.0. */
	snprintf(buf, TEXT_NUMBER,
		 n < 9.995   ? "%.2f%c"
		 : n < 99.95 ? "%.1f%c"
			     : "%.0f%c",
		 n, *units);
	return buf;
}

char *text_bytes(char buf[TEXT_NUMBER], uint64_t n)
{
	if (n < 1024) {
		snprintf(buf, TEXT_NUMBER, "%u", (unsigned)n);
		return buf;
	}
	return scaled(buf, (double)n / 1024, 1024, "KMGTPE");
}

char *text_count(char buf[TEXT_NUMBER], double n)
{
	if (n < 9999.5) {
		snprintf(buf, TEXT_NUMBER, n > 0 && n < 9.95 && n != (int)n ? "%.1f" : "%.0f", n);
		return buf;
	}
	return scaled(buf, n / 1000, 1000, "kMGTPE");
}

char *text_age(char buf[TEXT_NUMBER], uint64_t ms)
{
	if (ms < 1000)
		snprintf(buf, TEXT_NUMBER, "%u ms", (unsigned)ms);
	else if (ms < 120000)
		snprintf(buf, TEXT_NUMBER, "%u s", (unsigned)(ms / 1000));
	else if (ms < 7200000)
		snprintf(buf, TEXT_NUMBER, "%u min", (unsigned)(ms / 60000));
	else
		snprintf(buf, TEXT_NUMBER, "%u h", (unsigned)(ms / 3600000));
	return buf;
}

/* Columns that a node and a class have alike. */
#define HEAD                                                                                       \
	"    USED     HELD   FRAG    SLABS  ACTIVE PARTIAL    FULL   EMPTY  OBJECTS    SLOTS  "    \
	"MISPL\n"

static void put_counts(FILE *out, const struct reader_counts *c)
{
	const uint64_t *n = c->counter;
	char b[10][TEXT_NUMBER];

	fprintf(out, "%8s %8s %5.1f%% %8s %7s %7s %7s %7s %8s %8s %6s\n",
		text_bytes(b[0], c->used_bytes), text_bytes(b[1], n[COUNT_held]),
		100 * reader_fragmentation(c),
		text_count(b[2], (double)(n[COUNT_active] + n[COUNT_partial] + n[COUNT_full] +
					  n[COUNT_empty])),
		text_count(b[3], (double)n[COUNT_active]),
		text_count(b[4], (double)n[COUNT_partial]), text_count(b[5], (double)n[COUNT_full]),
		text_count(b[6], (double)n[COUNT_empty]), text_count(b[7], (double)n[COUNT_used]),
		text_count(b[8], (double)n[COUNT_slots]),
		text_count(b[9], (double)n[COUNT_misplaced]));
}

static void put_nodes(FILE *out, const struct reader_snapshot *s)
{
	char b[8][TEXT_NUMBER];

	fputs("  node " HEAD, out);
	for (unsigned i = 0; i < s->pools; i++) {
		if (s->pool[i].node < 0)
			continue;
		fprintf(out, "  %4d ", s->pool[i].node);
		put_counts(out, &s->pool[i].sum);
	}
	fputs("  node refills:      own  n.partial     n.new  a.partial     a.new   frees in"
	      "  frees out  returned\n",
	      out);
	for (unsigned i = 0; i < s->pools; i++) {
		const uint64_t *n = s->pool[i].sum.counter;

		if (s->pool[i].node < 0)
			continue;
		fprintf(out, "  %4d %18s %10s %9s %10s %9s %10s %10s %9s\n", s->pool[i].node,
			text_count(b[0], (double)n[COUNT_own]),
			text_count(b[1], (double)n[COUNT_node_partial]),
			text_count(b[2], (double)n[COUNT_node_new]),
			text_count(b[3], (double)n[COUNT_any_partial]),
			text_count(b[4], (double)n[COUNT_any_new]),
			text_count(b[5], (double)n[COUNT_remote_in]),
			text_count(b[6], (double)n[COUNT_remote_out]),
			text_bytes(b[7], n[COUNT_released]));
	}
}

struct class_row {
	unsigned cls;
	struct reader_counts sum;
};

static int by_held(const void *a, const void *b)
{
	uint64_t x = ((const struct class_row *)a)->sum.counter[COUNT_held];
	uint64_t y = ((const struct class_row *)b)->sum.counter[COUNT_held];

	return x < y ? 1 : x > y ? -1 : 0;
}

/* Those behind the rows shown. */
static void put_others(FILE *out, const struct class_row *rows, unsigned classes)
{
	char b[2][TEXT_NUMBER];
	unsigned others = 0;
	uint64_t used = 0, held = 0;

	for (unsigned i = CLASS_ROWS; i < classes; i++) {
		others += rows[i].sum.counter[COUNT_held] != 0;
		used += rows[i].sum.used_bytes;
		held += rows[i].sum.counter[COUNT_held];
	}
	if (others)
		fprintf(out, "     + %8s %8s        in %u more sizes (all are in --json)\n",
			text_bytes(b[0], used), text_bytes(b[1], held), others);
}

/* The classes that hold most, over all nodes. */
static void put_classes(FILE *out, const struct reader_snapshot *s)
{
	struct class_row *rows = calloc(s->classes, sizeof *rows);

	if (!rows)
		return;
	for (unsigned cls = 0; cls < s->classes; cls++) {
		rows[cls].cls = cls;
		for (unsigned i = 0; i < s->pools; i++) {
			const struct reader_counts *c = &s->count[(size_t)i * s->classes + cls];

			if (s->pool[i].node < 0)
				continue;
			for (unsigned k = 0; k < COUNTER_COUNT; k++)
				rows[cls].sum.counter[k] += c->counter[k];
			rows[cls].sum.used_bytes += c->used_bytes;
		}
	}
	qsort(rows, s->classes, sizeof *rows, by_held);
	fputs("  size " HEAD, out);
	for (unsigned i = 0; i < s->classes && i < CLASS_ROWS; i++) {
		if (rows[i].sum.counter[COUNT_held] == 0)
			break;
		if (s->class_size[rows[i].cls])
			fprintf(out, "%6u ", s->class_size[rows[i].cls]);
		else
			fputs("  kept ", out);
		put_counts(out, &rows[i].sum);
	}
	put_others(out, rows, s->classes);
	free(rows);
}

static void put_rest(FILE *out, const struct process *p, const struct machine *machine)
{
	const struct reader_snapshot *s = &p->now;
	struct excluded excluded[16];
	size_t count = excluded_nodes(p->info, s, machine, excluded, 16);
	char b[3][TEXT_NUMBER];

	for (unsigned i = 0; i < s->pools; i++) {
		struct reader_large large = reader_large(&s->pool[i].sum);

		if (s->pool[i].node < 0)
			fprintf(out,
				"  large blocks: %s of %s; %s kept for the next, %s returned\n",
				text_count(b[0], (double)large.count),
				text_bytes(b[1], large.bytes), text_bytes(b[2], large.kept_bytes),
				text_bytes((char[TEXT_NUMBER]){0}, large.released_bytes));
	}
	for (size_t i = 0; i < count; i++)
		fprintf(out, "  node %d is left out: %s\n", excluded[i].node, excluded[i].reason);
}

static uint64_t sum_over(const struct reader_point *p, unsigned pools, enum counter c)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < pools; i++)
		if (p->pool[i].node >= 0)
			sum += p->pool[i].sum.counter[c];
	return sum;
}

static uint64_t used_over(const struct reader_point *p, unsigned pools)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < pools; i++)
		if (p->pool[i].node >= 0)
			sum += p->pool[i].sum.used_bytes;
	return sum;
}

static void put_point(FILE *out, const char *ago, const struct reader_pool *pool, unsigned pools)
{
	const struct reader_point p = {.pool = (struct reader_pool *)pool};
	char b[3][TEXT_NUMBER];

	fprintf(out, "  %17s %8s %8s %11s\n", ago, text_bytes(b[0], used_over(&p, pools)),
		text_bytes(b[1], sum_over(&p, pools, COUNT_held)),
		text_count(b[2], (double)(sum_over(&p, pools, COUNT_node_new) +
					  sum_over(&p, pools, COUNT_any_new))));
}

/* Some entries spread over all, the last one included, and the counters as they are. */
static void put_history(FILE *out, const struct reader_history *h, const struct reader_snapshot *s)
{
	char ago[TEXT_NUMBER];
	size_t rows = h->count < HISTORY_ROWS ? h->count : HISTORY_ROWS;

	fputs("  history:      ago     USED     HELD   new slabs\n", out);
	for (size_t i = 0; i < rows; i++) {
		size_t at = rows == 1 ? h->count - 1 : i * (h->count - 1) / (rows - 1);
		const struct reader_point *p = &h->point[at];

		text_age(ago, s->now_ms > p->time_ms ? s->now_ms - p->time_ms : 0);
		put_point(out, ago, p->pool, h->pools);
	}
	put_point(out, s->live ? "now" : "at its end", s->pool, s->pools);
}

void text_process(FILE *out, const struct process *p, const struct machine *machine,
		  const struct reader_history *history)
{
	const struct reader_snapshot *s = &p->now;
	char age[TEXT_NUMBER];

	text_age(age, s->now_ms > s->last_ms ? s->now_ms - s->last_ms : 0);
	fprintf(out, "%d %s: %s, placement %s%s, last entry of the history %s ago\n", p->info->pid,
		p->info->comm, s->live ? "live" : "exited", p->info->placement,
		p->info->simulated ? " (simulated nodes)" : "", age);
	put_nodes(out, s);
	put_classes(out, s);
	put_rest(out, p, machine);
	if (history && history->count)
		put_history(out, history, s);
}
