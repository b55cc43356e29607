/* SPDX-License-Identifier: MIT */
/* The heaps of threads that fork removed: their memory is used again, however they stopped. */
#include "tests/unit/machine.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#define EACH 3000u

static const size_t sizes[] = {16, 48, 208, 1024, 4096, 20000};
enum { SIZES = sizeof sizes / sizeof *sizes };

static void *block[SIZES][EACH];
static unsigned stop_at;
static pthread_barrier_t ready;

static unsigned blocks_of(unsigned i)
{
	return (unsigned)min_size(EACH, ((size_t)4 << 20) / sizes[i]);
}

/* Two thirds of its blocks freed: the current slab, partial and full ones, a bin. */
static void fill(void)
{
	for (unsigned i = 0; i < SIZES; i++) {
		take_many(block[i], blocks_of(i), sizes[i]);
		for (unsigned k = 0; k < blocks_of(i); k++)
			if (k % 3) {
				ns_free(block[i][k]);
				block[i][k] = NULL;
			}
		for (unsigned k = 0; k < 5; k++)
			block[i][k * 3 + 1] = ns_malloc(sizes[i]);
	}
}

/* How far a free, a malloc, an insertion into a list got before the thread stopped. */
static void stop_half_way(void)
{
	struct heap *h = thread_heap();

	for (unsigned i = 0; i < SIZES; i++) {
		unsigned cls = class_of(sizes[i]);
		struct class_heap *c = &h->cls[cls];
		struct slab *s = c->partial.first;
		uintptr_t *p = block[i][0];

		switch (stop_at) {
		case 1: /* a free: linked, not yet counted */
			link_write(p, slab_of((uintptr_t)p)->free);
			if (atomic_load(&slab_of((uintptr_t)p)->owner) == heap_tag(h)) {
				slab_of((uintptr_t)p)->free = (uintptr_t)p;
				block[i][0] = NULL;
			}
			break;
		case 2: /* the bin given back to the slab's list, and still a bin */
			if (h->bin[cls] != bin_empty()) {
				uintptr_t bin = h->bin[cls];

				heap_flush_bin(h, cls);
				h->bin[cls] = bin;
			}
			break;
		case 3: /* a partial slab taken off, on no list */
			if (s)
				heap_unlink(h, s);
			break;
		case 4: /* its neighbours know, it does not */
			if (s && s->next)
				s->next->prev = NULL;
			break;
		case 5: /* hidden blocks on the list, and still hidden */
			for (; s; s = s->next)
				if (s->hidden) {
					uint64_t hidden = s->hidden;
					unsigned n = 0;
					uintptr_t rest = s->free, first = slab_unhide(s, &n);

					(void)rest;
					s->free = first;
					s->hidden = hidden;
					break;
				}
			break;
		case 6: /* a partial slab made the current one, and still on the list */
			if (s && c->current) {
				heap_flush_bin(h, cls);
				heap_partial_add(h, c->current);
				c->current = s;
			}
			break;
		default:
			break;
		}
	}
}

static void *removed(void *unused)
{
	fill();
	stop_half_way();
	pthread_barrier_wait(&ready);
	for (;;)
		pause();
	return unused;
}

static long births(void)
{
	return count_of(0, COUNT_node_new);
}

/* In the child: all that the other thread had free can be had, nothing that is out. */
static void live_on(void)
{
	static void *mine[SIZES][EACH];

	for (unsigned i = 0; i < SIZES; i++) {
		unsigned n = blocks_of(i) / 2;
		long before = births();

		take_many(mine[i], n, sizes[i]);
		/* What the thread had in hand is lost; and a slab is a slab. */
		CHECK(births() - before <= 2, "size %zu: %ld new slabs", sizes[i],
		      births() - before);
		for (unsigned k = 0; k < blocks_of(i); k++)
			for (size_t at = 0; block[i][k] && at < sizes[i]; at += 8)
				CHECK(((unsigned char *)block[i][k])[at] == 0x5a ||
					  k < 16 /* not written */,
				      "a block that is out was given away");
		for (unsigned k = 0; k < n; k++)
			memset(mine[i][k], 1, sizes[i]);
		for (unsigned k = 16; k < blocks_of(i); k++)
			CHECK(!block[i][k] || *(unsigned char *)block[i][k] == 0x5a);
	}
	for (unsigned i = 0; i < SIZES; i++) {
		free_many(mine[i], 0, blocks_of(i) / 2, 1);
		free_many(block[i], 0, blocks_of(i), 1);
	}
	ns_malloc_trim(0);
	CHECK(!heaps_salvage(), "trim leaves no heap without a thread");
	CHECK(count_of(0, COUNT_cached) == 0, "%ld in no bin", count_of(0, COUNT_cached));
}

static void a_thread_removed(const void *arg)
{
	pthread_t thread;
	int status;

	stop_at = *(const unsigned *)arg;
	machine_start(1, 256);
	pthread_barrier_init(&ready, NULL, 2);
	ns_free(ns_malloc(1));
	CHECK(pthread_create(&thread, NULL, removed, NULL) == 0);
	pthread_barrier_wait(&ready);
	pid_t pid = fork();
	if (pid == 0) {
		alarm(60);
		live_on();
		if (stop_at == 0) {
			audit(NULL, false);
			audit_all_returned();
		}
		fflush(NULL);
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 0, "the child ended with %#x", status);
}

static void test_a_thread_removed(void **state)
{
	(void)state;
	for (unsigned i = 0; i <= 6; i++)
		assert_child(a_thread_removed, &i);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_a_thread_removed),
};

TAP_MAIN(tests)
