/* SPDX-License-Identifier: MIT */
/* Start: the first call from anywhere, late loading, foreign pointers. */
#include "harness.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct family {
	void *(*alloc)(size_t);
	void (*release)(void *);
	void *(*resize)(void *, size_t);
	size_t (*usable)(void *);
};

static void load_family(struct family *f, void *handle)
{
	*(void **)&f->alloc = dlsym(handle, "malloc");
	*(void **)&f->release = dlsym(handle, "free");
	*(void **)&f->resize = dlsym(handle, "realloc");
	*(void **)&f->usable = dlsym(handle, "malloc_usable_size");
	CHECK(f->alloc && f->release && f->resize && f->usable);
}

static void exercise_family(const struct family *f)
{
	void *blocks[200];

	for (int round = 0; round < 20; round++) {
		for (int i = 0; i < 200; i++) {
			blocks[i] = f->alloc(i * 17 + 1);
			CHECK(blocks[i] && f->usable(blocks[i]) >= (size_t)i * 17 + 1);
			block_fill(blocks[i], i * 17 + 1);
		}
		for (int i = 0; i < 200; i++) {
			CHECK(block_holds(blocks[i], i * 17 + 1));
			if (i & 1)
				blocks[i] = f->resize(blocks[i], i * 40 + 1);
			CHECK(blocks[i]);
			f->release(blocks[i]);
		}
	}
}

static void ordinary(void)
{
	exercise(100, 2);
	CHECK_EQ(thread_count(), 1);
}

static void copy_file(const char *from, const char *to)
{
	char text[65536];
	int in = open(from, O_RDONLY | O_CLOEXEC), out;
	ssize_t n;

	out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
	CHECK(in >= 0 && out >= 0);
	while ((n = read(in, text, sizeof(text))) > 0)
		CHECK_EQ(write(out, text, n), n);
	close(in);
	close(out);
}

static void *touch_and_leave(void *touch)
{
	return ((int (*)(void))touch)() == 1 ? NULL : touch;
}

static void thread_calls(void *touch)
{
	pthread_t thread;
	void *bad;

	CHECK_EQ(pthread_create(&thread, NULL, touch_and_leave, touch), 0);
	pthread_join(thread, &bad);
	CHECK(!bad);
}

/* ld.so allocates and grows the vector of TLS blocks, the first of them before we are there. */
static void tls_many_modules(void)
{
	char path[80], folder[] = "/tmp/numaslab-test-XXXXXX";

	CHECK(mkdtemp(folder));
	for (int i = 0; i < 60; i++) {
		void *handle, *touch;

		snprintf(path, sizeof(path), "%s/%d.so", folder, i);
		copy_file(dir_file("tls_plugin.so"), path);
		handle = dlopen(path, RTLD_NOW);
		unlink(path);
		if (!handle)
			fail("%s", dlerror());
		touch = dlsym(handle, "plugin_touch");
		CHECK_EQ(((int (*)(void))touch)(), 1);
		thread_calls(touch);
	}
	rmdir(folder);
}

/* The library's own TLS fits where a late dlopen must put it, with room for others. */
static void tls_is_small(void)
{
	const ElfW(Ehdr) * file;
	const ElfW(Phdr) * head;
	int fd;

	if (!strchr(lib_path(), '/'))
		skip("no file to look at");
	fd = open(lib_path(), O_RDONLY | O_CLOEXEC);
	CHECK(fd >= 0);
	file = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
	CHECK(file != MAP_FAILED);
	head = (const void *)((const char *)file + file->e_phoff);
	for (int i = 0; i < file->e_phnum; i++)
		if (head[i].p_type == PT_TLS && head[i].p_memsz > 512)
			fail("%zu bytes of TLS", (size_t)head[i].p_memsz);
}

static struct family late;

static void *late_thread(void *unused)
{
	exercise_family(&late);
	return unused;
}

static void *old_thread(void *gate)
{
	pthread_mutex_lock(gate);
	pthread_mutex_unlock(gate);
	exercise_family(&late);
	return NULL;
}

