/* SPDX-License-Identifier: MIT */
/* The slab's remote word by value, and each transition alone, for every class. */
#if defined(__x86_64__)
#include "tests/telemetry/interleave.h"
#endif
#include "tests/unit/slab_world.h"

/* --- The word. --- */

static void remote_word_keeps_its_fields_apart(void **state)
{
	static const unsigned firsts[] = {0, 1, 4095, 32767, REMOTE_NONE};
	static const unsigned counts[] = {0, 1, 4095, 4096};

	(void)state;
	for (unsigned f = 0; f < 5; f++)
		for (unsigned c = 0; c < 4; c++)
			for (unsigned st = 0; st < 3; st++)
				for (unsigned used = 0; used <= 4096; used += 1024) {
					uint64_t w = remote_make(firsts[f], counts[c]);
					uint64_t t = remote_turn(w, (enum slab_state)st, used);

					assert_int_equal(remote_first(t), firsts[f]);
					assert_int_equal(remote_count(t), counts[c]);
					assert_int_equal(remote_state(t), st);
					assert_int_equal(remote_used(t), used);
					assert_int_equal(t >> 50, (w >> 50) + 1);
					uint64_t p = remote_push(t, 7);
					assert_int_equal(remote_first(p), 7);
					assert_int_equal(remote_count(p), counts[c] + 1);
					assert_int_equal(p >> 32, t >> 32);
					uint64_t e = remote_taken(p);
					assert_int_equal(remote_count(e), 0);
					assert_int_equal(remote_first(e), REMOTE_NONE);
					assert_int_equal(e >> 32, t >> 32);
				}
}

static void every_turn_gives_another_word(void **state)
{
	uint64_t w = remote_make(REMOTE_NONE, 0), first = w;

	(void)state;
	/* 2^14 - 1 turns: none equals the first, whatever the state. */
	for (unsigned i = 0; i < (1u << 14) - 1; i++) {
		w = remote_turn(w, (enum slab_state)(i % 3), 0);
		assert_int_not_equal(w, first);
	}
	assert_int_equal(remote_turn(w, SLAB_OWNED, 0) >> 50, first >> 50);
}

static void empty_means_listed_and_all_back(void **state)
{
	uint64_t w = remote_make(5, 3);

	(void)state;
	assert_true(remote_is_empty(remote_turn(w, SLAB_LISTED, 3)));
	assert_false(remote_is_empty(remote_turn(w, SLAB_LISTED, 4)));
	assert_false(remote_is_empty(remote_turn(w, SLAB_OWNED, 3)));
	assert_false(remote_is_empty(remote_turn(w, SLAB_FULL, 3)));
}

/* --- Each transition alone, every class. --- */

static void init_and_extend_every_class(void **state)
{
	(void)state;
	for (unsigned cls = 1; cls < CLASS_COUNT; cls++) {
		struct slab *s = &table[8]; /* whatever it was before */
		unsigned n = 0, got = 0;

		slab_init(s, cls, 3);
		assert_int_equal(s->node, 3);
		assert_int_equal(remote_state(s->remote), SLAB_OWNED);
		assert_int_equal(slab_used(s), 0);
		assert_true(s->capacity * s->size <= slab_bytes(s));
		assert_true((s->capacity + 1u) * s->size > slab_bytes(s));
		for (size_t bytes = 4096; bytes <= slab_bytes(s); bytes += 4096) {
			uintptr_t first = slab_extend(s, bytes, &n);

			if (first)
				slab_thread(s, first, n);

			if (!first)
				continue;
			assert_true(first == slab_addr(s) + (size_t)got * s->size);
			assert_int_equal(list_walk(s, first), n);
			got += n;
			assert_int_equal(got, s->extended);
			assert_true(got * s->size <= bytes);
		}
		assert_int_equal(got, s->capacity);
		assert_int_equal(slab_extend(s, slab_bytes(s), &n), 0);
	}
}

static void pushes_come_back_once(void **state)
{
	struct slab *s = &table[0];
	unsigned n = 0, node;

	(void)state;
	slab_init(s, 1, 0);
	uintptr_t first = slab_extend(s, UNIT_SIZE, &n);

	slab_thread(s, first, n);
	assert_int_equal(n, 4096);
	set_used(s, n);
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(slab_push_remote(s, (void *)(first + i * 16), false, &node), 0);
	assert_false(slab_set_full(s, false));
	first = slab_take_remote(s, &n);
	assert_int_equal(n, 4096);
	assert_int_equal(list_walk(s, first), 4096);
	assert_int_equal(slab_take_remote(s, &n), 0);
	assert_true(slab_set_full(s, false));
	assert_false(slab_take_remote(s, &n));
}

