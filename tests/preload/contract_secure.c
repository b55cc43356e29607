/* SPDX-License-Identifier: MIT */
/* NUMASLAB_CHECK=1: each wrong free is found, said and aborted. */
#include "harness.h"

#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* The child does a wrong thing; the message must name the pointer and what is asked for. */
static void expect_caught(const char *what, void (*wrong)(void *), void *p, size_t size,
			  const char *also)
{
	struct outcome *out =
	    mmap(NULL, sizeof(*out), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char text[40];

	run_function(out, wrong, p);
	if (!WIFSIGNALED(out->status) || WTERMSIG(out->status) != SIGABRT)
		fail("%s of %p (%zu bytes): %s, not abort; printed: %s", what, p, size,
		     status_text(out->status), out->text);
	snprintf(text, sizeof(text), "%p", p);
	if (!strstr(out->text, "numaslab") || !strstr(out->text, text))
		fail("%s: the message does not name %s: %s", what, text, out->text);
	if (size) {
		snprintf(text, sizeof(text), "size class %zu", size);
		if (!strstr(out->text, text) || !strstr(out->text, "node "))
			fail("%s: the message lacks '%s' and the node: %s", what, text, out->text);
	}
	if (also && !strstr(out->text, also))
		fail("%s: the message lacks '%s': %s", what, also, out->text);
	if (out->length > 400 || strchr(out->text, '\n') != out->text + out->length - 1)
		fail("%s: not one line: %s", what, out->text);
	munmap(out, sizeof(*out));
}

static size_t kept_size;

static void twice(void *p)
{
	free(opaque(p));
	free(opaque(p));
}

static void twice_later(void *p)
{
	void *others[50];

	free(opaque(p));
	for (int i = 0; i < 50; i++)
		others[i] = malloc(5000);
	for (int i = 0; i < 50; i++)
		free(others[i]);
	free(opaque(p));
}

static void *free_in_thread(void *p)
{
	free(p);
	return NULL;
}

static void twice_elsewhere(void *p)
{
	pthread_t thread;

	pthread_create(&thread, NULL, free_in_thread, opaque(p));
	pthread_join(thread, NULL);
	free(opaque(p));
}

static void once(void *p)
{
	free(opaque(p));
}

static void resize(void *p)
{
	opaque(realloc(opaque(p), 100000));
}

static void resize_freed(void *p)
{
	free(opaque(p));
	opaque(realloc(opaque(p), 100000));
}

/* To what it has already: no block is taken or given. */
static void keep(void *p)
{
	opaque(realloc(opaque(p), 1));
}

static void keep_freed(void *p)
{
	free(opaque(p));
	opaque(realloc(opaque(p), kept_size));
}

static void ask_freed(void *p)
{
	free(opaque(p));
	malloc_usable_size(opaque(p));
}

static const size_t some_sizes[] = {1, 16, 24, 100, 1000, 4000, 8000, 20000, 60000};
#define SOME (sizeof(some_sizes) / sizeof(some_sizes[0]))

static void check_double_free(void)
{
	for (size_t i = 0; i < SOME; i++) {
		char *p = malloc(some_sizes[i]), *beside = malloc(some_sizes[i]);
		size_t size = malloc_usable_size(p);

		expect_caught("double free", twice, p, size, "double free");
		expect_caught("double free, later", twice_later, p, size, "double free");
		expect_caught("double free by two threads", twice_elsewhere, p, size,
			      "double free");
		expect_caught("realloc of a freed block", resize_freed, p, size, NULL);
		kept_size = size;
		expect_caught("the same in place", keep_freed, p, size, "freed");
		expect_caught("usable size of a freed block", ask_freed, p, size, "freed");
		free(p);
		free(beside);
	}
}

static void check_inner(void)
{
	for (size_t i = 0; i < SOME; i++) {
		char *p = malloc(some_sizes[i]);
		size_t size = malloc_usable_size(p);

		for (size_t at = 1; at < size; at = at * 2) {
			expect_caught("inner pointer", once, p + at, size, NULL);
			expect_caught("realloc of an inner pointer", resize, p + at, size, NULL);
			expect_caught("realloc to less of an inner pointer", keep, p + at, size,
				      NULL);
		}
		free(p);
	}
}

static void check_large(void)
{
	char *p = malloc(3 << 20), *q = malloc(40 << 20);

	memset(p, 1, 3 << 20);
	expect_caught("double free of a large block", twice, p, 0, NULL);
	expect_caught("double free of a large block", twice, q, 0, NULL);
	expect_caught("inner pointer of a large block", once, p + 16, 0, NULL);
	expect_caught("inner pointer of a large block", once, p + 4096, 0, NULL);
	expect_caught("inner pointer of a large block", once, p + (1 << 20), 0, NULL);
	expect_caught("inner pointer of a large block", once, q + (20 << 20), 0, NULL);
}

static char in_data[4096];

static void check_foreign(void)
{
	char on_stack[256], *mapped, *p = malloc(100);
	uintptr_t window = (uintptr_t)p;

	mapped = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	expect_caught("pointer to the stack", once, on_stack + 16 - (uintptr_t)on_stack % 16, 0,
		      NULL);
	expect_caught("pointer to data", once, in_data + 64 - (uintptr_t)in_data % 16, 0, NULL);
	expect_caught("pointer to code", once, (void *)check_foreign, 0, NULL);
	expect_caught("pointer to a mapping", once, mapped + 4096, 0, NULL);
	expect_caught("small number", once, (void *)0x10, 0, NULL);
	expect_caught("not canonical", once, (void *)0xdead000000000000, 0, NULL);
	expect_caught("kernel address", once, (void *)0xffffffff81000000, 0, NULL);
	expect_caught("far in the window", once, (void *)(window + (1ul << 30)), 0, NULL);
	free(p);
}

/* A block's unused neighbour, never handed out. */
static void check_never_out(void)
{
	char *p = malloc(48);
	size_t size = malloc_usable_size(p);

	expect_caught("never handed out", once, p + 20 * size, size, NULL);
	free(p);
}

static void *libc_alloc(size_t size)
{
	void *handle = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
	void *(*alloc)(size_t);

	*(void **)&alloc = dlsym(handle, "malloc");
	return alloc(size);
}

/* No false alarms: ordinary programs, and libc's own blocks, small, mapped, aligned. */
static void check_quiet(void)
{
	exercise(200, 1);
	for (size_t size = 1; size < 3000000; size *= 3) {
		void *p = libc_alloc(size);

		memset(p, 1, size);
		p = realloc(p, size + 10);
		free(p);
	}
	for (int i = 0; i < 100; i++) {
		void *p = NULL;

		CHECK(!posix_memalign(&p, 16ul << i % 12, 100));
		p = realloc(p, 3000);
		free(p);
		free(memalign(1 << 21, 10));
	}
}

static void *quiet_thread(void *unused)
{
	exercise(20, (uintptr_t)&unused);
	return unused;
}

static void check_quiet_threads(void)
{
	pthread_t threads[3];

	for (int i = 0; i < 3; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, quiet_thread, NULL), 0);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
}

const struct test tests[] = {
#define CHECKED .env = {"NUMASLAB_CHECK=1"}, .numaslab = true, .timeout = 60
    {.name = "check_double_free", .run = check_double_free, CHECKED},
    {.name = "check_inner", .run = check_inner, CHECKED},
    {.name = "check_large", .run = check_large, CHECKED},
    {.name = "check_foreign", .run = check_foreign, CHECKED},
    {.name = "check_never_out", .run = check_never_out, CHECKED},
    {.name = "check_quiet", .run = check_quiet, CHECKED},
    {.name = "check_quiet_threads", .run = check_quiet_threads, CHECKED},
    {.name = NULL},
};
