/* SPDX-License-Identifier: MIT */
#ifndef NUMASLAB_LINK_H
#define NUMASLAB_LINK_H

/*
 * The word in a free block that leads to the next one, protected.
 *
 * word = next * link_mul (mod 2^64); next = word * link_inv.  link_mul is odd, random, and chosen
 * at start such that no change of one byte of a word leads from a valid link to a valid link:
 * for every one-byte difference d, d * link_inv is further than LINK_REACH from 0 and from
 * +-LINK_END.  So one corrupt byte is always seen, and arbitrary garbage passes with
 * probability 2^-44.  A list ends in LINK_END + its slab's first address, which no user
 * address can be (bit 62 tells); a zeroed word (next = 0) is neither.
 */

#include "allocator/base.h"

#define LINK_END   ((uintptr_t)1 << 62 | (uintptr_t)1 << 44) /* top bytes alone cannot make it */
#define LINK_REACH ((uintptr_t)1 << 20)			     /* the largest slab, twice */

extern hidden_ uint64_t link_mul, link_inv;

/* Sets the multiplier from a random seed; a few microseconds.  Pure but for the two words. */
void link_init(uint64_t seed);

/* Whether mul keeps the property above; exposed for the tests. */
bool link_is_strong(uint64_t mul);
uint64_t link_inverse(uint64_t odd);

inline_ void link_write(void *block, uintptr_t next)
{
	*(uint64_t *)block = (uint64_t)next * link_mul;
}

inline_ uintptr_t link_read(const void *block)
{
	return (uintptr_t)(*(const uint64_t *)block * link_inv);
}

#endif
