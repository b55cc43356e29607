/* SPDX-License-Identifier: MIT */
/*
 * An independent audit: a process that works its heap hard with many threads is stopped; its heap
 * is walked from outside (outside.c), and what it publishes, counters and map, must say the same;
 * and the kernel must hold as many pages as it says are held.  The plain topology and four nodes.
 */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/telemetry/outside.h"
#include "tests/telemetry/folder.h"
#include "tests/telemetry/tap.h"
#include "tools/reader.h"

struct layout layout; /* of nobody: sizes and states alone are used here */

static const char *dir;
static char library[4096], program[4096];
static const char *topology_text, *publish_after = "0";

/* --- The process. --- */

static pid_t pid;
static FILE *say, *answer;
static unsigned long held_by_program[CLASS_COUNT], large_by_program;

static void start(const char *folder)
{
	int in[2], out[2];

	if (pipe(in) < 0 || pipe(out) < 0 || (pid = fork()) < 0)
		exit(1);
	if (pid == 0) {
		setenv("LD_PRELOAD", library, 1);
		setenv("NUMASLAB_DIR", folder, 1);
		setenv("NUMASLAB_PUBLISH_AFTER_MS", publish_after, 1);
		if (topology_text)
			setenv("NUMASLAB_TOPOLOGY", topology_text, 1);
		dup2(in[0], 0);
		dup2(out[1], 1);
		close(in[1]);
		close(out[0]);
		alarm(300);
		execl(program, program, NULL);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	say = fdopen(in[1], "w");
	answer = fdopen(out[0], "r");
}

/* What it holds comes back. */
static bool tell(const char *line)
{
	unsigned long usable, blocks;
	char text[64];

	memset(held_by_program, 0, sizeof held_by_program);
	large_by_program = 0;
	fprintf(say, "%s\n", line);
	fflush(say);
	while (fgets(text, sizeof text, answer)) {
		if (!strcmp(text, "end\n"))
			return true;
		if (sscanf(text, "%lu %lu", &usable, &blocks) != 2)
			return false;
		if (usable > CLASS_SIZE_MAX)
			large_by_program += blocks;
		else
			held_by_program[class_of(usable)] += blocks;
	}
	return false;
}

static bool halt(void)
{
	int status;

	return kill(pid, SIGSTOP) == 0 && waitpid(pid, &status, WUNTRACED) == pid &&
	       WIFSTOPPED(status);
}

static struct reader *open_file(const char *folder)
{
	char path[600], why[READER_WHY_SIZE] = "no file";
	struct dirent *e;
	struct reader *r = NULL;
	DIR *d = opendir(folder);

	while (d && !r && (e = readdir(d)))
		if (e->d_name[0] >= '0' && e->d_name[0] <= '9' && !strchr(e->d_name, '.')) {
			snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
			if (reader_open(&r, path, why) != READER_OK)
				r = NULL;
		}
	if (d)
		closedir(d);
	if (!r && d)
		printf("# %s\n", why);
	return r;
}

/* --- At rest: all of it. --- */

static void counters_agree(const struct outside *o, const struct reader_snapshot *s)
{
	static const enum counter exact[] = {COUNT_active, COUNT_partial,  COUNT_full,
					     COUNT_empty,  COUNT_slots,	   COUNT_used,
					     COUNT_held,   COUNT_misplaced};
	unsigned long wrong = 0, compared = 0;

	for (unsigned i = 0; i < s->pools; i++)
		for (unsigned cls = 0; cls < CLASS_COUNT; cls++)
			for (unsigned k = 0; k < sizeof exact / sizeof *exact; k++) {
				int64_t walk = o->count[i][cls][exact[k]];
				uint64_t told = s->count[i * CLASS_COUNT + cls].counter[exact[k]];

				compared += walk != 0;
				if (walk == (int64_t)told)
					continue;
				if (wrong++ < 10)
					printf(
					    "# pool %u class %u counter %u: walk %ld, file %lu\n",
					    i, cls, exact[k], (long)walk, (unsigned long)told);
			}
	ok(wrong == 0 && compared > 50,
	   "slabs by state, room, use and memory of each node and class are the walk's (%lu words)",
	   compared);
}

static void map_agrees(const struct outside *o, const struct reader_map *m)
{
	unsigned long wrong = 0, words = 0, at = 0;
	size_t window = (size_t)1 << (o->layout.window_shift - UNIT_SHIFT);

	for (unsigned i = 0; i <= o->nodes; i++)
		for (size_t u = 0; u < o->top[i]; u++) {
			uint64_t w = outside_word(o, i, u), told = 0;
			uint32_t unit = (uint32_t)(i * window + u);

			while (at < m->count && m->unit[at].unit + m->unit[at].units <= unit)
				at++;
			const struct reader_unit *x = &m->unit[at];
			if (at < m->count && x->unit <= unit) {
				bool first = x->unit == unit, slab = x->state >= 1 && x->state <= 3;

				if (x->state == READER_UNIT_LARGE)
					told = first ? (uint64_t)x->units << 32 | x->pool << 16 | 6
						     : 0;
				else if (x->state == READER_UNIT_EMPTY)
					told = x->pool << 16 | 4;
				else if (slab && !first)
					told = (uint64_t)(unit - x->unit) << 32 | 5;
				else if (slab)
					told = (uint64_t)x->used << 32 | x->pool << 16 |
					       x->cls << 8 | x->misplaced << 3 | x->state;
				if (slab && first)
					wrong += x->generation != o->slab[i][u].births;
			}
			words += w != 0;
			if (w != told && wrong++ < 10)
				printf("# pool %u unit %zu: walk %lx, map %lx\n", i, u,
				       (unsigned long)w, (unsigned long)told);
		}
	ok(wrong == 0 && words > 100 && m->odd == 0 && m->lost == 0,
	   "the map has each unit as the walk found it (%lu words)", words);
}

static void sums_agree(const struct reader_snapshot *s, const struct reader_map *m)
{
	bool good = true;

	for (unsigned i = 0; i < s->pools; i++) {
		const struct reader_map_sum *sum = &m->pool[i];
		const uint64_t *n = s->pool[i].sum.counter;

		if (s->pool[i].node < 0)
			good &= sum->state[READER_UNIT_LARGE] == n[COUNT_active];
		else
			good &= sum->state[READER_UNIT_ACTIVE] == n[COUNT_active] &&
				sum->state[READER_UNIT_PARTIAL] == n[COUNT_partial] &&
				sum->state[READER_UNIT_FULL] == n[COUNT_full] &&
				sum->state[READER_UNIT_EMPTY] == n[COUNT_empty] &&
				sum->used == n[COUNT_used] && sum->misplaced == n[COUNT_misplaced];
	}
	ok(good, "the map's sums are the counters");
}

/* Blocks that are really out: the program's own, and a few of libc's and the loader's. */
static void blocks_agree(const struct outside *o, const struct reader_snapshot *s)
{
	unsigned long strays = 0, missing = 0, blocks = 0, used = 0, behind = 0;
	uint64_t cached = 0, ready = 0;

	for (unsigned cls = 1; cls < CLASS_COUNT; cls++) {
		if (o->out[cls] < held_by_program[cls] && missing++ < 5)
			printf("# class %u: %lu out, the program has %lu\n", cls,
			       (unsigned long)o->out[cls], held_by_program[cls]);
		strays += o->out[cls] - held_by_program[cls];
		blocks += held_by_program[cls];
		ready += o->ready[cls];
		behind += o->behind[cls];
		for (unsigned i = 0; i < o->nodes; i++) {
			used += s->count[i * CLASS_COUNT + cls].counter[COUNT_used];
			cached += s->count[i * CLASS_COUNT + cls].counter[COUNT_cached];
		}
	}
	ok(o->torn == 0, "every list ends, every block is in one place");
	ok(missing == 0 && strays < 1000,
	   "the blocks that are out are the program's %lu (and %lu of the system's)", blocks,
	   strays);
	ok(used == blocks + strays + ready + behind && o->astray == 0 &&
	       o->lately <= 5 + blocks / 5000,
	   "used = out + ready in heaps + frees not looked at yet (%lu = %lu + %lu + %lu), "
	   "within what is documented of each slab",
	   used, blocks + strays, (unsigned long)ready, behind);
	ok(ready <= cached, "cached is at least what is ready (%lu, %lu)", (unsigned long)cached,
	   (unsigned long)ready);
}

static void pages_agree(const struct outside *o, const struct reader_snapshot *s)
{
	for (unsigned i = 0; i <= o->nodes; i++) {
		struct outside_pages p = outside_pages(o, i);
		int64_t held = 0;

		for (unsigned k = 0; k < o->nodes + 1; k++)
			for (size_t u = 0; k == i && u < o->top[k]; u++)
				held +=
				    __builtin_popcount(o->slab[k][u].resident) * (int64_t)GRANULE;
		if (p.rss < 0 || p.swapped > 0) {
			ok(true, "pages of window %u # SKIP smaps cannot be read, or tells of swap",
			   i);
			continue;
		}
		if (i == o->nodes) {
			int64_t most = (int64_t)s->pool[i].sum.counter[COUNT_used] + held;

			ok(p.rss <= most && (p.numa < 0 || p.numa <= most),
			   "large blocks have at most the pages that they and what is kept can "
			   "have (%ld of %ld)",
			   (long)p.rss, (long)most);
			continue;
		}
		ok(p.rss == held, "window %u: smaps has what is held, byte by byte (%ld, %ld)", i,
		   (long)p.rss, (long)held);
		if (p.rss != held)
			outside_say_pages(o, i);
		if (p.numa < 0)
			ok(true, "numa_maps # SKIP this kernel has none");
		else
			ok(p.numa == held, "window %u: and so has numa_maps (%ld)", i,
			   (long)p.numa);
	}
}

static int64_t held_in_file(const struct reader_snapshot *s)
{
	int64_t held = 0;

	for (unsigned i = 0; i < s->pools; i++)
		held += (int64_t)s->pool[i].sum.counter[COUNT_held];
	return held;
}

static void audit(struct reader *r, const char *what)
{
	static struct outside o;
	struct reader_snapshot s = {0};
	struct reader_map m = {0};
	const char *why = "";
	int64_t held = 0;

	printf("# %s\n", what);
	if (!ok(halt() && outside_open(&o, pid, library, &why), "stopped, and looked into (%s)",
		why)) {
		kill(pid, SIGCONT);
		return;
	}
	outside_walk(&o, true);
	ok(reader_snapshot(r, &s) == READER_OK && reader_map(r, &m) == READER_OK && m.there,
	   "its file is read");
	counters_agree(&o, &s);
	map_agrees(&o, &m);
	sums_agree(&s, &m);
	blocks_agree(&o, &s);
	for (unsigned i = 0; i <= o.nodes; i++)
		for (unsigned cls = 0; cls < CLASS_COUNT; cls++)
			held += o.count[i][cls][COUNT_held];
	ok_equal(held_in_file(&s), held, "held in all is the walk's");
	pages_agree(&o, &s);
	outside_close(&o);
	reader_snapshot_free(&s);
	reader_map_free(&m);
	kill(pid, SIGCONT);
}

/* --- In the midst of work. --- */

#define STOPS	 25
#define UNDERWAY 8 /* threads that can be in a transition; each changes one slab at a time */

/*
 * Each thread is at most in one transition: so many units may be said wrong, and of those that a
 * thread is taking or giving back, all units of one slab.
 */
static unsigned units_astray(const struct outside *o, const struct reader_map *m)
{
	unsigned astray = 0;
	size_t at = 0, window = (size_t)1 << (o->layout.window_shift - UNIT_SHIFT);

	for (unsigned i = 0; i < o->nodes; i++)
		for (size_t u = 0; u < o->top[i]; u++) {
			const struct slab *s = &o->slab[i][u];
			uint32_t unit = (uint32_t)(i * window + u);

			while (at < m->count && m->unit[at].unit + m->unit[at].units <= unit)
				at++;
			bool there = at < m->count && m->unit[at].unit == unit;
			const struct reader_unit *x = &m->unit[at];
			bool slab = there && x->state >= 1 && x->state <= 3;

			if (slab != (s->part == UNIT_FIRST))
				astray++;
			else if (slab)
				astray += (outside_word(o, i, u) & 0xffffffff0000ffff) !=
					  ((uint64_t)x->used << 32 | x->cls << 8 |
					   x->misplaced << 3 | x->state);
		}
	return astray;
}

static void in_the_midst(struct reader *r)
{
	static struct outside o;
	struct reader_map m = {0};
	unsigned most = 0, stops = 0;
	const char *why;

	tell("run");
	for (unsigned i = 0; i < STOPS; i++) {
		usleep(3000 + i * 977); /* anywhere; nothing depends on where */
		if (!halt())
			break;
		if (outside_open(&o, pid, library, &why) && reader_map(r, &m) == READER_OK) {
			unsigned astray = units_astray(&o, &m);

			most = astray > most ? astray : most;
			stops++;
		}
		outside_close(&o);
		kill(pid, SIGCONT);
	}
	ok_equal(stops, STOPS, "stopped in the midst of work");
	ok(most <= UNDERWAY * WIDE_SLAB_UNITS,
	   "only what is under way is said as it was, or will be (%u units at most)", most);
	reader_map_free(&m);
	ok(tell("rest"), "at rest again");
}

static void round_of(const char *name, const char *nodes)
{
	char folder[80];

	topology_text = nodes;
	snprintf(folder, sizeof folder, "%s/%s", dir, name);
	start(folder);
	if (!ok(tell("work 200000"), "%s: a process works its heap", name))
		return;
	struct reader *r = open_file(folder);
	if (ok(r != NULL, "and publishes")) {
		audit(r, "after work");
		tell("large");
		tell("free 3");
		audit(r, "after frees by the first thread, and large blocks");
		in_the_midst(r);
		audit(r, "after the midst of work");
		tell("free 1");
		audit(r, "after everything was freed");
	}
	reader_close(r);
	fclose(say);
	fclose(answer);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* It begins to publish while its threads are at work: what was before is walked beside them. */
static void late(void)
{
	struct reader *r = NULL;
	char folder[80];

	publish_after = "300";
	for (unsigned i = 0; i < 5; i++) {
		snprintf(folder, sizeof folder, "%s/late-%u", dir, i);
		start(folder);
		tell("run");
		for (unsigned k = 0; k < 3000 && !r; k++) {
			usleep(10000); /* until it is there */
			r = open_file(folder);
		}
		if (ok(r != NULL, "it publishes while its threads work") && tell("rest"))
			audit(r, "after it");
		reader_close(r);
		r = NULL;
		fclose(say);
		fclose(answer);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
}

int main(void)
{
	const char *build = getenv("BUILD") ? getenv("BUILD") : "build";
	char relative[4096];

	snprintf(relative, sizeof relative, "%s/libnumaslab.so", build);
	snprintf(program, sizeof program, "%s/tests/telemetry/audited", build);
	if (!realpath(relative, library) || access(program, X_OK) < 0 ||
	    !(dir = folder_make("/dev/shm/numaslab-audit-XXXXXX"))) {
		printf("1..0 # SKIP no %s\n", relative);
		return 0;
	}
	signal(SIGPIPE, SIG_IGN);
	alarm(600);
	round_of("plain", NULL);
	round_of("nodes", "0:4G@0;1:4G@1;2:4G@2;3:4G@3");
	late();
	int status = tap_end();
	folder_remove();
	return status;
}
