/* SPDX-License-Identifier: MIT */
/* The columns: which view has them, how they sort; the rows of a view. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/screen.h"

#define P 1
#define N 2
#define C 4

static const struct {
	const char *title;
	uint8_t views;
} columns[COL_COUNT] = {
    [COL_PID] = {"PID", P},
    [COL_NODE] = {"NODE", N},
    [COL_SIZE] = {"SIZE", C},
    [COL_USED] = {"USED", P | N | C},
    [COL_HELD] = {"HELD", P | N | C},
    [COL_FRAG] = {"FRAG%", P | N | C},
    [COL_SLABS] = {"SLABS", P | N | C},
    [COL_PARTIAL] = {"PART", P | N | C},
    [COL_OWN] = {"OWN", P | N | C},
    [COL_NODE_PARTIAL] = {"N.PART", P | N | C},
    [COL_NODE_NEW] = {"N.NEW", P | N | C},
    [COL_ANY_PARTIAL] = {"A.PART", P | N | C},
    [COL_ANY_NEW] = {"A.NEW", P | N | C},
    [COL_REMOTE_IN] = {"R.IN", P | N | C},
    [COL_REMOTE_OUT] = {"R.OUT", P | N},
    [COL_MISPLACED] = {"MISPL", P | N | C},
    [COL_LARGE] = {"LARGE", P},
    [COL_HINTS] = {"HINTS", P},
    [COL_HINTS_REMOTE] = {"H.REM", P},
    [COL_OBJECTS] = {"OBJECTS", C},
    [COL_COMMAND] = {"COMMAND", P},
};

bool column_is_in(const struct screen *s, enum column c)
{
	if (s->no_hints && (c == COL_HINTS || c == COL_HINTS_REMOTE))
		return false;
	return columns[c].views & 1u << s->view;
}

const char *column_title(enum column c)
{
	return columns[c].title;
}

static const struct screen *sorting; /* qsort has no argument of ours */

static double key_of(const struct row *r, enum column c)
{
	const uint64_t *n = r->counts.counter;

	switch (c) {
	case COL_PID:
		return -r->process->info->pid;
	case COL_NODE:
		return -r->node;
	case COL_SIZE:
		return -(double)r->size;
	case COL_USED:
		return (double)r->counts.used_bytes;
	case COL_HELD:
		return (double)n[COUNT_held];
	case COL_FRAG:
		return reader_fragmentation(&r->counts);
	case COL_SLABS:
		return (double)counts_slabs(&r->counts);
	case COL_PARTIAL:
		return (double)n[COUNT_partial];
	case COL_MISPLACED:
		return (double)n[COUNT_misplaced];
	case COL_LARGE:
		return (double)r->large_bytes;
	case COL_OBJECTS:
		return (double)n[COUNT_used];
	case COL_HINTS:
	case COL_HINTS_REMOTE:
		return hints_value(sorting, r, c);
	case COL_OWN ... COL_REMOTE_OUT:
		return sorting->totals ? (double)n[rate_counter[c - COL_OWN]]
				       : r->rate[c - COL_OWN];
	default:
		return 0;
	}
}

static int compare(const void *a, const void *b)
{
	const struct row *x = a, *y = b;
	enum column c = sorting->sort[sorting->view];
	int order;

	if (c == COL_COMMAND) {
		order = strcmp(x->process->info->comm, y->process->info->comm);
	} else {
		double p = key_of(x, c), q = key_of(y, c);

		order = p < q ? 1 : p > q ? -1 : 0;
	}
	if (sorting->reverse)
		order = -order;
	if (order == 0)
		order = x->process->info->pid - y->process->info->pid;
	if (order == 0)
		order = x->process->id < y->process->id ? -1 : x->process->id > y->process->id;
	return order ? order : x->size < y->size ? -1 : x->size > y->size;
}

static int64_t id_of(const struct screen *s, const struct row *r)
{
	return s->view == VIEW_PROCESSES ? (int64_t)r->process->id
	       : s->view == VIEW_NODES	 ? r->node
					 : (int64_t)r->size;
}

static void filter_rows(struct screen *s)
{
	size_t kept = 0;

	if (s->view != VIEW_PROCESSES || !*s->filter)
		return;
	for (size_t i = 0; i < s->rows.count; i++) {
		char pid[16];

		snprintf(pid, sizeof pid, "%d", s->rows.row[i].process->info->pid);
		if (strcasestr(s->rows.row[i].process->info->comm, s->filter) ||
		    strstr(pid, s->filter))
			s->rows.row[kept++] = s->rows.row[i];
	}
	s->rows.count = kept;
}

static const struct process *find_process(const struct model *m, uint64_t id)
{
	for (size_t i = 0; i < m->set.count; i++)
		if (m->set.process[i].id == id)
			return &m->set.process[i];
	return NULL;
}

void rows_for_view(struct screen *s, const struct model *m)
{
	const struct process *p = m && s->view != VIEW_PROCESSES ? find_process(m, s->id) : NULL;

	s->rows.count = 0;
	s->feed = m ? m->feed : NULL;
	if (m && s->view == VIEW_PROCESSES)
		rows_processes(&s->rows, &m->set);
	else if (p && s->view != VIEW_CLASSES)
		rows_nodes(&s->rows, p);
	else if (p)
		rows_classes(&s->rows, p, s->node);
	filter_rows(s);
	for (size_t i = 0; i < s->rows.count; i++)
		s->rows.row[i].hints = feed_find(s->feed, s->rows.row[i].process->id);
	sorting = s;
	if (s->rows.count)
		qsort(s->rows.row, s->rows.count, sizeof *s->rows.row, compare);
	for (size_t i = 0; i < s->rows.count; i++)
		if (id_of(s, &s->rows.row[i]) == s->cursor_id)
			s->cursor = i;
	if (s->cursor >= s->rows.count)
		s->cursor = s->rows.count ? s->rows.count - 1 : 0;
	s->cursor_id = s->rows.count ? id_of(s, &s->rows.row[s->cursor]) : -2;
	s->cursor_pid = s->rows.count ? s->rows.row[s->cursor].process->info->pid : 0;
}
