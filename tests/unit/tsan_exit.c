/* SPDX-License-Identifier: MIT */
/*
 * heap.c's destructor acts in the last of the four rounds, when ThreadSanitizer's own has taken the
 * thread's state away.  Here (heap.c is compiled with these names) the rounds follow each other at
 * once, in the first.
 */
#include "allocator/heap.h"

#include <pthread.h>

int tsan_key_create(pthread_key_t *key, void (*gone)(void *));
int tsan_setspecific(pthread_key_t key, const void *value);

static void (*thread_gone)(void *);

int tsan_key_create(pthread_key_t *key, void (*gone)(void *))
{
	thread_gone = gone;
	return pthread_key_create(key, gone);
}

int tsan_setspecific(pthread_key_t key, const void *value)
{
	if (thread_state.exits == 0)
		return pthread_setspecific(key, value);
	thread_gone((void *)(uintptr_t)value);
	return 0;
}
