/* SPDX-License-Identifier: MIT */
/* Plugins: RTLD_DEEPBIND, RUNPATH, namespaces, TLS that comes and goes. */
#include "harness.h"

#include <dlfcn.h>
#include <link.h>
#include <malloc.h>
#include <pthread.h>
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

const struct test tests[] = {
    {.name = "deepbind", .run = deepbind},
    {.name = "deepbind_keep", .run = deepbind_keep, .env = {"NUMASLAB_DEEPBIND=keep"}},
    {.name = "runpath", .run = runpath},
    {.name = "namespaces", .run = namespaces},
    {.name = "dlopen_is_dlopen", .run = dlopen_is_dlopen},
    {.name = "plugin_loop", .run = plugin_loop, .timeout = 60},
    {.name = NULL},
};
