/* SPDX-License-Identifier: MIT */
/* Plugins: RTLD_DEEPBIND, RUNPATH, namespaces, TLS that comes and goes. */
#include "harness.h"

#include <dlfcn.h>
#include <link.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct plugin {
	void *handle;
	void *(*alloc)(size_t);
	void (*release)(void *);
	char *(*dup)(const char *);
	void *(*grow)(void *, size_t);
};

static void plugin_symbols(struct plugin *p)
{
	if (!p->handle)
		fail("%s", dlerror());
	*(void **)&p->alloc = dlsym(p->handle, "plugin_alloc");
	*(void **)&p->release = dlsym(p->handle, "plugin_free");
	*(void **)&p->dup = dlsym(p->handle, "plugin_dup");
	*(void **)&p->grow = dlsym(p->handle, "plugin_grow");
	CHECK(p->alloc && p->release && p->dup && p->grow);
}

/* Blocks that the plugin made reach the program. */
static void plugin_gives(const struct plugin *p)
{
	for (int i = 0; i < 300; i++) {
		char *a = p->alloc(i * 11 + 1), *b = p->dup("text");

		memset(a, 1, i * 11 + 1);
		a = realloc(a, i * 30 + 1);
		CHECK(a[0] == 1 && !strcmp(b, "text"));
		CHECK(malloc_usable_size(b) >= 5);
		free(a);
		free(b);
	}
}

static void plugin_takes(const struct plugin *p)
{
	for (int i = 0; i < 300; i++) {
		char *a = malloc(i * 11 + 1), *b = strdup("text"), *c = p->dup("more");

		memset(a, 1, i * 11 + 1);
		a = p->grow(a, i * 30 + 1);
		CHECK(a[0] == 1);
		p->release(a);
		p->release(b);
		p->release(c);
	}
}

static void deepbind(void)
{
	struct plugin p = {.handle = dlopen(dir_file("tls_plugin.so"), RTLD_NOW | RTLD_DEEPBIND)};

	plugin_symbols(&p);
	plugin_gives(&p);
	plugin_takes(&p);
	CHECK_EQ(dlclose(p.handle), 0);
}

/* NUMASLAB_DEEPBIND=keep: the plugin's blocks are libc's, and still can be freed by us. */
static void deepbind_keep(void)
{
	struct plugin p = {.handle = dlopen(dir_file("tls_plugin.so"), RTLD_NOW | RTLD_DEEPBIND)};

	plugin_symbols(&p);
	plugin_gives(&p);
	CHECK_EQ(dlclose(p.handle), 0);
}

/* A plugin of a plugin, found only by the RUNPATH of the one that asks. */
static void runpath(void)
{
	void *outer = dlopen(dir_file("outer.so"), RTLD_NOW | RTLD_LOCAL);
	void *(*load)(const char *, int);

	if (!outer)
		fail("%s", dlerror());
	*(void **)&load = dlsym(outer, "outer_load");
	for (int i = 0; i < 3; i++) {
		struct plugin p = {.handle =
				       load("libinner.so", i == 0   ? RTLD_NOW
							   : i == 1 ? RTLD_LAZY | RTLD_DEEPBIND
								    : RTLD_NOW | RTLD_GLOBAL)};

		plugin_symbols(&p);
		plugin_gives(&p);
		plugin_takes(&p);
		dlclose(p.handle);
	}
	CHECK(dlopen("libinner.so", RTLD_NOW) == NULL);
	CHECK(strstr(dlerror(), "libinner.so"));
	dlclose(outer);
}

static void namespaces(void)
{
	for (int i = 0; i < 5; i++) {
		struct plugin p = {.handle =
				       dlmopen(LM_ID_NEWLM, dir_file("tls_plugin.so"), RTLD_NOW)};
		char *a;

		plugin_symbols(&p);
		a = p.alloc(3000);
		memset(a, 1, 3000);
		a = p.grow(a, 100000);
		CHECK(a[2999] == 1);
		p.release(a);
		p.release(p.dup("text"));
		CHECK_EQ(dlclose(p.handle), 0);
		exercise(5, i);
	}
	/* Code of another namespace loads into its own. */
	void *outer = dlmopen(LM_ID_NEWLM, dir_file("outer.so"), RTLD_NOW);
	void *(*load)(const char *, int);
	Lmid_t theirs, wanted;

	if (!outer)
		fail("%s", dlerror());
	*(void **)&load = dlsym(outer, "outer_load");
	void *inner = load("libinner.so", RTLD_NOW);
	CHECK(inner != NULL);
	dlinfo(outer, RTLD_DI_LMID, &wanted);
	dlinfo(inner, RTLD_DI_LMID, &theirs);
	CHECK_EQ(theirs, wanted);
}

