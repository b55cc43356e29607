/* SPDX-License-Identifier: MIT */
/* Counters and the slab map: what two threads do, interleaved at each instruction; and a fork. */
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "telemetry/pub.h"
#include "tests/telemetry/fake.h"
#include "tests/telemetry/folder.h"
#include "tests/telemetry/tap.h"

#if !defined(__x86_64__)
int main(void)
{
	puts("1..0 # SKIP the trap flag is known on x86-64 only");
	return 0;
}
#else

#include "tests/telemetry/interleave.h"

/* --- The mirror. --- */

static void add_one(void)
{
	fake_add(0, 5, COUNT_used, 1);
}

static void add_two(void)
{
	fake_add(0, 5, COUNT_used, 2);
}

static void mirror(void)
{
	uint64_t *live = atomic_load(&telemetry_words->live);
	unsigned long k = 0, wrong = 0;

	if (!ok(live != NULL, "it publishes"))
		return;
	for (; interleave(add_one, add_two, k); k++)
		wrong += ring_load(&live[5 * RING_ROW_WORDS + COUNT_used]) !=
			 atomic_load(&pools[0].count[5][COUNT_used]);
	ok(k > 20, "a change inside a change, at each of %lu instructions", k);
	ok_equal((long long)wrong, 0, "the mirror is exact afterwards");
}

/* --- The slab map. --- */

static struct slab *slab, *fresh;
static unsigned used;

static void use_more(void)
{
	fake_slab_use(slab, ++used);
}

/* What may become of a unit, by its one owner, while one that let go of it still stores its word.
 */
static void live_on(void)
{
	fake_slab_dies(slab, used % 2);
	slab_init(slab, 1 + used % 9, 0);
	slab_set_part(slab, UNIT_FIRST);
	telemetry_map_own(slab);
	used = used * 7 % 300;
	fake_slab_use(slab, used);
}

static void map_again(void)
{
	telemetry_map(slab);
}

static void map_fresh(void)
{
	telemetry_map(fresh);
}

static void map_beside(void)
{
	telemetry_map(fresh + 1);
}

static void map(void)
{
	unsigned long k = 0, wrong = 0, pages;

	slab = fake_slab_born(0, 5, 1);
	for (; interleave(map_again, live_on, k); k++)
		wrong += fake_map_word(slab) != fake_map_truth(slab);
	ok(k > 20, "a slab dies and is born inside a store, at each of %lu instructions", k);
	ok_equal((long long)wrong, 0, "the word is of the last one");
	wrong = 0;
	for (k = 0; interleave(live_on, map_again, k); k++)
		wrong += fake_map_word(slab) != fake_map_truth(slab);
	ok(k > 100, "a store inside its death and birth, at each of %lu instructions", k);
	ok_equal((long long)wrong, 0, "the word is of the last one, too");
	wrong = 0;
	for (k = 0; interleave(use_more, map_again, k); k++)
		wrong += fake_map_word(slab) != fake_map_truth(slab);
	ok_equal((long long)wrong, 0, "and where its use changed");
	wrong = 0;
	for (k = 0, fresh = pools[0].window.first; k < 31; k++) {
		fresh += RING_MAP_UNITS;
		slab_write(fresh[0].part, UNIT_KEPT);
		slab_write(fresh[1].part, UNIT_KEPT);
		/* The same stretch is asked for twice: places in a page's giving. */
		pages = 3 * k;
		interleave(map_fresh, map_beside, pages);
		wrong += fake_map_word(&fresh[0]) != fake_map_truth(&fresh[0]) ||
			 fake_map_word(&fresh[1]) != fake_map_truth(&fresh[1]);
	}
	ok_equal((long long)wrong, 0, "two ask for the same page, and both are on it");
}

/* --- Pushes. --- */

static unsigned push_step;

/* True: a whole step by now. */
static bool push(struct slab *s, unsigned step)
{
	uint64_t w = atomic_load(&s->remote);

	if (remote_state(w) != SLAB_LISTED || remote_count(w) >= remote_used(w))
		return false;
	return atomic_compare_exchange_strong(&s->remote, &w, remote_push(w, 1)) &&
	       (remote_count(w) + 1) % step == 0;
}

static void push_one(void)
{
	unsigned step = slab->step, cls = slab->cls;

	if (push(slab, step))
		tally_pushed(0, cls, slab, step);
}

static void push_two(void)
{
	push_one();
	push_one();
}

static void list_it(void)
{
	slab_set_listed(slab);
	tally_row(0, slab->cls, {COUNT_active, -1}, {COUNT_partial, 1});
	telemetry_map(slab);
}

