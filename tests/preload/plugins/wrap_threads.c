/* SPDX-License-Identifier: MIT */
/* As wrap_calls, for the calls of libpthread. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static void allocate(void)
{
	static __thread int depth;
	char *p;

	if (depth++ == 0) {
		p = malloc(200);
		if (p)
			memset(p, 3, 200);
		free(realloc(p, 3000));
	}
	depth--;
}

int pthread_mutex_lock(pthread_mutex_t *lock)
{
	allocate();
	return NEXT(pthread_mutex_lock)(lock);
}

int pthread_mutex_unlock(pthread_mutex_t *lock)
{
	allocate();
	return NEXT(pthread_mutex_unlock)(lock);
}

int pthread_key_create(pthread_key_t *key, void (*destroy)(void *))
{
	allocate();
	return NEXT(pthread_key_create)(key, destroy);
}

int pthread_setspecific(pthread_key_t key, const void *value)
{
	allocate();
	return NEXT(pthread_setspecific)(key, value);
}

int pthread_once(pthread_once_t *once, void (*init)(void))
{
	allocate();
	return NEXT(pthread_once)(once, init);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *arg)
{
	allocate();
	return NEXT(pthread_create)(thread, attr, start, arg);
}
