/* SPDX-License-Identifier: MIT */
/* clang-format off */
/*
 * A program that does what its arguments say, one after the other, and tells where its memory lies.
 * Objects allocated since the last "fresh" are the fresh ones, which the questions are about.
 *
 *	cpu=N node=N		pins itself to a CPU, or to a CPU of a node
 *	new=COUNT,MIN,MAX	objects of MIN..MAX bytes, written; big=COUNT,BYTES: blocks, every page
 *	on=COUNT,BYTES,NODE[,this]	through numaslab_malloc_node
 *	fill=KB,BYTES		objects of BYTES until the pinned CPU's node has KB free (bounded)
 *	until=ROUNDS,COUNT,NODE	frees all and allocates COUNT small objects, until all lie on NODE (a
 *				node that was full has room again: that is learnt only now and then)
 *	free=PERCENT trim	frees of all objects, at random (100: all); malloc_trim(0)
 *	do=COMMAND		a shell command, without LD_PRELOAD; $ACTOR is this process
 *	policy=MODE[,NODE...]	set_mempolicy: default bind preferred interleave
 *	mbind=NODE filter=MODE	binds the fresh blocks' pages; installs a seccomp filter (filter.h)
 *	want=PERCENT,NODE...:NAME	of the fresh objects' pages lie on these nodes at least
 *	even=TOLERANCE,NODE...:NAME	evenly on these nodes, and only there
 *	agree=PERCENT:NAME	numaslab_node_of differs from the kernel for at most so many
 *	counters=PERCENT:NAME	numaslab_stats is consistent, and counts our objects where they lie
 *	nodes=NODE,...:NAME	numaslab_stats lists just these nodes
 *	enomem=NODE:NAME	THISNODE allocations end with ENOMEM; einval=NODE:NAME: NODE is refused
 */
/* clang-format on */
#include "tests/vm/filter.h"
#include "tests/vm/guest.h"

#include <dlfcn.h>
#include <malloc.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <linux/mempolicy.h>

#define MAX_OBJECTS (4ul << 20)

extern char **environ;
static void **object; /* not the allocator's memory */
static uint32_t *object_size;
static size_t count, first_fresh;
static uint64_t seed = 42;

/* Parses "a,b,c" into numbers; what follows a ':' is left to name. */
static int numbers(char *text, long *to, int max, const char **name)
{
	char *colon = strchr(text, ':');
	int n = 0;

	if (name)
		*name = colon ? colon + 1 : "?";
	if (colon)
		*colon = '\0';
	for (char *word = strtok(text, ","); word && n < max; word = strtok(NULL, ","))
		to[n++] = strtol(word, NULL, 10);
	return n;
}

static bool keep(void *p, size_t size)
{
	if (!p || count == MAX_OBJECTS)
		return false;
	object_size[count] = size;
	object[count++] = p;
	for (size_t i = 0; i < size; i += 64)
		((volatile char *)p)[i] = 1;
	((volatile char *)p)[size - 1] = 1;
	return true;
}

static void do_new(char *arg)
{
	long a[3] = {1, 16, 16};

	numbers(arg, a, 3, NULL);
	for (long i = 0; i < a[0]; i++) {
		size_t size = a[1] + next_random(&seed) % (a[2] - a[1] + 1);

		if (!keep(malloc(size), size))
			die("malloc(%zu) gives memory: %m", size);
	}
}

static void do_big(char *arg)
{
	long a[2] = {1, 1 << 20};

	numbers(arg, a, 2, NULL);
	for (long i = 0; i < a[0]; i++)
		if (!keep(malloc(a[1]), a[1]))
			die("malloc(%ld) gives memory: %m", a[1]);
}

static void do_on(char *arg)
{
	unsigned flags = strstr(arg, ",this") ? NUMASLAB_THISNODE : 0;
	long a[3] = {1, 16, 0};

	numbers(arg, a, 3, NULL);
	if (!numaslab_malloc_node)
		die("numaslab_malloc_node is there");
	for (long i = 0; i < a[0]; i++)
		if (!keep(numaslab_malloc_node(a[1], a[2], flags), a[1]))
			die("numaslab_malloc_node(%ld, %ld) gives memory: %m", a[1], a[2]);
}

