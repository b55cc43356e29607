/* SPDX-License-Identifier: MIT */
/* The model: what adds up, what comes first, what advice is drawn from it. */
#include <stdlib.h>
#include <string.h>

#include "tests/telemetry/tap.h"
#include "tools/hints.h"
#include "tools/hints_table.h"

static struct hints *machine(int nodes)
{
	struct hints *h = calloc(1, sizeof *h);

	h->node = calloc((size_t)nodes, sizeof *h->node);
	for (int i = 0; i < nodes; i++)
		h->node[i] = i;
	h->node_count = (size_t)nodes;
	h->page_size = 4096;
	h->exact = true;
	h->balancing = 1;
	h->tier_name = "fentry";
	h->tier_unknown = "";
	return h;
}

static void drop(struct hints *h)
{
	hints_free(h);
	free(h);
}

/* Faults on a class, with their thread and slab. */
static void add(struct hints *h, int pid, uint16_t class, uint32_t size, int home, int from,
		uint64_t faults, int tid)
{
	struct hints_process *p = hints_process_get(h, pid, 1);
	struct hints_counts n = {.faults = faults, .pages = faults};

	if (home == from)
		n.local = faults;
	else
		n.remote = faults;
	p->publishes = true;
	p->placement = "kernel";
	struct hints_cell *c = hints_cell_get(p, HINTS_SLAB, class, home, from);
	c->block_size = size;
	hints_counts_add(&c->n, &n);
	struct hints_slab *s = hints_slab_get(p, class, 1, class);
	s->block_size = size;
	s->slab_bytes = 65536;
	s->home = home;
	hints_counts_add(&s->n, &n);
	struct hints_thread *t = hints_thread_get(p, tid, HINTS_SLAB, class, from);
	t->block_size = size;
	snprintf(t->comm, sizeof t->comm, "worker");
	hints_counts_add(&t->n, &n);
}

static void tables(void)
{
	struct table t = {.key_size = 8};
	bool fresh, good = true;

	for (uint64_t i = 0; i < 10000; i++) {
		uint64_t key = i * 0x9e3779b97f4a7c15u;

		good &= table_get(&t, &key, &fresh) == i && fresh;
	}
	for (uint64_t i = 0; i < 10000; i++) {
		uint64_t key = i * 0x9e3779b97f4a7c15u, other = key + 1;

		good &= table_get(&t, &key, &fresh) == i && !fresh && table_find(&t, &key) == i;
		good &= table_find(&t, &other) == TABLE_FULL;
		good &= memcmp(table_key(&t, i), &key, 8) == 0;
	}
	ok(good && t.count == 10000, "a table finds its keys, and no others");
	table_clear(&t);
	uint64_t key = 0;
	ok(t.count == 0 && table_find(&t, &key) == TABLE_FULL, "cleared, it has none");
	table_free(&t);
	ok(t.key_size == 8, "freed, it can be used again");
}

static void adds_up(void)
{
	struct hints *h = machine(4);
	struct hints_counts sum = {0}, n;

	add(h, 10, 3, 256, 1, 0, 700, 11);
	add(h, 10, 3, 256, 1, 1, 300, 12);
	add(h, 10, 5, 512, 2, 2, 50, 12);
	add(h, 20, 3, 256, 0, 3, 2000, 21);
	struct hints_process *p = hints_process_get(h, 10, 1);
	struct hints_cell *other = hints_cell_get(p, HINTS_OTHER, HINTS_CLASS_NONE, -1, 2);
	other->n.faults = other->n.unjoined = 9;
	hints_settle(h, 1000);
	ok(h->process[0].pid == 20, "most remote faults come first");
	p = hints_process_get(h, 10, 1);
	ok_equal((long long)p->total.faults, 1059, "a process's total is that of its cells");
	for (int k = 0; k < HINTS_KINDS; k++)
		hints_counts_add(&sum, &p->kind[k]);
	ok(!memcmp(&sum, &p->total, sizeof sum), "and that of its kinds");
	ok_equal((long long)h->total.faults, 3059, "the total is that of the processes");
	hints_sum(h, p, HINTS_KINDS, HINTS_CLASS_NONE, 1, HINTS_ANY, &n);
	ok(n.faults == 1000 && n.local == 300, "a row of the matrix");
	hints_sum(h, NULL, HINTS_SLAB, 3, HINTS_ANY, HINTS_ANY, &n);
	ok_equal((long long)n.faults, 3000, "a class of all processes");
	hints_sum(h, p, HINTS_OTHER, HINTS_CLASS_NONE, HINTS_NODE_UNKNOWN, 2, &n);
	ok(n.faults == 9 && hints_local_share(&n) < 0, "unknown homes are a home of their own");
	drop(h);
}

/* Totals are given anew each time; points have what was added. */
static void over_time(void)
{
	struct hints *h = machine(2);
	struct hints_counts sum = {0};
	bool rising = true;

	for (unsigned i = 1; i <= 5000; i++) {
		hints_clear(h);
		add(h, 10, 3, 256, 1, 0, i * 3, 11);
		hints_settle(h, i * 10);
	}
	struct hints_process *p = hints_process_get(h, 10, 1);
	for (size_t i = 0; i < p->point_count; i++) {
		hints_counts_add(&sum, &p->point[i].n);
		rising &= i == 0 || p->point[i - 1].time_ms < p->point[i].time_ms;
	}
	ok(!memcmp(&sum, &p->total, sizeof sum) && sum.faults == 15000,
	   "points add up to the total, however many there were");
	ok(p->point_count <= 1024 && rising, "few are kept, in order");
	ok(p->cell_count == 1 && p->slab_count == 1 && p->thread_count == 1,
	   "clearing and filling anew makes no row twice");
	ok(hints_process_get(h, 10, 0) == p,
	   "what came before it was followed is the first image's");
	ok(hints_process_get(h, 10, 2) != NULL && h->process_count == 2,
	   "the next image is another");
	drop(h);
}

