/* SPDX-License-Identifier: MIT */
#ifndef NUMASLAB_SIZECLASS_H
#define NUMASLAB_SIZECLASS_H

/*
 * Size <-> class, pure arithmetic, shared with the tools.
 *
 *	class 0             unused (so that malloc(0) misses the fast path)
 *	class 1..64         16-byte steps up to 1 KiB: index = (size + 15) / 16
 *	class 65..112       16 steps an octave, 1 KiB to 8 KiB
 *	class 113..136      8 steps an octave, 8 KiB to 64 KiB
 *
 * Every class size is a multiple of its octave's step, and a slab starts on a 64 KiB boundary:
 * a size rounded up to an alignment <= 64 KiB is served aligned by the class of that size.
 */

#include "allocator/base.h"

#define CLASS_LINEAR_SHIFT 4
#define CLASS_LINEAR_MAX   1024u
#define CLASS_LINEAR_COUNT 64u
#define CLASS_MEDIUM_MAX   8192u
#define CLASS_MEDIUM_COUNT 48u
#define CLASS_SIZE_MAX     65536u
#define CLASS_WIDE_COUNT   24u
#define CLASS_COUNT        (1 + CLASS_LINEAR_COUNT + CLASS_MEDIUM_COUNT + CLASS_WIDE_COUNT)

/* Slabs: one unit of 64 KiB up to CLASS_MEDIUM_MAX, eight above. */
#define UNIT_SHIFT       16
#define UNIT_SIZE        ((size_t)1 << UNIT_SHIFT)
#define WIDE_SLAB_UNITS  8u

/* size in 1..CLASS_SIZE_MAX */
inline_ unsigned class_of(size_t size)
{
	if (size <= CLASS_LINEAR_MAX)
		return (unsigned)((size + 15) >> CLASS_LINEAR_SHIFT);
	unsigned octave = log2_floor(size - 1); /* 10..15: size is in (2^octave, 2^(octave+1)] */
	if (octave < 13) {
		unsigned step = octave - 4;
		return 64 + (octave - 10) * 16 +
		       (unsigned)((size - ((size_t)1 << octave) + (1u << step) - 1) >> step);
	}
	unsigned step = octave - 3;
	return 112 + (octave - 13) * 8 +
	       (unsigned)((size - ((size_t)1 << octave) + (1u << step) - 1) >> step);
}

/* cls in 1..CLASS_COUNT-1; bytes */
inline_ size_t class_size(unsigned cls)
{
	if (cls <= 64)
		return (size_t)cls << CLASS_LINEAR_SHIFT;
	if (cls <= 112) {
		unsigned at = cls - 65, octave = 10 + at / 16;
		return ((size_t)1 << octave) + ((size_t)(at % 16 + 1) << (octave - 4));
	}
	unsigned at = cls - 113, octave = 13 + at / 8;
	return ((size_t)1 << octave) + ((size_t)(at % 8 + 1) << (octave - 3));
}

inline_ unsigned class_slab_units(unsigned cls)
{
	return cls <= CLASS_LINEAR_COUNT + CLASS_MEDIUM_COUNT ? 1 : WIDE_SLAB_UNITS;
}

_Static_assert(CLASS_COUNT == 137, "the table above and the counts must agree");
_Static_assert(CLASS_COUNT < 256, "a class is kept in one byte");
_Static_assert(UNIT_SIZE / 16 <= 4096, "a slab's blocks are counted in 16 bits");

#endif
