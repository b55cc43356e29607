/* SPDX-License-Identifier: MIT */
#ifndef NUMASLAB_SIZECLASS_H
#define NUMASLAB_SIZECLASS_H

/*
 * Size <-> class, pure, shared with the tools.
 *
 *	class 0             unused (so that malloc(0) misses the fast path)
 *	class 1..64         16-byte steps up to 1 KiB: index = (size + 15) / 16
 *	medium, to 8 KiB    the largest block of which n fit a 64 KiB slab, for n = 62 down to 8, in
 *	                    steps of 32 (64 above 2 KiB): sizes of the same n would only differ in
 *	                    what they waste at the slab's end
 *	wide, to 64 KiB     8 steps an octave
 *
 * A slab starts on a 64 KiB boundary, so the blocks of a class are aligned to every power of two
 * that divides its size.
 */

#include "allocator/base.h"

#define CLASS_LINEAR_SHIFT 4
#define CLASS_LINEAR_MAX   1024u
#define CLASS_LINEAR_COUNT 64u
#define CLASS_MEDIUM_MAX   8192u
#define CLASS_MEDIUM_COUNT 50u
#define CLASS_WIDE_FIRST   (1 + CLASS_LINEAR_COUNT + CLASS_MEDIUM_COUNT)
#define CLASS_WIDE_COUNT   24u
#define CLASS_SIZE_MAX	   65536u
#define CLASS_COUNT	   (CLASS_WIDE_FIRST + CLASS_WIDE_COUNT)

/* Slabs: one unit of 64 KiB up to CLASS_MEDIUM_MAX, eight above. */
#define UNIT_SHIFT	16
#define UNIT_SIZE	((size_t)1 << UNIT_SHIFT)
#define WIDE_SLAB_UNITS 8u

/* clang-format off */
/* X(class, size of the class before, size) */
#define CLASS_MEDIUM(X) \
	X(65, 1024, 1056) X(66, 1056, 1088) X(67, 1088, 1120) X(68, 1120, 1152) \
	X(69, 1152, 1184) X(70, 1184, 1216) X(71, 1216, 1248) X(72, 1248, 1280) \
	X(73, 1280, 1312) X(74, 1312, 1344) X(75, 1344, 1376) X(76, 1376, 1408) \
	X(77, 1408, 1440) X(78, 1440, 1472) X(79, 1472, 1504) X(80, 1504, 1536) \
	X(81, 1536, 1568) X(82, 1568, 1632) X(83, 1632, 1664) X(84, 1664, 1696) \
	X(85, 1696, 1760) X(86, 1760, 1792) X(87, 1792, 1856) X(88, 1856, 1920) \
	X(89, 1920, 1984) X(90, 1984, 2048) X(91, 2048, 2112) X(92, 2112, 2176) \
	X(93, 2176, 2240) X(94, 2240, 2304) X(95, 2304, 2368) X(96, 2368, 2496) \
	X(97, 2496, 2560) X(98, 2560, 2688) X(99, 2688, 2816) X(100, 2816, 2944) \
	X(101, 2944, 3072) X(102, 3072, 3264) X(103, 3264, 3392) X(104, 3392, 3584) \
	X(105, 3584, 3840) X(106, 3840, 4096) X(107, 4096, 4352) X(108, 4352, 4672) \
	X(109, 4672, 4992) X(110, 4992, 5440) X(111, 5440, 5952) X(112, 5952, 6528) \
	X(113, 6528, 7232) X(114, 7232, 8192)
/* clang-format on */

#define CLASS_SLOT(size) (((size)-CLASS_LINEAR_MAX - 1) >> 5)

static const uint8_t class_medium[] = {
#define X(cls, before, size) [CLASS_SLOT((before) + 1)... CLASS_SLOT(size)] = cls,
    CLASS_MEDIUM(X)
#undef X
};

static const uint16_t class_medium_size[] = {
#define X(cls, before, size) [(cls)-1 - CLASS_LINEAR_COUNT] = size,
    CLASS_MEDIUM(X)
#undef X
};

/* size in 1..CLASS_SIZE_MAX */
inline_ unsigned class_of(size_t size)
{
	if (size <= CLASS_LINEAR_MAX)
		return (unsigned)((size + 15) >> CLASS_LINEAR_SHIFT);
	if (size <= CLASS_MEDIUM_MAX)
		return class_medium[CLASS_SLOT(size)];
	unsigned octave = log2_floor(size - 1); /* 13..15: size is in (2^octave, 2^(octave+1)] */
	unsigned step = octave - 3;

	return CLASS_WIDE_FIRST - 1 + (octave - 13) * 8 +
	       (unsigned)((size - ((size_t)1 << octave) + (1u << step) - 1) >> step);
}

/* cls in 1..CLASS_COUNT-1; bytes */
inline_ size_t class_size(unsigned cls)
{
	if (cls <= CLASS_LINEAR_COUNT)
		return (size_t)cls << CLASS_LINEAR_SHIFT;
	if (cls < CLASS_WIDE_FIRST)
		return class_medium_size[cls - 1 - CLASS_LINEAR_COUNT];
	unsigned at = cls - CLASS_WIDE_FIRST, octave = 13 + at / 8;

	return ((size_t)1 << octave) + ((size_t)(at % 8 + 1) << (octave - 3));
}

/* The smallest class for size whose blocks are aligned to align; 0: none is. */
inline_ unsigned class_aligned(size_t size, size_t align)
{
	if (size > CLASS_SIZE_MAX || align > UNIT_SIZE)
		return 0;
	size = round_up(size, align); /* a multiple of align that is as long is no shorter */
	if (size > CLASS_SIZE_MAX)
		return 0;
	unsigned cls = class_of(size);

	while (cls < CLASS_COUNT && class_size(cls) & (align - 1))
		cls++;
	return cls < CLASS_COUNT ? cls : 0;
}

inline_ unsigned class_slab_units(unsigned cls)
{
	return cls < CLASS_WIDE_FIRST ? 1 : WIDE_SLAB_UNITS;
}

_Static_assert(sizeof(class_medium_size) == CLASS_MEDIUM_COUNT * 2,
	       "every medium class has a size");
_Static_assert(sizeof(class_medium) == CLASS_SLOT(CLASS_MEDIUM_MAX) + 1, "every size has a class");
_Static_assert(CLASS_COUNT < 256, "a class is kept in one byte");
_Static_assert(UNIT_SIZE / 16 <= 4096, "a slab's blocks are counted in 16 bits");

#endif