static void own_it(void)
{
	slab_set_owned(slab);
	tally_row(0, slab->cls, {COUNT_partial, -1}, {COUNT_active, 1});
	telemetry_map_own(slab);
}

/* Owned, with something out, some of it pushed before. */
static void make_owned(void)
{
	if (remote_state(atomic_load(&slab->remote)) == SLAB_LISTED)
		own_it();
	atomic_store(&slab->remote, remote_push(remote_taken(atomic_load(&slab->remote)), 1));
	slab->step = (uint16_t)push_step;
	slab->base = 99;
	slab->left = 1;
	fake_slab_use(slab, 100);
}

static void make_listed(void)
{
	make_owned();
	list_it();
}

/* It is taken, dies, and is born as another one. */
static void take_and_live_on(void)
{
	if (remote_state(atomic_load(&slab->remote)) == SLAB_LISTED)
		own_it();
	live_on();
}

static bool is_exact(void)
{
	uint64_t *live = atomic_load(&telemetry_words->live);
	bool exact = fake_map_word(slab) == fake_map_truth(slab);

	for (unsigned cls = 0; cls < 12; cls++)
		for (unsigned c = 0; c < COUNTER_COUNT; c++)
			exact &= ring_load(&live[cls * RING_ROW_WORDS + c]) ==
				 atomic_load(&pools[0].count[cls][c]);
	return exact;
}

static void pushes(void)
{
	static const struct {
		const char *name;
		void (*prepare)(void), (*one)(void), (*two)(void);
	} pairs[] = {
	    {"pushes inside a push", make_listed, push_one, push_two},
	    {"pushes inside its listing", make_owned, list_it, push_two},
	    {"pushes as it is taken", make_listed, own_it, push_two},
	    {"it is taken inside a push", make_listed, push_one, own_it},
	    {"it is taken, dies and is born inside a push", make_listed, push_one,
	     take_and_live_on},
	    {"it is taken, fills and is listed again inside a push", make_listed, push_one,
	     make_listed},
	    {"pushes as it is taken, dies and is born", make_listed, take_and_live_on, push_two},
	};

	for (unsigned i = 0; i < 2 * sizeof pairs / sizeof *pairs; i++) {
		unsigned long k = 0, wrong = 0;
		bool more = true;

		push_step = 1 + i % 2;

		for (; more; k++) {
			slab = k % 50 ? slab : fake_slab_born(0, 5, 1);
			pairs[i / 2].prepare();
			more = interleave(pairs[i / 2].one, pairs[i / 2].two, k);
			wrong += !is_exact();
		}
		ok(wrong == 0 && k > 30,
		   "%s, at each of %lu instructions: map and counters are exact, steps of %u",
		   pairs[i / 2].name, k, push_step);
	}
}

/* --- A fork beside a thread's first tick. --- */

#define FIRST_INSTRUCTIONS 400 /* of the first tick; then it makes files, and none of its own */
#define FIRST_STRIDE	   3

static int told;

/* The child that has this thread alone publishes as any. */
static void fork_here(void)
{
	pid_t child = fork();

	if (child == 0) {
		telemetry_fork_child();
		telemetry_tick(1000);
		telemetry_tick(2000);
		_exit(atomic_load(&telemetry_words->live) == NULL);
	}
	waitpid(child, &told, 0);
}

static void first_tick(void)
{
	telemetry_tick(1000);
}

static void fork_in_first_tick(const char *dir)
{
	unsigned long silent = 0, forks = 0;

	for (unsigned long k = 0; k < FIRST_INSTRUCTIONS; k += FIRST_STRIDE) {
		int status;
		pid_t child = fork();

		if (child == 0) {
			fake_init(1, dir);
			told = -1;
			interleave(first_tick, fork_here, k);
			_exit(told != 0);
		}
		waitpid(child, &status, 0);
		forks++;
		silent += status != 0;
	}
	ok(silent == 0, "a child forked beside the first tick publishes (%lu of %lu did not)",
	   silent, forks);
}

int main(void)
{
	const char *dir;
	char sub[80];

	if (!(dir = folder_make("/tmp/numaslab-inter-XXXXXX")))
		return 1;
	snprintf(sub, sizeof sub, "%s/files", dir);
	interleave_start();
	fork_in_first_tick(sub);
	fake_init(1, sub);
	telemetry_tick(1000);
	mirror();
	map();
	pushes();
	int status = tap_end();
	folder_remove();
	return status;
}
#endif
