/* SPDX-License-Identifier: MIT */
/*
 * The slab's state machine: every interleaving of small programs of three actors (an owner, a
 * foreign freer, a refiller), step by step as release.c, refill.c and node.c take them, with a
 * ghost account of where each block is.  (tests/model/ splits the compare-and-swaps too.)
 */
#include "tests/unit/slab_world.h"

#define WIDE   (CLASS_COUNT - 1) /* 64 KiB blocks, eight to a slab */
#define BLOCKS 3u

enum place { WITH, PROGRAM, LOCAL, REMOTE };

/* Everything a schedule may change. */
struct world {
	struct slab slab;
	uint64_t link[BLOCKS];
	uint8_t place[BLOCKS]; /* enum place */
	int owner;	       /* actor, or -1 */
	bool on_list;	       /* the node's */
	bool dead;
	uint8_t pc[3], reg[3]; /* each actor's next step and what it remembers */
	uint8_t next_free[3];  /* the next of its blocks */
	uint8_t turns[3];      /* refills so far */
	uint8_t leaving;       /* the owner is in slab_retire(): 1 looked, 2 not the owner now */
};

struct actor;
typedef bool step_fn(struct world *w, unsigned actor); /* false: cannot go on now */

static struct world now;
static unsigned long schedules, steps;
static unsigned long saw_enough, saw_last, saw_adopt, saw_take, saw_refused, saw_dead, saw_wait;

static void *block_at(unsigned i)
{
	return (void *)(slab_addr(&table[0]) + (size_t)i * table[0].size);
}

static unsigned block_number(uintptr_t at)
{
	return (unsigned)((at - slab_addr(&table[0])) / table[0].size);
}

static void save(struct world *w)
{
	w->slab = table[0];
	for (unsigned i = 0; i < BLOCKS; i++)
		w->link[i] = *(uint64_t *)block_at(i);
}

static void restore(const struct world *w)
{
	table[0] = w->slab;
	for (unsigned i = 0; i < BLOCKS; i++)
		*(uint64_t *)block_at(i) = w->link[i];
}

/* The list's blocks change place. */
static void list_moves(struct world *w, uintptr_t first, unsigned n, uint8_t from, uint8_t to)
{
	assert_int_equal(list_walk(&table[0], first), n);
	for (; slab_has(&table[0], first); first = link_read((void *)first)) {
		assert_int_equal(w->place[block_number(first)], from);
		w->place[block_number(first)] = to;
	}
}

static unsigned count_in(const struct world *w, uint8_t place)
{
	unsigned n = 0;

	for (unsigned i = 0; i < BLOCKS; i++)
		n += w->place[i] == place;
	return n;
}

static void dies(struct world *w)
{
	assert_false(w->dead);
	assert_int_equal(count_in(w, PROGRAM), 0);
	w->dead = true;
	w->owner = -1;
	saw_dead++;
}

/* pool_list_slab(), one critical section. */
static void list_slab(struct world *w)
{
	uint64_t word = slab_set_listed(&table[0]);

	assert_false(w->on_list);
	if (!remote_is_empty(word)) {
		w->on_list = true;
		return;
	}
	slab_set_owned(&table[0]);
	dies(w);
}

/* pool_reap_slab() */
static void reap_slab(struct world *w)
{
	if (w->dead || !remote_is_empty(table[0].remote))
		return;
	assert_true(w->on_list);
	w->on_list = false;
	slab_set_owned(&table[0]);
	dies(w);
}

/*
 * An actor frees its blocks one after another: 0 look at the word, 1 claim or push, 2 what the push
 * asks for.  `adopts`: it runs on the slab's node.
 */
