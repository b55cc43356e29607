/* SPDX-License-Identifier: MIT */
/* From counts to a sentence: what is used from where, and what could be done about it. */
#include <stdarg.h>
#include <string.h>

#include "tools/hints.h"

#define LITTLE_REMOTE 0.10 /* of the faults: nothing to do */
#define MOSTLY	      0.60 /* from one node: that one is right */
#define THREADS_NAMED 3u
#define FEW_FAULTS    100u

static void say(char *buf, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void say(char *buf, size_t size, const char *format, ...)
{
	size_t used = strlen(buf);
	va_list args;

	va_start(args, format);
	vsnprintf(buf + used, size - used, format, args);
	va_end(args);
}

static unsigned percent(uint64_t part, uint64_t whole)
{
	return whole ? (unsigned)((double)part * 100 / (double)whole + 0.5) : 0;
}

static void say_bytes(char *buf, size_t size, uint64_t bytes)
{
	if (bytes < (uint64_t)1 << 20)
		say(buf, size, "%.0f KiB", (double)bytes / 1024);
	else
		say(buf, size, "%.1f MiB", (double)bytes / (1 << 20));
}

/* --- Nothing on the heap. --- */

static void why_nothing(const struct hints *h, const struct hints_process *p, char *buf,
			size_t size)
{
	if (h->balancing == 0)
		say(buf, size,
		    "NUMA balancing is off, so there are no hint faults: 'sysctl "
		    "kernel.numa_balancing=1'.");
	else if (p->observation.silent)
		say(buf, size,
		    "The process did not take up the observation: it is not allocating.");
	else if (p->masked)
		say(buf, size,
		    "The heap takes no hint faults whoever uses it: its placement is 'home', which "
		    "is masked by policy.  'numaslab hints --observe 1/16 -p %d' shows how it is "
		    "used.",
		    p->pid);
	else
		say(buf, size,
		    "No hint fault on the heap was seen: it is not used from elsewhere, the "
		    "kernel's scan has not come by yet, or the process is idle.  Look longer.");
}

/* The /proc tier knows only where pages are. */
static void where_pages_lie(const struct hints_process *p, char *buf, size_t size)
{
	uint64_t total = 0;

	for (size_t i = 0; i < p->residency_count; i++)
		total += p->residency[i].pages;
	say(buf, size, "Its pages lie on ");
	for (size_t i = 0; i < p->residency_count; i++)
		say(buf, size, "%snode %d (%u %%)", i ? ", " : "", p->residency[i].node,
		    percent(p->residency[i].pages, total));
	say(buf, size,
	    "; who uses them this tier cannot tell: run as root on a kernel with BTF for the "
	    "others.");
}

/* --- One class stands out. --- */

/* The accesses to a class by node; the node with most. */
static int busiest_node(const struct hints *h, const struct hints_process *p, uint16_t class,
			uint64_t *most, uint64_t *all)
{
	int best = HINTS_NODE_UNKNOWN;

	*most = *all = 0;
	for (size_t i = 0; i < h->node_count; i++) {
		struct hints_counts n;

		hints_sum(h, p, HINTS_SLAB, class, HINTS_ANY, h->node[i], &n);
		*all += n.faults;
		if (n.faults > *most) {
			*most = n.faults;
			best = h->node[i];
		}
	}
	return best;
}

/* "thread 812 (worker) runs there" */
static void name_threads(const struct hints_process *p, uint16_t class, int node, char *buf,
			 size_t size)
{
	const struct hints_thread *thread[64];
	size_t count = hints_threads(p, thread, 64), named = 0;

	for (size_t i = 0; i < count; i++)
		if (thread[i]->class == class && thread[i]->from == node)
			thread[named++] = thread[i];
	if (named == 0)
		return;
	say(buf, size, named == 1 ? ": thread " : ": threads ");
	for (size_t i = 0; i < named && i < THREADS_NAMED; i++)
		say(buf, size, "%s%d%s%s%s", i ? ", " : "", thread[i]->tid,
		    *thread[i]->comm ? " (" : "", thread[i]->comm, *thread[i]->comm ? ")" : "");
	say(buf, size, "%s%s there", named > THREADS_NAMED ? " and others" : "",
	    named == 1 ? " runs" : " run");
}

static void what_to_try(const struct hints_process *p, const struct hints_class *c, int node,
			char *buf, size_t size)
{
	say(buf, size,
	    "; try numactl --cpunodebind=%d to run them where the memory is, or allocate it where "
	    "it is used (from these threads, or numaslab_malloc_node(size, %d, 0))",
	    c->home, node);
	if (strcmp(p->placement, "kernel") != 0)
		say(buf, size, ", or leave it to the kernel with NUMASLAB_PLACEMENT=kernel");
	say(buf, size, ".");
}

static void about_class(const struct hints *h, const struct hints_process *p,
			const struct hints_class *c, char *buf, size_t size)
{
	uint64_t most, all;
	int node = busiest_node(h, p, c->class, &most, &all);

	say(buf, size, "%u %% of the faults on class %u come from node %d", percent(most, all),
	    c->block_size, node);
	if ((double)most < MOSTLY * (double)all) {
		say(buf, size,
		    ", the rest from others, and %u %% of all are remote: these blocks are shared "
		    "between nodes, and no node is right for them; try to keep a copy for each "
		    "node, or spread them with numactl --interleave=all.",
		    percent(c->n.remote, c->n.faults));
		return;
	}
	if (c->home >= 0 && node == c->home) { /* the remote part is the lesser one */
		say(buf, size, ", where they are at home; ");
		say_bytes(buf, size, c->affected_bytes);
		say(buf, size, " are used from node %d too (%u %%)", c->from,
		    percent(c->from_faults, all));
		name_threads(p, c->class, c->from, buf, size);
		say(buf, size, "; try to keep these threads on node %d.", c->home);
		return;
	}
	say(buf, size, ", and its slabs lie on node %d (", c->home);
	say_bytes(buf, size, c->affected_bytes);
	say(buf, size, " in %llu slabs)", (unsigned long long)c->slabs);
	name_threads(p, c->class, node, buf, size);
	what_to_try(p, c, node, buf, size);
}

static void about_kernel(const struct hints_counts *heap, char *buf, size_t size)
{
	if (heap->failed > heap->migrated && heap->failed * 5 > heap->faults)
		say(buf, size,
		    "  The kernel wanted to move pages %llu times and could not: the node is full, "
		    "or they are in use elsewhere.",
		    (unsigned long long)heap->failed);
	else if (heap->migrated > 0)
		say(buf, size, "  The kernel moved %llu pages of the heap.",
		    (unsigned long long)heap->migrated);
}

char *hints_advice(const struct hints *h, const struct hints_process *p, char *buf, size_t size)
{
	struct hints_counts heap;
	struct hints_class class;

	*buf = 0;
	hints_sum(h, p, HINTS_KINDS, HINTS_CLASS_NONE, HINTS_ANY, HINTS_ANY, &heap);
	if (p->residency_count) {
		where_pages_lie(p, buf, size);
		return buf;
	}
	if (heap.faults == 0 && *p->refusal) {
		say(buf, size, "Its heap is not known: %s.", p->refusal);
		return buf;
	}
	if (heap.faults == 0 && !p->publishes) {
		say(buf, size,
		    "It does not run under libnumaslab.so, so its heap cannot be told from its "
		    "other memory: %u %% of its faults are remote.",
		    percent(p->total.remote, p->total.faults));
		return buf;
	}
	if (heap.faults == 0) {
		why_nothing(h, p, buf, size);
		return buf;
	}
	if (!h->exact)
		say(buf, size, "By the estimate, ");
	else if (heap.faults < FEW_FAULTS)
		say(buf, size,
		    "From the few faults seen (%llu): ", (unsigned long long)heap.faults);
	if ((double)heap.remote < LITTLE_REMOTE * (double)heap.faults)
		say(buf, size, "%u %% of the faults on the heap are local: nothing to do.",
		    percent(heap.faults - heap.remote, heap.faults));
	else if (hints_classes(h, p, &class, 1) == 1 && class.n.remote * 4 > heap.remote)
		about_class(h, p, &class, buf, size);
	else
		say(buf, size,
		    "%u %% of the faults on the heap are remote, spread over many classes: let "
		    "the threads allocate what they use themselves, or bind them to the nodes "
		    "where their memory is.",
		    percent(heap.remote, heap.faults));
	about_kernel(&heap, buf, size);
	return buf;
}
