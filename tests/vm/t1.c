/* SPDX-License-Identifier: MIT */
/*
 * T1, the refill order, in a guest of four equal nodes.
 *
 *	t1 literal node|plain	4,198,400 x 196 bytes of node 3 (scaled with the node)
 *	t1 proper node|plain [mutant]	1.25 x node 3, half-free slabs waiting on the others
 *	t1 thisnode		until NULL, with NUMASLAB_THISNODE
 *	t1 cache		node 3 is full of page cache (the script sees to that)
 *
 * "node" asks through numaslab_malloc_node, "plain" through malloc on node 3's CPU.
 */
#include "tests/vm/guest.h"

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define OBJECT	196
#define TARGET	3
#define NODES	4
#define LITERAL 4198400ul
#define GIB_KB	1048576ul
/* Per cent of each other node that is given away before half of it is freed. */
#define WAITING 10
/* One request in so many is for another node. */
#define ALTERNATE 64
#define NEW_SLOTS 200000 /* on other nodes: what their last slabs have free is 0.5 % of that */

static void **objects; /* node 0's memory, not the allocator's */
static size_t count;
static bool plain;

struct slots {
	uint64_t slots, any_partial, any_new, foreign_partial, foreign_slots;
	int entries;
};

/* The library's own counters, summed over the nodes; all 0 without the library. */
static struct slots read_slots(void)
{
	struct numaslab_node_stats stats[GUEST_NODES];
	struct slots s = {0};

	if (!numaslab_stats)
		return s;
	s.entries = numaslab_stats(stats, GUEST_NODES);
	for (int i = 0; i < s.entries && i < GUEST_NODES; i++) {
		s.slots += stats[i].slots;
		s.any_partial += stats[i].refill[NUMASLAB_ANY_PARTIAL];
		s.any_new += stats[i].refill[NUMASLAB_ANY_NEW];
		if (stats[i].node == TARGET || stats[i].node < 0)
			continue;
		s.foreign_partial += stats[i].partial;
		s.foreign_slots += stats[i].slots;
	}
	return s;
}

static void need_library(void)
{
	if (!plain && !numaslab_malloc_node)
		die("numaslab_malloc_node is there (the library is not loaded)");
}

static void *take(int node, unsigned flags)
{
	char *p = plain ? malloc(OBJECT) : numaslab_malloc_node(OBJECT, node, flags);

	if (p) {
		p[0] = 1;
		p[OBJECT - 1] = 1;
	}
	return p;
}

static size_t room(int node)
{
	return node_kb(node, "MemFree") * 1024ul / OBJECT;
}

static void prepare(size_t max)
{
	objects = map_pages(max * sizeof(*objects), 0);
	pin_cpu(cpu_of_node(plain ? TARGET : 0));
	free(malloc(1));
}

static void check_ratio(const char *what, uint64_t slots, uint64_t needed)
{
	double ratio = needed ? (double)slots / needed : 0;

	note("%s: %lu slots for %lu objects, %.5f", what, slots, needed, ratio);
	if (!numaslab_stats)
		check(false, "%s: numaslab_stats is there", what);
	else
		check(slots && ratio <= 1.001, "%s: slots/objects %.5f <= 1.001", what, ratio);
}

/* The kernel's own evidence for the same: resident growth per object. */
static void check_bytes(const char *what, long growth_kb, uint64_t needed, size_t class_size)
{
	double bytes = growth_kb * 1024.0 / needed;

	check(bytes <= class_size * 1.02, "%s: %.1f resident bytes per object of class size %zu",
	      what, bytes, class_size);
}

static void literal(void)
{
	size_t want = LITERAL * node_kb(TARGET, "MemTotal") / node_kb(0, "MemTotal");
	struct tally t = {0};
	struct slots before, after;
	long rss, ooms = vmstat("oom_kill");

	/* Scaled with the node, whose kernel's own share is not counted as reduction. */
	if (node_kb(TARGET, "MemTotal") < (long)(GIB_KB * 9 / 10))
		want = LITERAL * node_kb(TARGET, "MemTotal") / GIB_KB * 9 / 10;
	else
		want = LITERAL;
	if (want > room(TARGET) * 9 / 10) /* the newer the kernel, the less of a small node */
		want = room(TARGET) * 9 / 10;
	prepare(want);
	before = read_slots();
	rss = status_kb("RssAnon");
	for (count = 0; count < want && (objects[count] = take(TARGET, 0)); count++)
		;
	after = read_slots();
	rss = status_kb("RssAnon") - rss;
	tally_objects(&t, objects, count);
	tally_note(&t, "literal");
	note("node %d has %ld kB free of %ld", TARGET, node_kb(TARGET, "MemFree"),
	     node_kb(TARGET, "MemTotal"));
	check(count == want, "literal: %zu of %zu objects", count, want);
	check_ratio("literal", after.slots - before.slots, count);
	check_bytes("literal", rss, count, malloc_usable_size(objects[0]));
	check(tally_share(&t, TARGET) >= 99.9, "literal: %.3f %% on node %d, where all fit",
	      tally_share(&t, TARGET), TARGET);
	check(numaslab_node_of && !t.disagree, "literal: node_of and the kernel differ for %lu",
	      t.disagree);
	check(vmstat("oom_kill") == ooms, "literal: nobody was killed");
}