static bool free_step(struct world *w, unsigned me, const uint8_t *mine, unsigned n, bool adopts)
{
	struct slab *s = &table[0];
	unsigned i = w->next_free[me], node;

	if (i == n)
		return false;
	switch (w->pc[me]) {
	case 0:
		if (w->owner == (int)me) { /* free_own */
			link_write(block_at(mine[i]), s->free);
			s->free = (uintptr_t)block_at(mine[i]);
			set_used(s, slab_used(s) - 1);
			assert_int_equal(w->place[mine[i]], PROGRAM);
			w->place[mine[i]] = LOCAL;
			w->next_free[me]++;
			return true;
		}
		w->reg[me] = remote_state(s->remote) == SLAB_FULL;
		w->pc[me] = 1;
		return true;
	case 1:
		if (w->reg[me] && adopts && slab_claim_full(s)) {
			link_write(block_at(mine[i]), slab_end(s));
			s->free = (uintptr_t)block_at(mine[i]);
			set_used(s, slab_used(s) - 1);
			w->place[mine[i]] = LOCAL;
			assert_int_equal(w->owner, -1);
			assert_false(w->on_list || w->dead);
			w->owner = (int)me;
			saw_adopt++;
			saw_wait += remote_count(s->remote) > 0;
			break;
		}
		assert_int_equal(w->place[mine[i]], PROGRAM);
		w->place[mine[i]] = REMOTE;
		w->reg[me] = (uint8_t)slab_push_remote(s, block_at(mine[i]), false, &node);
		if ((w->reg[me] & (PUSHED_ENOUGH | PUSHED_LAST)) == 0)
			break;
		w->pc[me] = 2;
		return true;
	case 2:
		if (w->reg[me] & PUSHED_ENOUGH) {
			assert_int_equal(w->owner, -1);
			saw_enough++;
			list_slab(w);
		} else {
			saw_last++;
			reap_slab(w);
		}
	}
	w->pc[me] = 0;
	w->next_free[me]++;
	return true;
}

/*
 * The owner takes what was freed remotely; where there is nothing it goes through slab_retire(),
 * a step at a time: look, be the owner no more, the state.
 */
static bool owner_step(struct world *w, unsigned me)
{
	struct slab *s = &table[0];
	unsigned n = 0;

	if (w->leaving == 2) {
		w->leaving = 0;
		if (slab_set_full(s, false))
			return true;
		w->owner = (int)me;
		saw_refused++;
		return true;
	}
	if (w->owner != (int)me)
		return false;
	if (w->leaving == 1) {
		w->owner = -1;
		w->leaving = 2;
		return true;
	}
	if (w->turns[me] > 2)
		return false;
	w->turns[me]++;
	uintptr_t first = slab_take_free(s, &n);
	if (first) {
		list_moves(w, first, n, LOCAL, PROGRAM);
		set_used(s, slab_used(s) + n);
		return true;
	}
	first = slab_take_remote(s, &n);
	if (first)
		list_moves(w, first, n, REMOTE, PROGRAM);
	else
		w->leaving = 1;
	return true;
}

/* Where others have some to give the owner does not look for a few freed remotely. */
static bool retire_step(struct world *w, unsigned me)
{
	if (w->owner != (int)me || w->leaving || w->turns[me] > 2 || !link_is_end(table[0].free))
		return false;
	w->turns[me]++;
	w->leaving = 1;
	return true;
}

/* The same, but it moves away: the slab goes to its node's list (one critical section). */
static bool give_up_step(struct world *w, unsigned me)
{
	if (w->owner != (int)me)
		return false;
	w->owner = -1;
	list_slab(w);
	return true;
}

/* pool_take_partial() of another heap on the node. */
static bool take_step(struct world *w, unsigned me)
{
	if (!w->on_list || w->turns[me] >= 2)
		return false;
	assert_int_equal(w->owner, -1);
	w->on_list = false;
	slab_set_owned(&table[0]);
	w->owner = (int)me;
	w->turns[me]++;
	saw_take++;
	return true;
}

static const uint8_t blocks_of[3][BLOCKS] = {{0}, {1, 2}, {2}};

/* What each actor can do; each entry tried at each point. */
static bool act(struct world *w, unsigned me, unsigned choice, unsigned plan)
{
	static const uint8_t two[] = {1, 2}, one_a[] = {1}, one_b[] = {2}, zero[] = {0};

	switch (me * 10 + choice) {
	case 0: /* the owner refills, sets full */
		return plan != 2 && owner_step(w, 0);
	case 1: /* or leaves */
		return plan != 0 && !w->leaving && give_up_step(w, 0);
	case 3:
		return plan != 2 && retire_step(w, 0);
	case 2: /* and frees a block of its own */
		return !w->leaving && free_step(w, 0, zero, 1, true);
	case 10: /* a foreign thread frees */
		return plan == 3 ? free_step(w, 1, one_a, 1, false)
				 : free_step(w, 1, two, 2, false);
	case 20: /* another thread of the node frees, if it has any */
		return plan == 3 && free_step(w, 2, one_b, 1, true);
	case 21: /* or refills */
		return w->pc[2] == 0 && take_step(w, 2);
	case 22: /* and leaves again */
		return w->pc[2] == 0 && give_up_step(w, 2);
	}
	return false;
}

