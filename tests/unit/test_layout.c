/* SPDX-License-Identifier: MIT */
/* Address arithmetic: address <-> unit <-> descriptor <-> window, at every edge. */
#include "tests/unit/child.h"
#include "allocator/layout.h"

struct layout layout;

static const struct layout plans[] = {
    {.base = 0x7f0000000000, .window_shift = 26, .window_count = 2, .table = 0x7e0000000000},
    {.base = 0x100000200000, .window_shift = 30, .window_count = 5, .table = 0x100000000000},
    {.base = 0x200000000000, .window_shift = 40, .window_count = 9, .table = 0x100000000000},
    {.base = 0x200000, .window_shift = 26, .window_count = 129, .table = 0x7f0000000000},
};

static struct layout plan(unsigned i)
{
	struct layout l = plans[i];

	l.span = (uintptr_t)l.window_count << l.window_shift;
	return l;
}

#define each_plan(i) (unsigned i = 0; i < sizeof plans / sizeof *plans; i++)

static void windows_begin_and_end_where_they_should(void **state)
{
	(void)state;
	for
		each_plan(i)
		{
			struct layout l = plan(i);

			assert_false(layout_owns(&l, l.base - 1));
			assert_false(layout_owns(&l, l.base + l.span));
			assert_false(layout_owns(&l, 0));
			assert_false(layout_owns(&l, UINTPTR_MAX));
			for (unsigned w = 0; w < l.window_count; w++) {
				uintptr_t at = l.base + ((uintptr_t)w << l.window_shift);

				assert_true(layout_owns(&l, at));
				assert_int_equal(layout_window_of(&l, at), w);
				assert_int_equal(
				    layout_window_of(&l, at + ((uintptr_t)1 << l.window_shift) - 1),
				    w);
			}
		}
}

static void check_unit(const struct layout *l, uintptr_t unit)
{
	uintptr_t at = l->base + (unit << UNIT_SHIFT);
	uintptr_t desc = l->table + unit * SLAB_DESC_SIZE;

	assert_int_equal(layout_unit_of(l, at), unit);
	assert_int_equal(layout_unit_of(l, at + UNIT_SIZE - 1), unit);
	assert_int_equal(layout_desc_of(l, at), desc);
	assert_int_equal(layout_desc_of(l, at + UNIT_SIZE - 1), desc);
	assert_int_equal(layout_addr_of(l, desc), at);
}

static void units_and_descriptors_correspond(void **state)
{
	(void)state;
	for
		each_plan(i)
		{
			struct layout l = plan(i);
			uintptr_t units = l.span >> UNIT_SHIFT;

			for (uintptr_t u = 0; u < 5000 && u < units; u++)
				check_unit(&l, u);
			for (uintptr_t bit = 1; bit < units; bit *= 2) {
				check_unit(&l, bit);
				check_unit(&l, bit - 1);
				check_unit(&l, units - bit);
			}
		}
}

static void a_window_s_descriptors_start_on_a_page(void **state)
{
	(void)state;
	/* window_grow() commits descriptors by pages: two windows must not share one (64 KiB
	 * pages). */
	for
		each_plan(i)
		{
			struct layout l = plan(i);
			uintptr_t bytes =
			    ((uintptr_t)1 << l.window_shift >> UNIT_SHIFT) * SLAB_DESC_SIZE;

			assert_int_equal(bytes % 65536, 0);
		}
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(windows_begin_and_end_where_they_should),
    cmocka_unit_test(units_and_descriptors_correspond),
    cmocka_unit_test(a_window_s_descriptors_start_on_a_page),
};

TAP_MAIN(tests)
