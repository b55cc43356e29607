/* SPDX-License-Identifier: MIT */
#include "allocator/link.h"

uint64_t link_mul = 1, link_inv = 1;

/* Newton's iteration: each round doubles the number of correct low bits (5 -> 80). */
uint64_t link_inverse(uint64_t odd)
{
	uint64_t x = odd * 3 ^ 2;

	for (int i = 0; i < 4; i++)
		x *= 2 - odd * x;
	return x;
}

static bool link_is_far(uint64_t step, uint64_t from)
{
	return step - from + LINK_REACH > 2 * LINK_REACH;
}

bool link_is_strong(uint64_t mul)
{
	uint64_t inv = link_inverse(mul);

	for (unsigned shift = 0; shift < 64; shift += 8) {
		uint64_t unit = inv << shift, step = unit;

		/* -step is covered by symmetry: the three forbidden places are symmetric. */
		for (unsigned d = 1; d < 256; d++, step += unit)
			if (!link_is_far(step, 0) || !link_is_far(step, LINK_END) ||
			    !link_is_far(step, -LINK_END))
				return false;
	}
	return true;
}

cold void link_init(uint64_t seed)
{
	uint64_t mul = seed | 1;

	while (!link_is_strong(mul))
		mul = (mul * 6364136223846793005u + 1442695040888963407u) | 1;
	link_mul = mul;
	link_inv = link_inverse(mul);
}
