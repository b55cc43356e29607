/* SPDX-License-Identifier: MIT */
#ifndef NUMASLAB_LOCK_H
#define NUMASLAB_LOCK_H

/*
 * A futex lock: 0 free, 1 held, 2 held and somebody sleeps.  Not recursive.  Critical sections are
 * short (no system call but in the cold birth of memory), so a waiter spins a little first.  Who is
 * alone takes it by a plain store, and no thread can begin before it is given back.
 * Order of the allocator's locks: boot < heaps < node pools by rising index < large window <
 * observation < direct < meta.
 */

#include "allocator/alone.h"
#include "allocator/os.h"

/*
 * Set in a thread between its fork handlers: it holds every lock, and other libraries' handlers,
 * which may allocate, run meanwhile.  For it alone taking and releasing do nothing.
 */
extern hidden_ tls_fast bool lock_forking;

struct lock {
	_Atomic uint32_t word;
};

#define LOCK_SPINS 64

inline_ bool lock_try(struct lock *l)
{
	uint32_t idle = 0;

	if (likely(alone())) {
		if (atomic_load_explicit(&l->word, memory_order_relaxed) != 0)
			return false;
		atomic_store_explicit(&l->word, 1, memory_order_relaxed);
		return true;
	}
	return atomic_compare_exchange_strong_explicit(&l->word, &idle, 1, memory_order_acquire,
						       memory_order_relaxed);
}

cold static void __attribute__((unused)) lock_take_slow(struct lock *l)
{
	if (lock_forking)
		return;
	for (int i = 0; i < LOCK_SPINS; i++) {
		if (lock_try(l))
			return;
#if defined(__x86_64__)
		__builtin_ia32_pause();
#endif
	}
	while (atomic_exchange_explicit(&l->word, 2, memory_order_acquire) != 0)
		os_wait(&l->word, 2);
}

inline_ void lock_take(struct lock *l)
{
	if (unlikely(!lock_try(l)))
		lock_take_slow(l);
}

inline_ void lock_release(struct lock *l)
{
	if (unlikely(lock_forking))
		return;
	if (likely(alone()))
		atomic_store_explicit(&l->word, 0, memory_order_release);
	else if (unlikely(atomic_exchange_explicit(&l->word, 0, memory_order_release) == 2))
		os_wake_one(&l->word);
}

/* After fork, in the child: whoever held it is gone. */
inline_ void lock_reset(struct lock *l)
{
	atomic_store_explicit(&l->word, 0, memory_order_relaxed);
}

#endif