static void check_world(const struct world *w)
{
	const struct slab *s = &table[0];
	uint64_t word = s->remote;

	if (w->dead)
		return;
	assert_int_equal(remote_count(word), count_in(w, REMOTE));
	assert_int_equal(list_walk(s, s->free), count_in(w, LOCAL));
	assert_int_equal(slab_used(s), count_in(w, PROGRAM) + count_in(w, REMOTE));
	if (remote_state(word) == SLAB_FULL) {
		assert_int_equal(w->owner, -1);
		assert_true(remote_count(word) < remote_used(word));
		assert_true(remote_used(word) <= slab_few(s));
	}
	if (remote_state(word) == SLAB_LISTED) {
		assert_true(w->on_list);
		assert_int_equal(remote_used(word), slab_used(s));
	}
	if (w->on_list)
		assert_int_equal(remote_state(word), SLAB_LISTED);
}

/* At the end nothing that is free may be out of reach. */
static void check_end(const struct world *w)
{
	uint64_t word = table[0].remote;
	bool busy = w->pc[0] || w->pc[1] || w->pc[2] || w->leaving;

	schedules++;
	assert_false(busy);
	if (w->dead)
		return;
	assert_true(w->owner >= 0 || w->on_list || remote_state(word) == SLAB_FULL);
	if (w->on_list)
		assert_false(remote_is_empty(word));
	if (remote_state(word) == SLAB_FULL)
		assert_true(count_in(w, PROGRAM) > 0);
}

static void explore(unsigned depth, unsigned plan)
{
	struct world before;
	bool any = false;

	save(&now);
	before = now;
	check_world(&now);
	for (unsigned me = 0; me < 3 && !now.dead; me++)
		for (unsigned choice = 0; choice < 4; choice++) {
			if (!act(&now, me, choice, plan))
				continue;
			steps++;
			any = true;
			assert_true(depth < 64);
			explore(depth + 1, plan);
			now = before;
			restore(&now);
		}
	/* Dead slabs: freers may still be on their way out. */
	for (unsigned me = 0; me < 3 && now.dead && !any; me++)
		if (now.pc[me] == 2) {
			free_step(&now, me, blocks_of[me], BLOCKS, false);
			any = true;
			explore(depth + 1, plan);
			now = before;
			restore(&now);
		}
	if (!any)
		check_end(&now);
}

/*
 * BLOCKS blocks, all out to the program; actor 0 owns the slab.  For `capacity` blocks the memory
 * was not to be had.
 */
static void world_init(unsigned capacity)
{
	struct slab *s = &table[0];
	unsigned n = 0;

	memset(&now, 0, sizeof now);
	memset(s, 0, sizeof *s);
	slab_init(s, WIDE, 0);
	s->capacity = (uint16_t)capacity;
	uintptr_t first = slab_extend(s, (size_t)s->size * BLOCKS, &n);

	assert_true(first != 0);
	slab_thread(s, first, n);
	assert_int_equal(n, BLOCKS);
	set_used(s, n);
	memset(now.place, PROGRAM, sizeof now.place);
}

static void every_interleaving_keeps_the_account(void **state)
{
	(void)state;
	/* A slab that is FULL until one, two or all of them are free. */
	for (unsigned capacity = BLOCKS; capacity <= 8 * (BLOCKS + 1); capacity += 8)
		for (unsigned plan = 0; plan < 4; plan++) {
			world_init(capacity);
			explore(0, plan);
		}
	print_message(
	    "# %lu schedules, %lu steps; enough %lu, waited %lu, last %lu, adopted %lu, taken %lu, "
	    "full refused %lu, died %lu\n",
	    schedules, steps, saw_enough, saw_wait, saw_last, saw_adopt, saw_take, saw_refused,
	    saw_dead);
	/* It went where it should have gone. */
	assert_true(saw_enough && saw_wait && saw_last && saw_adopt && saw_take && saw_refused &&
		    saw_dead);
	assert_true(schedules > 1000);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_interleaving_keeps_the_account),
};

int main(void)
{
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, world_set_up, NULL);
}