static void do_fill(char *arg)
{
	long a[2] = {0, 1024};
	int node = node_of_cpu(sched_getcpu());
	size_t bound;

	numbers(arg, a, 2, NULL);
	while (!node_has_memory(node)) /* its memory is another's: the first that has some */
		node = (node + 1) % node_count();
	bound = node_kb(node, "MemTotal") * 1280 / a[1];
	for (size_t i = 0; i < bound && (i % 256 || node_kb(node, "MemFree") > a[0]); i++)
		if (!keep(malloc(a[1]), a[1]))
			die("malloc(%ld) gives memory: %m", a[1]);
}

static void do_free(char *arg)
{
	unsigned long percent = strtoul(arg, NULL, 10);
	size_t kept = 0, kept_old = 0;

	for (size_t i = 0; i < count; i++) {
		if (i == first_fresh)
			kept_old = kept;
		if (next_random(&seed) % 100 < percent) {
			free(object[i]);
		} else {
			object_size[kept] = object_size[i];
			object[kept++] = object[i];
		}
	}
	first_fresh = first_fresh >= count ? kept : kept_old;
	count = kept;
}

static void do_until(char *arg)
{
	char again[64], all[] = "100";
	long a[3] = {1, 1, 0}, round = 0;
	struct tally t;

	numbers(arg, a, 3, NULL);
	do {
		snprintf(again, sizeof(again), "%ld,16,1024", a[1]);
		do_free(all);
		malloc_trim(0);
		do_new(again);
		t = (struct tally){0};
		tally_objects(&t, object, count);
	} while (++round < a[0] && t.on[a[2]] != t.total);
	note("node %ld: after %ld rounds", a[2], round);
}

static void do_command(char *arg)
{
	char *argv[] = {"sh", "-c", arg, NULL};
	char actor[32], *env[] = {actor, "PATH=/bin", NULL};
	int status;
	pid_t pid;

	snprintf(actor, sizeof(actor), "ACTOR=%d", getpid());
	if (posix_spawn(&pid, "/bin/sh", NULL, NULL, argv, env) || waitpid(pid, &status, 0) < 0)
		die("sh -c '%s': %m", arg);
	if (status)
		die("sh -c '%s' succeeds", arg);
}

static void do_policy(char *arg)
{
	unsigned long mask = 0;
	long node[16];
	int n, mode = !strncmp(arg, "bind", 4)		? MPOL_BIND
		      : !strncmp(arg, "preferred", 9)	? MPOL_PREFERRED
		      : !strncmp(arg, "interleave", 10) ? MPOL_INTERLEAVE
							: MPOL_DEFAULT;

	n = numbers(arg, node, 16, NULL);
	for (int i = 1; i < n; i++)
		mask |= 1ul << node[i];
	if (syscall(SYS_set_mempolicy, mode, mask ? &mask : NULL, mask ? 64ul : 0ul))
		die("set_mempolicy: %m");
}

/* As programs do, through libnuma: a raw system call nobody could notice. */
static void do_mbind(char *arg)
{
	typedef long mbind_call(void *, unsigned long, int, const unsigned long *, unsigned long,
				unsigned);
	unsigned long mask = 1ul << strtol(arg, NULL, 10);
	mbind_call *bind = dlopen("libnuma.so.1", RTLD_NOW | RTLD_GLOBAL)
			       ? (mbind_call *)dlsym(RTLD_DEFAULT, "mbind")
			       : NULL;

	for (size_t i = first_fresh; i < count; i++) {
		uintptr_t from = ((uintptr_t)object[i] + GUEST_PAGE - 1) & -GUEST_PAGE;
		uintptr_t to = ((uintptr_t)object[i] + object_size[i]) & -GUEST_PAGE;

		if (to > from &&
		    (!bind || bind((void *)from, to - from, MPOL_BIND, &mask, 64ul, MPOL_MF_MOVE)))
			die("mbind: %m");
	}
}

/* Every page of the fresh objects (large blocks have many), by node. */
static struct tally tally_fresh(void)
{
	struct tally t = {0};
	void *page[256];

