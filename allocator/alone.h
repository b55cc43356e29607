/* SPDX-License-Identifier: MIT */
#ifndef NUMASLAB_ALONE_H
#define NUMASLAB_ALONE_H

/*
 * What only other threads could see need not be locked while there are none: a locked instruction
 * waits until the stores before it, to cold blocks, have reached the cache.  Plain stores are seen
 * by threads that come later, as clone() orders them; who reads from another process has barriers
 * of its own (telemetry/ring.h).
 *
 * libc knows: its word is true until the first pthread_create(), which clears it before there is a
 * thread, and not again; with glibc 2.36 neither in the child that a process of several threads
 * forks.  Threads that it does not know, another libc's (dlmopen), are noticed when they first
 * change what threads share: then for good nobody is alone.  So is a word that stays true for ever:
 * glibc 2.36 does not clear an executable's copy of it where main cancelled itself before the first
 * pthread_create().  What remains: a thread that finds itself alone, and is just about to store
 * when such a one is noticed, still does so without a lock.  Some ns, once in a process of that
 * kind.
 */

#include "allocator/base.h"

/* Leads to 0 until alone_init(), and where libc cannot tell. */
extern hidden_ const char *_Atomic alone_word;

inline_ bool alone(void)
{
	const char *word = atomic_load_explicit(&alone_word, memory_order_relaxed);

	return *(const volatile char *)word != 0;
}

void alone_init(void);

/* There may be threads that libc does not know of. */
void alone_never(void);

/* A relaxed sum.  One instruction: a signal handler may allocate. */
inline_ void count_add(_Atomic uint64_t *at, uint64_t by)
{
#if defined(__x86_64__)
	if (likely(alone())) {
		__asm__("addq %1, %0" : "+m"(*at) : "er"(by));
		return;
	}
#endif
	atomic_fetch_add_explicit(at, by, memory_order_relaxed);
}

/* A weak compare-and-swap, for a loop: acquires and releases, and acquires where it fails. */
inline_ bool word_change(_Atomic uint64_t *at, uint64_t *was, uint64_t to)
{
	if (likely(alone())) {
		atomic_store_explicit(at, to, memory_order_relaxed);
		return true;
	}
	return atomic_compare_exchange_weak_explicit(at, was, to, memory_order_acq_rel,
						     memory_order_acquire);
}

#endif