static void dlopen_is_dlopen(void)
{
	void *self = dlopen(NULL, RTLD_NOW);

	CHECK(self && dlsym(self, "malloc"));
	CHECK(!dlopen("/nonexistent/x.so", RTLD_NOW));
	CHECK(strstr(dlerror(), "/nonexistent/x.so"));
	CHECK(!dlerror());
	CHECK(!dlopen("libc.so.6", 0)); /* no binding mode: refused */
	CHECK(dlerror());
	CHECK(dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD));
}

static void *use_plugin(void *arg)
{
	int (*touch)(void) = *(int (**)(void))arg;

	CHECK_EQ(touch(), 1);
	for (int i = 0; i < 300; i++)
		free(malloc(i * 20));
	return NULL;
}

/* Plugins with TLS, loaded and unloaded in a loop, used by threads meanwhile. */
static void plugin_loop(void)
{
	size_t before = 0;

	for (int i = 0; i < 400; i++) {
		void *handle = dlopen(dir_file("tls_plugin.so"), i & 1 ? RTLD_NOW : RTLD_LAZY);
		void *touch;
		pthread_t threads[2];

		CHECK(handle);
		touch = dlsym(handle, "plugin_touch");
		for (int k = 0; k < 2; k++)
			CHECK_EQ(pthread_create(&threads[k], NULL, use_plugin, &touch), 0);
		for (int k = 0; k < 2; k++)
			pthread_join(threads[k], NULL);
		CHECK_EQ(dlclose(handle), 0);
		if (i == 100)
			before = anon_kib();
	}
	if (anon_kib() > before + 2048)
		fail("300 loops cost %zu KiB", anon_kib() - before);
}

enum { HANDS = 64, TURNS = 300000 };
static _Atomic(void *) hand[HANDS];
static atomic_bool begun;
static size_t least = 32; /* bytes of a block */

/* Blocks change hands at random. */
static void *pass_on(void *seed_at)
{
	uint64_t seed = (uintptr_t)seed_at;

	for (int i = 0; i < TURNS; i++) {
		size_t size = least + random_next(&seed) % 700;
		void *block = malloc(size);

		CHECK(block);
		block_fill(block, 32);
		block = atomic_exchange(&hand[random_next(&seed) % HANDS], block);
		CHECK(!block || block_holds(block, 32));
		free(block);
		atomic_store(&begun, true);
	}
	return NULL;
}

/* Threads made by the libc of another namespace: this one does not know that there are any. */
static void another_libcs_threads(void)
{
	void *libc = dlmopen(LM_ID_NEWLM, "libc.so.6", RTLD_NOW);
	int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
	int (*join)(pthread_t, void **);
	pthread_t threads[3];

	if (!libc)
		skip("dlmopen: %s", dlerror());
	*(void **)&create = dlsym(libc, "pthread_create");
	*(void **)&join = dlsym(libc, "pthread_join");
	CHECK(create && join);
	free(malloc(1));
	for (uintptr_t k = 0; k < 3; k++)
		CHECK_EQ(create(&threads[k], NULL, pass_on, (void *)(k + 1)), 0);
	while (!atomic_load(&begun))
		sched_yield();
	pass_on((void *)7);
	for (int k = 0; k < 3; k++)
		join(threads[k], NULL);
}

/* The same of threads that need no heap: large blocks alone. */
static void another_libcs_large_blocks(void)
{
	least = 100000;
	another_libcs_threads();
}

const struct test tests[] = {
    {.name = "deepbind", .run = deepbind},
    {.name = "deepbind_keep", .run = deepbind_keep, .env = {"NUMASLAB_DEEPBIND=keep"}},
    {.name = "runpath", .run = runpath},
    {.name = "namespaces", .run = namespaces},
    {.name = "dlopen_is_dlopen", .run = dlopen_is_dlopen},
    {.name = "another_libcs_threads", .run = another_libcs_threads, .timeout = 60},
    {.name = "another_libcs_large_blocks", .run = another_libcs_large_blocks, .timeout = 60},
    {.name = "plugin_loop", .run = plugin_loop, .timeout = 60},
    {.name = NULL},
};