/* FULL until a few were pushed, or all that is out; what is LISTED counts in steps. */
static void a_few_pushes_are_enough(void **state)
{
	(void)state;
	for (unsigned cls = 1; cls < CLASS_COUNT; cls++)
		for (unsigned part = 1; part <= 4; part++) {
			struct slab *s = &table[0];
			unsigned n = 0, told = 0, node;

			slab_init(s, cls, 0);
			uintptr_t first = slab_extend(s, slab_bytes(s) / 4 * part, &n);
			unsigned few = (unsigned)min_size(slab_few(s), n);

			if (!first)
				continue;
			assert_true(slab_few(s) == 1 || slab_few(s) * 8u <= s->capacity);
			assert_true(s->step == 1 || s->step * 8u <= s->capacity);
			set_used(s, n);
			assert_true(slab_set_full(s, false));
			for (unsigned i = 0; i < n; i++) {
				unsigned what = slab_push_remote(s, (void *)(first + i * s->size),
								 false, &node);

				if (i + 1 < few)
					assert_int_equal(what, 0);
				else if (i + 1 == few)
					assert_int_equal(what, PUSHED_ENOUGH);
				if (i + 1 == few)
					told = slab_told(s, slab_set_listed(s));
				if (i + 1 <= few)
					continue;
				told += what & PUSHED_STEP ? s->step : 0;
				assert_int_equal(what & PUSHED_LAST, i + 1 == n ? PUSHED_LAST : 0);
				assert_int_equal(told, slab_told(s, s->remote));
				assert_int_equal(told, (i + 1) / s->step * s->step);
			}
			assert_true(remote_is_empty(s->remote));
			if (slab_few(s) < 2)
				continue;
			/* With less than enough on the list it may become FULL, with enough not. */
			slab_init(s, cls, 0);
			first = slab_extend(s, slab_bytes(s), &n);
			set_used(s, n);
			for (unsigned i = 0; i + 1 < slab_few(s); i++)
				slab_push_remote(s, (void *)(first + i * s->size), false, &node);
			assert_true(slab_set_full(s, false));
			assert_true(slab_claim_full(s));
			slab_push_remote(s, (void *)(first + (n - 1) * s->size), false, &node);
			assert_false(slab_set_full(s, false));
			/* Where memory is scarce one is enough. */
			slab_take_remote(s, &n);
			assert_true(slab_set_full(s, false));
			assert_int_equal(slab_push_remote(s, (void *)first, true, &node),
					 PUSHED_ENOUGH);
			assert_false(slab_set_full(s, true));
		}
}

#if defined(__x86_64__)
/* A slab with few blocks, so that each push is told of, is listed on node 1 instead of 0. */
static struct {
	void *block;
	unsigned what, node;
} pushed;

static void push_it(void)
{
	pushed.what = slab_push_remote(&table[0], pushed.block, false, &pushed.node);
}

static void move_and_list(void)
{
	slab_set_node(&table[0], 1);
	slab_set_listed(&table[0]);
}

static void a_push_knows_its_node(void **state)
{
	unsigned long k = 0, told = 0;
	bool more = true;

	(void)state;
	interleave_start();
	for (; more; k++) {
		struct slab *s = &table[0];
		unsigned n = 0;

		slab_init(s, CLASS_COUNT - 1, 0);
		pushed.block = (void *)slab_extend(s, slab_bytes(s), &n);
		set_used(s, n);
		more = interleave(push_it, move_and_list, k);
		if (pushed.what & PUSHED_STEP) {
			told++;
			assert_int_equal(pushed.node, 1);
		}
	}
	assert_true(told > 10 && told < k);
}
#endif

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(remote_word_keeps_its_fields_apart),
    cmocka_unit_test(every_turn_gives_another_word),
    cmocka_unit_test(empty_means_listed_and_all_back),
    cmocka_unit_test(init_and_extend_every_class),
    cmocka_unit_test(pushes_come_back_once),
    cmocka_unit_test(a_few_pushes_are_enough),
#if defined(__x86_64__)
    cmocka_unit_test(a_push_knows_its_node),
#endif
};

int main(void)
{
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, world_set_up, NULL);
}
