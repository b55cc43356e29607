/* SPDX-License-Identifier: MIT */
#ifndef NUMASLAB_BASE_H
#define NUMASLAB_BASE_H

/* The lowest room: compiler words, rounding, and the one lock.  Includes nothing of ours. */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define likely(x)   __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

#define cold	  __attribute__((cold, noinline))
#define noinline_ __attribute__((noinline))
#define inline_	  static inline __attribute__((always_inline))
#define exported  __attribute__((visibility("default")))
/* On declarations, so that references are direct (the command line covers definitions only). */
#define hidden_ __attribute__((visibility("hidden")))

/* initial-exec: one load for the address; small, so that a late dlopen still finds room. */
#define tls_fast __thread __attribute__((tls_model("initial-exec")))

#define CACHE_LINE    64
#define cache_aligned __attribute__((aligned(CACHE_LINE)))

inline_ size_t min_size(size_t a, size_t b)
{
	return a < b ? a : b;
}

inline_ size_t max_size(size_t a, size_t b)
{
	return a > b ? a : b;
}

/* to: a power of two; wraps for n within to - 1 of SIZE_MAX (callers have bounded n). */
inline_ size_t round_up(size_t n, size_t to)
{
	return (n + to - 1) & ~(to - 1);
}

inline_ size_t round_down(size_t n, size_t to)
{
	return n & ~(to - 1);
}

/* n > 0 */
inline_ unsigned log2_floor(size_t n)
{
	return 63 - (unsigned)__builtin_clzl(n);
}

#endif