	for (size_t i = first_fresh; i < count; i++) {
		size_t pages = 1 + (object_size[i] - 1) / GUEST_PAGE, n;

		if (pages == 1) {
			size_t run = i;

			while (run < count && object_size[run] <= GUEST_PAGE)
				run++;
			tally_objects(&t, object + i, run - i);
			i = run - 1;
			continue;
		}
		for (size_t j = 0; j < pages; j += n) {
			struct tally ignored = {0};

			n = pages - j < 256 ? pages - j : 256;
			for (size_t k = 0; k < n; k++)
				page[k] = (char *)object[i] + (j + k) * GUEST_PAGE;
			tally_objects(&ignored, page, n);
			for (int k = 0; k <= GUEST_NODES; k++)
				t.on[k] += ignored.on[k];
			t.total += n;
		}
	}
	return t;
}

static void ask_want(char *arg)
{
	long a[16];
	const char *name;
	int n = numbers(arg, a, 16, &name);
	struct tally t = tally_fresh();
	double share = 0;

	for (int i = 1; i < n; i++)
		share += tally_share(&t, a[i]);
	tally_note(&t, name);
	check(t.total && share >= a[0] - 1e-9, "%s: %.2f %% there >= %ld", name, share, a[0]);
}

static void ask_even(char *arg)
{
	long a[16];
	const char *name;
	int n = numbers(arg, a, 16, &name);
	struct tally t = tally_fresh();
	double share = 0, worst = 0;

	for (int i = 1; i < n; i++) {
		double here = tally_share(&t, a[i]), off = here - 100.0 / (n - 1);

		share += here;
		worst = off > worst ? off : -off > worst ? -off : worst;
	}
	tally_note(&t, name);
	check(t.total && share >= 99.99 && worst <= a[0],
	      "%s: %.2f %% on these nodes, at most %.1f points off even (%ld allowed)", name, share,
	      worst, a[0]);
}

static void ask_agree(char *arg)
{
	long percent = 0;
	const char *name;
	struct tally t = {0};
	double share;

	numbers(arg, &percent, 1, &name);
	if (!numaslab_node_of)
		die("%s: numaslab_node_of is there", name);
	tally_objects(&t, object + first_fresh, count - first_fresh);
	share = t.total ? 100.0 * t.disagree / t.total : 0;
	tally_note(&t, name);
	check(t.total && share <= percent + 1e-9,
	      "%s: node_of differs from the kernel for %.2f %% <= %ld", name, share, percent);
}

static int read_stats(struct numaslab_node_stats *stats, const char *name)
{
	if (numaslab_stats)
		return numaslab_stats(stats, GUEST_NODES);
	die("%s: numaslab_stats is there", name);
}

/*
 * Conservation; and for each node: out to us, as far as the kernel has it there, lies between what
 * is counted as used and that without what heaps hold ready, and what others freed into slabs that
 * nobody owns (telemetry/counters.h): so many per cent of what is held.
 */
static void ask_counters(char *arg)
{
	struct numaslab_node_stats stats[GUEST_NODES];
	uint64_t out[GUEST_NODES + 1] = {0};
	const char *name;
	long freed = 0;
	bool where = numbers(arg, &freed, 1, &name) == 1, sums = true;
	int n = read_stats(stats, name);

	for (size_t i = 0; i < count; i++) {
		int node = object_size[i] <= GUEST_PAGE ? landing_of(object[i]) : -1;

		out[node >= 0 ? node : GUEST_NODES] += malloc_usable_size(object[i]);
	}
	for (int i = 0; i < n; i++) {
		struct numaslab_node_stats *s = &stats[i];

		if (s->node < 0)
			continue;
		uint64_t ours = out[s->node];
		note("%s: node %d: ours %lu bytes; used %lu, of it cached %lu; held %lu", name,
		     s->node, ours, s->used_bytes, s->cached_bytes, s->held_bytes);
		sums &= s->slabs == s->active + s->partial + s->full + s->empty &&
			s->objects <= s->slots && s->cached_bytes <= s->used_bytes &&
			s->used_bytes <= s->capacity_bytes;
		/* 256 KiB: libc's and stdio's own objects, and pages in two slabs' bounds. */
		where &= ours <= s->used_bytes + (256 << 10) &&
			 s->used_bytes - s->cached_bytes <=
			     ours + (256 << 10) + s->held_bytes * (uint64_t)freed / 100;
	}
	check(n > 0 && sums, "%s: the counters add up", name);
	check(where, "%s: they count our objects on the nodes where the kernel has them", name);
}