/* Foreign pointers, libc's own, reach its free, realloc and malloc_usable_size. */
static void foreign_to(const struct family *f)
{
	struct family libc;
	void *handle = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);

	load_family(&libc, handle);
	for (size_t size = 1; size < 400000; size = size * 5 / 3 + 1) {
		unsigned char *p = libc.alloc(size), *q = libc.alloc(size);

		memset(p, 8, size);
		CHECK(f->usable(p) >= size);
		p = f->resize(p, size * 2);
		for (size_t i = 0; i < size; i++)
			CHECK_EQ(p[i], 8);
		f->release(p);
		f->release(q);
	}
}

static void load_late(int flags)
{
	pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
	pthread_t old, young;
	void *handle, *before = malloc(100);

	if (!*lib_path())
		skip("glibc cannot be loaded late");
	pthread_mutex_lock(&gate);
	CHECK_EQ(pthread_create(&old, NULL, old_thread, &gate), 0);
	handle = dlopen(lib_path(), flags);
	if (!handle)
		fail("%s", dlerror());
	load_family(&late, handle);
	exercise_family(&late);
	late.release(before);
	foreign_to(&late);
	pthread_mutex_unlock(&gate);
	pthread_join(old, NULL);
	CHECK_EQ(pthread_create(&young, NULL, late_thread, NULL), 0);
	pthread_join(young, NULL);
	exercise(50, 4);
	dlclose(handle);
	exercise(50, 5);
}

static void late_global(void)
{
	load_late(RTLD_NOW | RTLD_GLOBAL);
}

static void late_local(void)
{
	load_late(RTLD_LAZY | RTLD_LOCAL);
}

static void late_deepbind(void)
{
	load_late(RTLD_NOW | RTLD_DEEPBIND);
}

static void foreign_pointers(void)
{
	struct family mine;

	load_family(&mine, RTLD_DEFAULT);
	foreign_to(&mine);
}

static void early_blocks(void)
{
	void *(*block)(void);

	*(void **)&block = dlsym(RTLD_DEFAULT, "early_block");
	CHECK(block && block());
	memset(block(), 1, 1000);
	free(block());
	exercise(100, 8);
}

static void wrapped(void)
{
	exercise(100, 8);
	for (int i = 0; i < 20; i++) {
		char *p = malloc(8 << 20), *q;

		memset(p, 1, 8 << 20);
		q = realloc(p, 20 << 20);
		free(q);
	}
	tls_many_modules();
}

const struct test tests[] = {
    {.name = "ordinary", .run = ordinary},
    {.name = "preinit_array", .program = "preinit"},
    {.name = "ifunc_resolver", .program = "ifunc"},
    {.name = "ifunc_resolver_bind_now", .program = "ifunc", .env = {"LD_BIND_NOW=1"}},
    {.name = "wrapper_before", .run = wrapped, .preload = "DIR/wrap_calls.so:LIB"},
    {.name = "wrapper_after", .run = wrapped, .preload = "LIB:DIR/wrap_calls.so"},
    {.name = "thread_wrapper_before", .run = wrapped, .preload = "DIR/wrap_threads.so:LIB"},
    {.name = "thread_wrapper_after", .run = wrapped, .preload = "LIB:DIR/wrap_threads.so"},
    {.name = "wrapper_preinit",
     .program = "preinit",
     .preload = "LIB:DIR/wrap_calls.so:DIR/wrap_threads.so"},
    {.name = "thread_before_constructor",
     .run = early_blocks,
     .preload = "LIB:DIR/early_thread.so"},
    {.name = "thread_after_constructor", .run = early_blocks, .preload = "DIR/early_thread.so:LIB"},
    {.name = "audit", .run = ordinary, .env = {"LD_AUDIT=DIR/audit.so"}},
    {.name = "audit_preinit", .program = "preinit", .env = {"LD_AUDIT=DIR/audit.so"}},
    {.name = "audit_plugins", .run = tls_many_modules, .env = {"LD_AUDIT=DIR/audit.so"}},
    {.name = "tls_many_modules", .run = tls_many_modules},
    {.name = "tls_is_small", .run = tls_is_small},
    {.name = "late_global", .run = late_global, .preload = ":"},
    {.name = "late_local", .run = late_local, .preload = ":"},
    {.name = "late_deepbind", .run = late_deepbind, .preload = ":"},
    {.name = "foreign_pointers", .run = foreign_pointers},
    {.name = NULL},
};