struct waiting {
	int node;
	size_t kept;
	void **keep;
};

/* Leaves half-free slabs on its node, and ends, so that they are no thread's own. */
static void *leave_half(void *arg)
{
	struct waiting *w = arg;
	size_t n = node_kb(w->node, "MemTotal") * (1024ul * WAITING / 100) / OBJECT;
	void **own = map_pages(n * sizeof(*own), 0);

	pin_cpu(cpu_of_node(w->node));
	for (size_t i = 0; i < n; i++)
		if (!(own[i] = take(w->node, 0)))
			die("the waiting slabs of node %d", w->node);
	for (size_t i = 0; i < n; i++)
		if (i & 1)
			free(own[i]);
		else
			own[w->kept++] = own[i];
	w->keep = own;
	return NULL;
}

static size_t leave_waiting(void)
{
	struct waiting w[NODES];
	pthread_t thread;
	size_t kept = 0;

	for (int n = 0; n < NODES; n++) {
		if (n == TARGET)
			continue;
		w[n] = (struct waiting){.node = n};
		if (pthread_create(&thread, NULL, leave_half, &w[n]) || pthread_join(thread, NULL))
			die("a thread for the waiting slabs");
		kept += w[n].kept;
	}
	return kept;
}

/* Requests for the target; a few are for other nodes, in turn. */
static int request_node(size_t i)
{
	return plain || i % ALTERNATE ? TARGET : (int)(i / ALTERNATE % (NODES - 1));
}

/*
 * The requests; *left: foreign partial slabs waiting when the first new foreign slab was made. More
 * than `want` where the node had more than it said, so that NEW_SLOTS were opened elsewhere.
 */
static bool request_all(size_t want, const struct slots *start, uint64_t *left)
{
	bool new_seen = false, enough = !numaslab_stats;

	for (count = 0; count < want || (!enough && count < 2 * want); count++) {
		if (!(objects[count] = take(request_node(count), 0)))
			break;
		if (count % 256 || !numaslab_stats || (enough && new_seen))
			continue;
		struct slots now = read_slots();
		enough = now.foreign_slots >= start->foreign_slots + NEW_SLOTS; /* it may be less */
		if (now.any_new > start->any_new && !new_seen) {
			new_seen = true;
			*left = now.foreign_partial;
		}
	}
	return new_seen;
}

/*
 * Slots opened on other nodes over what had to be: the objects that went there, less the room that
 * waited.  This is where a wrong order of the last two steps shows.
 */
static double foreign_ratio(const struct slots *start, const struct slots *now, size_t foreign,
			    size_t waiting)
{
	uint64_t opened = now->foreign_slots - start->foreign_slots;

	note("proper: %lu slots opened on other nodes for %zu objects there, %zu had room waiting",
	     opened, foreign, waiting);
	return foreign > waiting ? (double)opened / (foreign - waiting) : 0;
}

static void proper(bool mutant)
{
	size_t fit = room(TARGET), ahead = fit / 4 * 5, node3 = 0, waiting, foreign;
	size_t want = plain ? ahead : ahead + ahead / (ALTERNATE - 1);
	uint64_t left = 0;
	bool new_seen;
	struct slots start, now;
	struct tally t = {0}, all = {0};
	long rss, ooms = vmstat("oom_kill");
	double ratio;

	prepare(2 * want);
	waiting = leave_waiting();
	start = read_slots();
	rss = status_kb("RssAnon");
	new_seen = request_all(want, &start, &left);
	now = read_slots();
	rss = status_kb("RssAnon") - rss;
	tally_objects(&all, objects, count);
	foreign = all.total - all.on[TARGET];
	ratio = foreign_ratio(&start, &now, foreign, waiting);
	if (mutant) {
		check(ratio > 1.5, "proper: steps 4 and 5 swapped: %.3f > 1.5, so this tells",
		      ratio);
		return;
	}
	note("proper: %lu foreign partial slabs waiting, %lu when the first new foreign slab was "
	     "made",
	     start.foreign_partial, left);
	note("proper: ladder any_partial %lu, any_new %lu", now.any_partial - start.any_partial,
	     now.any_new - start.any_new);
	check(count >= want, "proper: %zu of %zu objects, 1.25 times what fits node %d", count,
	      want, TARGET);
	check_ratio("proper", now.slots - start.slots, count - waiting);
	check(ratio > 0 && ratio <= 1.01, "proper: on the other nodes alone %.4f <= 1.01", ratio);
	check_bytes("proper", rss, count - waiting, malloc_usable_size(objects[0]));
	check(new_seen && left <= start.foreign_partial / 50,
	      "proper: no new foreign slab while foreign partial slabs wait (%lu of %lu left)",
	      left, start.foreign_partial);
	/* Where those asked of the target went; move_pages tells. */
	for (size_t i = 0; i < count; i++)
		if (request_node(i) == TARGET)
			objects[node3++] = objects[i];
	tally_objects(&t, objects, node3);
	tally_note(&t, "proper, asked of node 3");
	check(t.on[TARGET] >= fit * OBJECT / malloc_usable_size(objects[0]) * 90 / 100,
	      "proper: node %d is filled first (%lu objects, %zu kB were free for %zu)", TARGET,
	      t.on[TARGET], fit * OBJECT / 1024, fit);
	check(!all.on[GUEST_NODES], "proper: each object is on some node");
	check(numaslab_node_of && !all.disagree, "proper: node_of and the kernel differ for %lu",
	      all.disagree);
	check(vmstat("oom_kill") == ooms, "proper: nobody was killed");
}