static void ask_nodes(char *arg)
{
	struct numaslab_node_stats stats[GUEST_NODES];
	long a[16];
	const char *name;
	int want = numbers(arg, a, 16, &name), n = read_stats(stats, name), real = 0;
	bool same = true;

	for (int i = 0; i < n; i++) {
		if (stats[i].node < 0)
			continue;
		note("%s: numaslab_stats lists node %d", name, stats[i].node);
		same &= real < want && stats[i].node == a[real];
		real++;
	}
	check(same && real == want, "%s: numaslab_stats lists the nodes that have memory", name);
}

static void ask_enomem(char *arg)
{
	long node = 0, ooms = vmstat("oom_kill");
	const char *name;
	size_t from = count, bound;
	void *p = NULL;
	int error = 0;

	numbers(arg, &node, 1, &name);
	if (!numaslab_malloc_node)
		die("%s: numaslab_malloc_node is there", name);
	bound = count + node_kb(node, "MemTotal") * 1280 / 1024;
	while (count < bound) {
		p = numaslab_malloc_node(1000, node, NUMASLAB_THISNODE);
		error = errno;
		if (!keep(p, 1000))
			break;
	}
	check(!p && error == ENOMEM, "%s: ENOMEM at exhaustion (errno %d)", name, error);
	check(vmstat("oom_kill") == ooms, "%s: nobody was killed", name);
	while (count > from)
		free(object[--count]);
}

static void ask_einval(char *arg)
{
	const char *name;
	long node = 0;
	void *p;

	numbers(arg, &node, 1, &name);
	errno = 0;
	p = numaslab_malloc_node ? numaslab_malloc_node(100, node, 0) : arg;
	check(!p && errno == EINVAL, "%s: node %ld: %p, errno %d", name, node, p, errno);
}

static void do_filter(char *arg)
{
	filter_here(arg);
}

static void act(const char *verb, char *arg)
{
	static const struct {
		const char *verb;
		void (*run)(char *arg);
	} table[] = {
	    {"new", do_new},	    {"big", do_big},
	    {"on", do_on},	    {"fill", do_fill},
	    {"free", do_free},	    {"until", do_until},
	    {"do", do_command},	    {"policy", do_policy},
	    {"mbind", do_mbind},    {"filter", do_filter},
	    {"want", ask_want},	    {"even", ask_even},
	    {"agree", ask_agree},   {"counters", ask_counters},
	    {"nodes", ask_nodes},   {"enomem", ask_enomem},
	    {"einval", ask_einval},
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
		if (!strcmp(verb, table[i].verb))
			return table[i].run(arg);
	if (!strcmp(verb, "cpu"))
		pin_cpu(atoi(arg));
	else if (!strcmp(verb, "node"))
		pin_cpu(cpu_of_node(atoi(arg)));
	else if (!strcmp(verb, "fresh"))
		first_fresh = count;
	else if (!strcmp(verb, "trim"))
		malloc_trim(0);
	else
		die("an actor's verb: %s", verb);
}

int main(int argc, char **argv)
{
	guest_start();
	object = mmap(NULL, MAX_OBJECTS * 16, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (object == MAP_FAILED)
		die("mmap: %m");
	object_size = (uint32_t *)(object + MAX_OBJECTS);
	for (int i = 1; i < argc; i++)
		if (!strncmp(argv[i], "filter=", 7) && !getenv("GUEST_PROBE"))
			probe_start();
	for (int i = 1; i < argc; i++) {
		char *arg = strchr(argv[i], '=');

		if (arg)
			*arg++ = '\0';
		act(argv[i], arg ? arg : argv[i] + strlen(argv[i]));
	}
	return 0;
}
