/* SPDX-License-Identifier: MIT */
/*
 * SIGKILL and SIGSTOP at any instruction.  The writer is single-stepped through publishing, slabs'
 * births and deaths, a large block, and a tick; after each instruction the file as it stands, which
 * is what a kill would leave, must be readable and sound.  Then a reader is single-stepped, and the
 * writer must go on whatever the reader was at.
 */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/telemetry/fake.h"
#include "tests/telemetry/folder.h"
#include "tests/telemetry/tap.h"
#include "tools/reader.h"

#define STEPS_MAX 2000000

static const char *dir;
static char sub[80], path[600];
static unsigned long steps, looks, unreadable, unsound, pieces, strange;

static bool find_file(void)
{
	struct dirent *e;
	DIR *d = opendir(sub);

	*path = 0;
	while (d && (e = readdir(d)))
		if (!strchr(e->d_name, '.'))
			snprintf(path, sizeof path, "%s/%s", sub, e->d_name);
	if (d)
		closedir(d);
	return *path;
}

static bool is_sound(const struct reader_snapshot *s)
{
	for (unsigned i = 0; i < s->pools; i++) {
		const struct reader_counts *c = &s->pool[i].sum;
		uint64_t used = 0;

		for (unsigned cls = 0; cls < s->classes; cls++)
			used += s->count[i * s->classes + cls].used_bytes;
		if (used != c->used_bytes || c->counter[COUNT_active] > 2 ||
		    (s->pool[i].node >= 0 && c->counter[COUNT_used] > c->counter[COUNT_slots]))
			return false;
	}
	return true;
}

/* Entries of the test's writer: used bytes follow from the objects of class 5 alone. */
static bool is_whole(const struct reader_point *p, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		if (p->pool[i].node >= 0 &&
		    p->pool[i].sum.used_bytes != p->pool[i].sum.counter[COUNT_used] * class_size(5))
			return false;
	return true;
}

/*
 * What the test's writer can have at most.  Inner words of a slab that is just coming or going may
 * stand alone for a moment.
 */
static bool is_sane_map(const struct reader_map *m)
{
	uint64_t slabs = 0, used = 0, large = 0;

	for (size_t i = 0; i < m->count; i++) {
		const struct reader_unit *u = &m->unit[i];
		bool slab = u->state != READER_UNIT_LARGE && u->state != READER_UNIT_FREE &&
			    u->state != READER_UNIT_EMPTY;

		slabs += slab;
		used += slab ? u->used : 0;
		large += u->state == READER_UNIT_LARGE;
		if (slab && (u->pool != 0 || u->generation != 1 || u->misplaced ||
			     (u->cls != 5 && u->cls != CLASS_WIDE_FIRST)))
			return false;
	}
	return m->there && slabs >= 1 && slabs <= 2 && used >= 10 && used <= 10 + 700 &&
	       large <= 1 && m->odd <= 7 && m->lost == 0;
}

static void look(struct reader *r)
{
	static struct reader_snapshot s;
	static struct reader_map m;
	struct reader_history h = {0};

	looks++;
	if (reader_snapshot(r, &s) != READER_OK || reader_history(r, 0, 3, &h) != READER_OK)
		unreadable++;
	else
		unsound += !is_sound(&s);
	if (reader_map(r, &m) != READER_OK)
		unreadable++;
	else
		strange += !is_sane_map(&m);
	for (size_t i = 0; i < h.count; i++)
		pieces += !is_whole(&h.point[i], h.pools);
	reader_history_free(&h);
}

static void open_and_look(void)
{
	char why[READER_WHY_SIZE];
	struct reader *r;

	if (!find_file())
		return;
	if (reader_open(&r, path, why) != READER_OK) {
		unreadable++;
		return;
	}
	look(r);
	reader_close(r);
}

/* Steps the child until it stops by itself; false: it ended. */
static bool step_until_stop(pid_t child, unsigned every, void (*at_step)(void *), void *data)
{
	int status;

	for (unsigned long i = 0; i < STEPS_MAX; i++) {
		if (ptrace(PTRACE_SINGLESTEP, child, 0, 0) < 0 || waitpid(child, &status, 0) < 0 ||
		    !WIFSTOPPED(status))
			return false;
		steps++;
		if (WSTOPSIG(status) == SIGSTOP)
			return true;
		if (i % every == 0)
			at_step(data);
	}
	return false;
}

static void at_publish(void *data)
{
	(void)data;
	open_and_look();
}

static void at_work(void *data)
{
	look(data);
}