static size_t fill_thisnode(size_t from, size_t max)
{
	size_t i;

	errno = 0;
	for (i = from; i < max && (objects[i] = take(TARGET, NUMASLAB_THISNODE)); i++)
		;
	return i;
}

static void thisnode(void)
{
	size_t max = node_kb(TARGET, "MemTotal") * 1024ul / OBJECT * 5 / 4, fit = room(TARGET),
	       again;
	struct tally t = {0}, t2 = {0};
	long ooms = vmstat("oom_kill");
	int error;
	void *p;

	prepare(max);
	count = fill_thisnode(0, max);
	error = errno;
	tally_objects(&t, objects, count);
	tally_note(&t, "thisnode");
	note("node %d: room for %zu at the start, %zu given, %ld kB left", TARGET, fit, count,
	     node_kb(TARGET, "MemFree"));
	check(count < max && error == ENOMEM,
	      "thisnode: ENOMEM at exhaustion (%zu given, errno %d)", count, error);
	check(count >= fit * OBJECT / malloc_usable_size(objects[0]) * 85 / 100,
	      "thisnode: only at exhaustion (%zu given)", count);
	check(t.on[TARGET] == t.total, "thisnode: all %lu on node %d", t.on[TARGET], TARGET);
	p = take(TARGET, 0);
	check(p && landing_of(p) >= 0, "thisnode: the same without the flag gives another node's");
	free(p);
	for (size_t i = 0; i < count / 2; i++)
		free(objects[i]);
	again = fill_thisnode(0, count / 4);
	check(again == count / 4, "thisnode: works again after freeing half (%zu)", again);
	tally_objects(&t2, objects, again);
	tally_note(&t2, "thisnode, again");
	check(again && t2.on[TARGET] == again, "thisnode: and again on node %d alone", TARGET);
	check(vmstat("oom_kill") == ooms, "thisnode: nobody was killed");
}

static void cache(bool gate)
{
	size_t want = node_kb(TARGET, "MemTotal") * 1024ul / 8 / OBJECT;
	struct tally t = {0};
	double share;

	plain = true;
	prepare(want);
	note("cache: node %d has %ld kB free and %ld kB of file pages", TARGET,
	     node_kb(TARGET, "MemFree"), node_kb(TARGET, "FilePages"));
	for (count = 0; count < want && (objects[count] = take(TARGET, 0)); count++)
		;
	tally_objects(&t, objects, count);
	tally_note(&t, "cache");
	share = tally_share(&t, TARGET);
	if (!gate) {
		check(share <= 50,
		      "cache: libc's memory goes elsewhere, so this tells them apart (%.1f %% "
		      "on node %d)",
		      share, TARGET);
		return;
	}
	check(count == want, "cache: %zu of %zu objects", count, want);
	check(share >= 90, "cache: reclaimable page cache is no exhaustion: %.1f %% on node %d",
	      share, TARGET);
	check(numaslab_node_of && !t.disagree, "cache: node_of and the kernel differ for %lu",
	      t.disagree);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "", *how = argc > 2 ? argv[2] : "node";

	guest_start();
	plain = !strcmp(how, "plain");
	if (!strcmp(what, "cache")) {
		cache(strcmp(how, "libc"));
		return 0;
	}
	need_library();
	if (!strcmp(what, "literal"))
		literal();
	else if (!strcmp(what, "proper"))
		proper(argc > 3 && !strcmp(argv[3], "mutant"));
	else if (!strcmp(what, "thisnode"))
		thisnode();
	else
		die("usage: t1 literal|proper|thisnode|cache [node|plain|libc] [mutant]");
	return 0;
}