static void rankings(void)
{
	struct hints *h = machine(4);
	const struct hints_slab *slab[8];
	const struct hints_thread *thread[8];
	struct hints_class class[8];

	for (uint16_t c = 0; c < 20; c++)
		add(h, 10, c, 16u * (c + 1), 1, 0, 100 + c * 7 % 20, 100 + c);
	hints_settle(h, 1);
	struct hints_process *p = hints_process_get(h, 10, 1);
	size_t n = hints_classes(h, p, class, 8);
	bool good = n == 8;
	for (size_t i = 1; i < n; i++)
		good &= class[i - 1].n.remote >= class[i].n.remote;
	ok(good && class[0].n.remote == 119, "classes by remote faults, the first ones");
	ok(class[0].slabs == 1 && class[0].affected_bytes == 65536 && class[0].home == 1 &&
	       class[0].from == 0,
	   "with what is affected");
	ok(hints_slabs(p, slab, 8) == 8 && slab[0]->n.remote == 119, "slabs by remote faults");
	ok(hints_threads(p, thread, 8) == 8 && thread[0]->n.remote == 119,
	   "threads by remote faults");
	drop(h);
}

static void samples(void)
{
	struct hints *h = machine(1);
	struct hints_process *p = hints_process_get(h, 10, 1);

	for (uint64_t i = 0; i < 1000; i++)
		hints_sample_add(p, &(struct hints_sample){.address = i});
	bool newest = p->sample_count == 256;
	for (size_t i = 0; i < p->sample_count; i++)
		newest &= p->sample[i].address >= 1000 - 256;
	ok(newest, "of samples the newest are kept");
	drop(h);
}

/* --- Advice. --- */

static bool says(struct hints *h, const char *words)
{
	char buf[HINTS_ADVICE_SIZE];

	hints_settle(h, 1);
	const char *said = hints_advice(h, hints_process_get(h, 10, 1), buf, sizeof buf);
	if (strstr(said, words))
		return true;
	printf("# it says: %s\n", said);
	return false;
}

static void advice(void)
{
	struct hints *h = machine(4);

	add(h, 10, 9, 4096, 1, 2, 710, 812);
	add(h, 10, 9, 4096, 1, 1, 290, 800);
	ok(says(h,
		"71 % of the faults on class 4096 come from node 2, and its slabs lie on node 1"),
	   "one class, one node");
	ok(says(h, "812 (worker) runs there") && says(h, "numaslab_malloc_node(size, 2, 0)"),
	   "its thread, and what to try");
	drop(h);

	h = machine(4);
	for (int i = 0; i < 4; i++)
		add(h, 10, 9, 4096, 0, i, 250, 800 + i);
	ok(says(h, "shared between nodes") && says(h, "75 % of all are remote"), "shared by all");
	drop(h);

	h = machine(4);
	add(h, 10, 9, 4096, 1, 1, 980, 800);
	add(h, 10, 9, 4096, 1, 0, 20, 801);
	ok(says(h, "98 % of the faults on the heap are local: nothing to do"), "all is well");
	drop(h);

	h = machine(4);
	add(h, 10, 9, 4096, 1, 1, 800, 800);
	add(h, 10, 9, 4096, 1, 3, 200, 801);
	ok(says(h, "keep these threads on node 1") && says(h, "801 (worker)"),
	   "one thread is elsewhere");
	drop(h);

	h = machine(4);
	for (uint16_t c = 0; c < 30; c++)
		add(h, 10, c, 64u * (c + 1), 1, 0, 100, 800);
	ok(says(h, "spread over many classes"), "many classes");
	drop(h);

	h = machine(4);
	add(h, 10, 9, 4096, 1, 2, 40, 812);
	ok(says(h, "From the few faults seen (40)"), "few faults are said to be few");
	hints_process_get(h, 10, 1)->cell[0].n.failed = 40;
	ok(says(h, "wanted to move pages 40 times and could not"), "migrations that failed");
	drop(h);
}

static void advice_without_faults(void)
{
	struct hints *h = machine(4);
	struct hints_process *p = hints_process_get(h, 10, 1);

	p->publishes = true;
	p->masked = true;
	p->placement = "home";
	ok(says(h, "masked by policy") && says(h, "--observe 1/16 -p 10"), "masked");
	h->balancing = 0;
	ok(says(h, "kernel.numa_balancing=1"), "balancing is off");
	h->balancing = 1;
	hints_process_get(h, 10, 1)->observation.silent = true;
	ok(says(h, "it is not allocating"), "not allocating");
	p = hints_process_get(h, 10, 1);
	p->publishes = false;
	ok(says(h, "does not run under libnumaslab.so"), "another allocator");
	drop(h);
}

int main(void)
{
	tables();
	adds_up();
	over_time();
	rankings();
	samples();
	advice();
	advice_without_faults();
	return tap_end();
}