static void be_writer(void)
{
	ptrace(PTRACE_TRACEME, 0, 0, 0);
	fake_init(1, sub);
	fake_slab_born(0, 5, 10);
	raise(SIGSTOP);
	telemetry_tick(1000); /* publishes */
	raise(SIGSTOP);
	fake_slab_dies(fake_slab_born(0, 5, 700), true);
	fake_slab_dies(fake_slab_born(0, CLASS_WIDE_FIRST, 1), false);
	fake_large(9);
	telemetry_tick(2000);
	telemetry_tick(3000);
	raise(SIGSTOP);
	_exit(0);
}

static void step_writer(void)
{
	char why[READER_WHY_SIZE];
	struct reader *r = NULL;
	int status;
	pid_t child = fork();

	if (child == 0)
		be_writer();
	waitpid(child, &status, 0);
	bool done = step_until_stop(child, 7, at_publish, NULL);
	ok(done && find_file(), "stepped through publishing (%lu instructions, %lu looks)", steps,
	   looks);
	ok(looks > 0 && unreadable == 0, "a file that has its name is whole at each instruction");
	if (!find_file() || reader_open(&r, path, why) != READER_OK)
		return;
	steps = looks = 0;
	done = step_until_stop(child, 1, at_work, r);
	ok(done && looks > 10000, "stepped through a slab's life and two ticks (%lu looks)", looks);
	ok(unreadable == 0, "the file is readable at each instruction");
	ok(unsound == 0, "conservation holds at each instruction");
	ok(pieces == 0, "no entry of the history is seen in pieces");
	ok(strange == 0, "the map shows no slab that there never was");
	struct reader_map m = {0};
	reader_map(r, &m);
	ok(m.odd == 0 && m.pool[0].state[READER_UNIT_ACTIVE] == 1 && m.pool[0].used == 10 &&
	       m.pool[0].state[READER_UNIT_EMPTY] == 1 && m.pool[0].state[READER_UNIT_FREE] == 8 &&
	       m.pool[1].large_units == 9,
	   "at the end the map is exact");
	reader_map_free(&m);
	ok(reader_is_live(r), "the stopped writer is alive by its lock");
	kill(child, SIGKILL);
	waitpid(child, &status, 0);
	ok(!reader_is_live(r), "killed, it is not");
	look(r);
	ok(unreadable == 0, "what it left is read");
	reader_close(r);
	ok(reader_open(&r, path, why) == READER_OK, "and opened");
	reader_close(r);
	unlink(path);
}

static uint64_t now = 10000;
static unsigned long stalls;

static void at_reader_step(void *data)
{
	struct reader *r = data;
	struct reader_history before = {0}, after = {0};

	reader_history(r, 0, 1, &before);
	telemetry_tick(now++);
	reader_history(r, 0, 1, &after);
	looks++;
	if (!after.count || !before.count || after.point[0].entry <= before.point[0].entry)
		stalls++;
	reader_history_free(&before);
	reader_history_free(&after);
}

static void be_reader(void)
{
	char why[READER_WHY_SIZE];
	struct reader_history h = {0};
	struct reader *r;

	ptrace(PTRACE_TRACEME, 0, 0, 0);
	if (reader_open(&r, path, why) != READER_OK)
		_exit(1);
	raise(SIGSTOP);
	reader_history(r, 0, 20, &h);
	raise(SIGSTOP);
	_exit(0);
}

static void step_reader(void)
{
	char why[READER_WHY_SIZE];
	struct reader *r;
	int status;

	steps = looks = 0;
	fake_init(1, sub);
	for (int i = 0; i < 100; i++)
		telemetry_tick(now++);
	if (!ok(find_file() && reader_open(&r, path, why) == READER_OK, "a writer of our own"))
		return;
	pid_t child = fork();
	if (child == 0)
		be_reader();
	waitpid(child, &status, 0);
	bool done = step_until_stop(child, 3, at_reader_step, r);
	ok(done && looks > 500, "stepped through a reader of 20 entries (%lu looks)", looks);
	ok(stalls == 0, "the writer goes on at each instruction of it");
	kill(child, SIGKILL);
	waitpid(child, &status, 0);
	telemetry_tick(now++);
	reader_close(r);
}

int main(void)
{
	if (!(dir = folder_make("/tmp/numaslab-steps-XXXXXX")))
		return 1;
	snprintf(sub, sizeof sub, "%s/files", dir);
	pid_t probe = fork();
	int status;
	if (probe == 0)
		_exit(ptrace(PTRACE_TRACEME, 0, 0, 0) < 0);
	waitpid(probe, &status, 0);
	if (status) {
		printf("1..0 # SKIP ptrace is not permitted: %s\n", strerror(errno));
		return 0;
	}
	step_writer();
	step_reader();
	status = tap_end();
	folder_remove();
	return status;
}
