/* SPDX-License-Identifier: MIT */
/* The protected links: round trips, and that no corrupt byte leads from one valid link to another.
 */
#include "tests/unit/child.h"
#include "allocator/slab.h"

#define MULTIPLIERS 200

struct layout layout;

static uint64_t seed = 88172645463325252u;

static uint64_t next_random(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

static void inverse_is_the_inverse(void **state)
{
	(void)state;
	for (int i = 0; i < 100000; i++) {
		uint64_t odd = next_random() | 1;

		assert_int_equal(odd * link_inverse(odd), 1);
	}
}

static void words_lead_back(void **state)
{
	uint64_t block;

	(void)state;
	for (int m = 0; m < MULTIPLIERS; m++) {
		link_init(next_random());
		assert_true(link_is_strong(link_mul));
		for (int i = 0; i < 100; i++) {
			uintptr_t to = next_random();

			link_write(&block, to);
			assert_int_equal(link_read(&block), to);
		}
	}
}

/* Whether a reader of a slab at base would follow or end at `link`. */
static bool is_valid(uintptr_t base, uintptr_t link)
{
	return link - base < WIDE_SLAB_UNITS * UNIT_SIZE || link == LINK_END + base || link == 0;
}

/* Each of the 8 x 255 changes of one byte of a word that leads to `next`. */
static unsigned corruptions_unseen(uintptr_t base, uintptr_t next)
{
	unsigned unseen = 0;
	uint64_t word, bad;

	link_write(&word, next);
	for (unsigned byte = 0; byte < 8; byte++)
		for (unsigned flip = 1; flip < 256; flip++) {
			bad = word ^ (uint64_t)flip << (8 * byte);
			unseen += is_valid(base, link_read(&bad));
		}
	return unseen;
}

static void every_corrupt_byte_is_seen(void **state)
{
	(void)state;
	for (int m = 0; m < MULTIPLIERS; m++) {
		/* Seeds that look bad: 0, small, even, all ones, and random ones. */
		link_init(m < 8 ? (uint64_t)m : m == 8 ? ~0ull : next_random());
		for (int i = 0; i < 20; i++) {
			uintptr_t base = (next_random() & 0x7fffffff0000u) | UNIT_SIZE;
			uintptr_t next = base + (next_random() % 32768 << 4);

			assert_int_equal(corruptions_unseen(base, next), 0);
			assert_int_equal(corruptions_unseen(base, LINK_END + base), 0);
		}
	}
}

static void a_weak_multiplier_is_refused_and_would_be_seen_as_weak(void **state)
{
	(void)state;
	static const uint64_t steps[] = {
	    1, 4097, 65537, LINK_REACH - 1, LINK_END + 1, LINK_END - 65537, -LINK_END + 4097};

	/* The plain word: one byte leads from link to link. */
	assert_false(link_is_strong(1));
	/* Multipliers made so that one byte (of value 3, or 255) changes the link by `step`. */
	for (unsigned i = 0; i < sizeof steps / sizeof *steps; i++) {
		assert_false(link_is_strong(link_inverse(steps[i] * link_inverse(3))));
		assert_false(link_is_strong(link_inverse(steps[i] * link_inverse(255))));
	}
	link_mul = link_inv = 1;
	assert_true(corruptions_unseen(0x7f0000010000, 0x7f0000010040) > 0);
}

static void a_zeroed_or_garbage_word_is_no_link(void **state)
{
	uint64_t zero = 0, word;
	unsigned valid = 0;

	(void)state;
	link_init(next_random());
	assert_int_equal(link_read(&zero), 0); /* not in a slab: heap_pop sees it */
	for (int i = 0; i < 1000000; i++) {
		word = next_random();
		valid += is_valid(0x7f1234560000, link_read(&word));
	}
	assert_int_equal(valid, 0);
}

static void ends_are_told_from_links(void **state)
{
	(void)state;
	for (int i = 0; i < 100000; i++) {
		uintptr_t base = next_random() & 0x7fffffff0000u;

		assert_true(link_is_end(LINK_END + base));
		assert_false(link_is_end(base + 0xfff0));
		assert_true(((LINK_END + base) ^ (base + 16)) >= UNIT_SIZE);
	}
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(inverse_is_the_inverse),
    cmocka_unit_test(words_lead_back),
    cmocka_unit_test(every_corrupt_byte_is_seen),
    cmocka_unit_test(a_weak_multiplier_is_refused_and_would_be_seen_as_weak),
    cmocka_unit_test(a_zeroed_or_garbage_word_is_no_link),
    cmocka_unit_test(ends_are_told_from_links),
};

TAP_MAIN(tests)
