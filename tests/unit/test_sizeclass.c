/* SPDX-License-Identifier: MIT */
/* Size classes: every size to 64 KiB, every alignment; the bounds the design sets on spacing. */
#include "tests/unit/child.h"
#include "allocator/sizeclass.h"

static void every_size_has_the_smallest_class_that_fits(void **state)
{
	(void)state;
	for (size_t size = 1; size <= CLASS_SIZE_MAX; size++) {
		unsigned cls = class_of(size);

		assert_in_range(cls, 1, CLASS_COUNT - 1);
		assert_true(class_size(cls) >= size);
		if (cls > 1)
			assert_true(class_size(cls - 1) < size);
	}
}

static void class_and_size_are_inverse(void **state)
{
	(void)state;
	for (unsigned cls = 1; cls < CLASS_COUNT; cls++) {
		assert_int_equal(class_of(class_size(cls)), cls);
		assert_int_equal(class_size(cls) % 16, 0);
		if (cls > 1)
			assert_true(class_size(cls) > class_size(cls - 1));
	}
	assert_int_equal(class_size(CLASS_COUNT - 1), CLASS_SIZE_MAX);
}

static void every_alignment_has_the_smallest_aligned_class(void **state)
{
	(void)state;
	for (size_t align = 1; align <= UNIT_SIZE; align *= 2)
		for (size_t size = 1; size <= CLASS_SIZE_MAX; size++) {
			unsigned cls = class_aligned(size, align), below = class_of(size);

			assert_in_range(cls, below, CLASS_COUNT - 1);
			assert_int_equal(class_size(cls) % align, 0);
			for (; below < cls; below++)
				assert_int_not_equal(class_size(below) % align, 0);
		}
	assert_int_equal(class_aligned(CLASS_SIZE_MAX + 1, 16), 0);
	assert_int_equal(class_aligned(1, UNIT_SIZE * 2), 0);
}

static void waste_inside_a_block_is_bounded(void **state)
{
	(void)state;
	for (size_t size = 1; size <= CLASS_SIZE_MAX; size++) {
		size_t waste = class_size(class_of(size)) - size;

		if (size <= CLASS_LINEAR_MAX)
			assert_true(waste < 16);
		else
			assert_true(waste * 7 < size);
	}
}

static void medium_classes_waste_little_at_the_slab_s_end(void **state)
{
	(void)state;
	for (unsigned cls = CLASS_LINEAR_COUNT + 1; cls < CLASS_WIDE_FIRST; cls++) {
		size_t size = class_size(cls), step = size > 2048 ? 64 : 32;
		size_t blocks = UNIT_SIZE / size;

		assert_int_equal(size % step, 0);
		assert_true(blocks * (size + step) > UNIT_SIZE);
	}
}

static void slabs_hold_at_least_eight_blocks(void **state)
{
	(void)state;
	for (unsigned cls = 1; cls < CLASS_COUNT; cls++) {
		size_t bytes = class_slab_units(cls) * UNIT_SIZE;
		size_t blocks = bytes / class_size(cls);

		assert_true(blocks >= 8);
		assert_true(blocks <= 4096);
		/* A step of 16 bytes in a unit, or in eight, fits the remote word's 16 bits. */
		assert_true(bytes / 16 - 1 < 0xffff);
		/* hide.c: blocks of 1 KiB and more fit a word of 64 bits. */
		if (class_size(cls) > 1024 && class_slab_units(cls) == 1)
			assert_true(blocks <= 64);
	}
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_size_has_the_smallest_class_that_fits),
    cmocka_unit_test(class_and_size_are_inverse),
    cmocka_unit_test(every_alignment_has_the_smallest_aligned_class),
    cmocka_unit_test(waste_inside_a_block_is_bounded),
    cmocka_unit_test(medium_classes_waste_little_at_the_slab_s_end),
    cmocka_unit_test(slabs_hold_at_least_eight_blocks),
};

TAP_MAIN(tests)
