/* SPDX-License-Identifier: MIT */
/* Wrong frees, corrupted lists, AT_SECURE, what is published and to whom. */
#include "harness.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- NUMASLAB_CHECK=1: found, said, aborted --------------------------------------------------------- */


/* The child does a wrong thing; the message must name the pointer and what is asked for. */
static void expect_caught(const char *what, void (*wrong)(void *), void *p, size_t size,
			  const char *also)
{
	struct outcome *out = mmap(NULL, sizeof(*out), PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
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

static const size_t some_sizes[] = {1, 16, 24, 100, 1000, 4000, 8000, 20000, 60000};
#define SOME (sizeof(some_sizes) / sizeof(some_sizes[0]))

static void check_double_free(void)
{
	for (size_t i = 0; i < SOME; i++) {
		char *p = malloc(some_sizes[i]), *beside = malloc(some_sizes[i]);
		size_t size = malloc_usable_size(p);

		expect_caught("double free", twice, p, size, "double free");
		expect_caught("double free, later", twice_later, p, size, "double free");
		expect_caught("double free by two threads", twice_elsewhere, p, size, "double free");
		expect_caught("realloc of a freed block", resize_freed, p, size, NULL);
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
	expect_caught("pointer to the stack", once, on_stack + 16 - (uintptr_t)on_stack % 16, 0, NULL);
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

/* --- without the check: another block's list is never silently corrupted --------------------------- */

enum { LIVE = 64, LATER = 3000 };

struct scene {
	size_t size, usable;
	unsigned char *live[LIVE]; /* out before; they must keep their content */
	unsigned char *bad;	   /* the block that is treated wrongly */
};

static void make_scene(struct scene *s, size_t size)
{
	s->size = size;
	for (int i = 0; i < LIVE; i++) {
		s->live[i] = malloc(size);
		memset(s->live[i], i + 1, size);
	}
	s->bad = malloc(size);
	s->usable = malloc_usable_size(s->bad);
}

static bool overlap(const unsigned char *a, const unsigned char *b, size_t size)
{
	return a < b + size && b < a + size;
}

static int by_address(const void *a, const void *b)
{
	const unsigned char *x = *(unsigned char *const *)a, *y = *(unsigned char *const *)b;

	return (x > y) - (x < y);
}

/*
 * Allocates many of the same size: none may touch a live block, and no two may touch each other,
 * but for the one that was treated wrongly.  Ends by _exit: 0 harmless, 9 silent corruption.
 */
static void judge_scene(const struct scene *s)
{
	static unsigned char *later[LATER];

	for (int i = 0; i < LATER; i++) {
		later[i] = malloc(s->size);
		if (!later[i])
			_exit(8);
		memset(later[i], 0xee, s->size);
	}
	for (int i = 0; i < LIVE; i++)
		for (size_t k = 0; k < s->size; k++)
			if (s->live[i][k] != i + 1)
				_exit(9);
	qsort(later, LATER, sizeof(later[0]), by_address);
	for (int i = 1; i < LATER; i++)
		if (overlap(later[i - 1], later[i], s->size) &&
		    !overlap(later[i], s->bad, s->usable) &&
		    !overlap(later[i - 1], s->bad, s->usable))
			_exit(9);
	for (int i = 0; i < LATER; i++)
		if (i == 0 || later[i] != later[i - 1])
			free(later[i]);
	for (int i = 0; i < LIVE; i++)
		free(s->live[i]);
	_exit(0);
}

static void judge_outcome(const struct outcome *out, const char *what, size_t size)
{
	int s = out->status;

	if (WIFSIGNALED(s) && (WTERMSIG(s) == SIGABRT || WTERMSIG(s) == SIGILL ||
			       WTERMSIG(s) == SIGTRAP))
		return; /* caught */
	if (s)
		fail("%s, %zu bytes: %s%s", what, size, status_text(s),
		     WIFEXITED(s) && WEXITSTATUS(s) == 9 ? ": another block was corrupted" : "");
}

static void scene_double(void *arg)
{
	struct scene *s = arg;

	free(opaque(s->bad));
	free(opaque(s->bad));
	judge_scene(s);
}

static void scene_double_apart(void *arg)
{
	struct scene *s = arg;
	void *p = malloc(s->size), *q = malloc(s->size);

	free(opaque(s->bad));
	free(p);
	free(opaque(s->bad));
	free(q);
	judge_scene(s);
}

static void scene_inner(void *arg)
{
	struct scene *s = arg;

	free(opaque(s->bad + 16));
	judge_scene(s);
}

static void scene_remote_double(void *arg)
{
	struct scene *s = arg;
	pthread_t thread;

	free(opaque(s->bad));
	pthread_create(&thread, NULL, free_in_thread, opaque(s->bad));
	pthread_join(thread, NULL);
	judge_scene(s);
}

static void wrong_frees_unchecked(void)
{
	static const struct {
		const char *name;
		void (*act)(void *);
	} acts[] = {{"double free", scene_double},
		    {"double free, apart", scene_double_apart},
		    {"inner pointer", scene_inner},
		    {"double free by another thread", scene_remote_double}};
	static const size_t sizes[] = {32, 48, 112, 500, 2000};
	static struct outcome out;

	for (int i = 0; i < 5; i++) {
		for (int k = 0; k < 4; k++) {
			struct scene s;

			make_scene(&s, sizes[i]);
			run_function(&out, acts[k].act, &s);
			judge_outcome(&out, acts[k].name, sizes[i]);
		}
	}
}

/* --- one byte of a free block's first word --------------------------------------------------------- */

struct corruption {
	struct scene scene;
	int at, value, way;
};

enum { LOCAL_TOP, LOCAL_MIDDLE, REMOTE, WAYS };

static void *free_three(void *p)
{
	for (int i = 0; i < 3; i++)
		free(((void **)p)[i]);
	return NULL;
}

static void corrupt(void *arg)
{
	struct corruption *c = arg;
	void *three[3] = {malloc(c->scene.size), opaque(c->scene.bad), malloc(c->scene.size)};
	pthread_t thread;

	switch (c->way) {
	case LOCAL_TOP:
		free(three[0]);
		free(three[2]);
		free(three[1]);
		break;
	case LOCAL_MIDDLE:
		free_three(three);
		break;
	default:
		pthread_create(&thread, NULL, free_three, three);
		pthread_join(thread, NULL);
	}
	*((volatile unsigned char *)opaque(c->scene.bad) + c->at) = (unsigned char)c->value;
	judge_scene(&c->scene);
}

static void corrupt_all(int way, size_t size)
{
	static struct outcome out;
	struct corruption c = {.way = way};
	int crashes = 0, seen = 0;

	make_scene(&c.scene, size);
	for (c.at = 0; c.at < 8; c.at++) {
		for (c.value = 0; c.value < 256; c.value += c.at < 3 ? 3 : 17) {
			char what[80];

			run_function(&out, corrupt, &c);
			snprintf(what, sizeof(what), "way %d: byte %d of the first word set to %#x", way,
				 c.at, c.value);
			seen++;
			if (WIFSIGNALED(out.status) && WTERMSIG(out.status) == SIGSEGV) {
				crashes++; /* not caught, but not silent either */
				note("%s, %zu bytes: crash", what, size);
				continue;
			}
			judge_outcome(&out, what, size);
		}
	}
	if (crashes)
		fail("way %d, %zu bytes: %d of %d values crash instead of being caught", way, size,
		     crashes, seen);
}

static void corrupt_top_32(void)
{
	corrupt_all(LOCAL_TOP, 32);
}

static void corrupt_middle_32(void)
{
	corrupt_all(LOCAL_MIDDLE, 32);
}

static void corrupt_remote_32(void)
{
	corrupt_all(REMOTE, 32);
}

static void corrupt_middle_500(void)
{
	corrupt_all(LOCAL_MIDDLE, 500);
}

static void corrupt_remote_2000(void)
{
	corrupt_all(REMOTE, 2000);
}

/* --- AT_SECURE ------------------------------------------------------------------------------------------ */

#define FOLDER "/tmp/numaslab-test-secure"

static void copy_file(const char *from, const char *to, mode_t mode)
{
	static char text[1 << 16];
	int in = open(from, O_RDONLY | O_CLOEXEC);
	int out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0700);
	ssize_t n;

	if (in < 0 || out < 0)
		fail("copy %s to %s: %s", from, to, strerror(errno));
	while ((n = read(in, text, sizeof(text))) > 0)
		CHECK_EQ(write(out, text, n), n);
	close(in);
	fchmod(out, mode);
	close(out);
}

static int count_files(const char *path)
{
	DIR *dir = opendir(path);
	int count = 0;

	if (!dir)
		return 0;
	while (readdir(dir))
		count++;
	closedir(dir);
	return count - 2;
}

/* A program that needs the library by name, since LD_PRELOAD takes no path when secure. */
static void link_target(void)
{
	char command[9000];

	if (!strchr(lib_path(), '/'))
		skip("a file is needed");
	mkdir(FOLDER, 0755);
	copy_file(lib_path(), FOLDER "/liballoc.so", 0755);
	snprintf(command, sizeof(command),
		 "LD_PRELOAD= cc -D_GNU_SOURCE -I. tests/preload/helpers/secure_target.c -o " FOLDER
		 "/target -Wl,--no-as-needed " FOLDER "/liballoc.so -Wl,-rpath," FOLDER
		 " && cd " FOLDER " && n=$(LC_ALL=C readelf -d liballoc.so | sed -n "
		 "'s/.*SONAME.*\\[\\(.*\\)\\].*/\\1/p') && [ -z \"$n\" ] || cp " FOLDER
		 "/liballoc.so " FOLDER "/$n");
	if (system(command))
		skip("cannot link a program here");
}

static void run_target(struct outcome *out, const char *path)
{
	char *args[] = {(char *)path, NULL};
	char *env[] = {"NUMASLAB_TOPOLOGY=0:1G@0;1:1G@1;2:1G@2", "NUMASLAB_PUBLISH_AFTER_MS=0",
		       "NUMASLAB_DIR=" FOLDER "/published", "NUMASLAB_CHECK=1", "PATH=/bin:/usr/bin",
		       NULL};

	run_program(out, args, env);
	if (out->status)
		fail("%s: %s %s", path, status_text(out->status), out->text);
}

static void at_secure(void)
{
	static struct outcome out;
	int plain, secure;

	if (geteuid())
		skip("only root can make a program set-user-ID");
	link_target();
	mkdir(FOLDER "/published", 0777);
	chmod(FOLDER "/published", 0777);
	run_target(&out, FOLDER "/target");
	if (sscanf(out.text, "secure=0 entries=%d", &plain) != 1)
		fail("%s", out.text);
	copy_file(FOLDER "/target", FOLDER "/setuid", 0755);
	CHECK_EQ(chown(FOLDER "/setuid", 65534, 65534), 0);
	CHECK_EQ(chmod(FOLDER "/setuid", 06755), 0);
	int before = count_files(FOLDER "/published"), shm = count_files("/dev/shm/numaslab-65534");

	run_target(&out, FOLDER "/setuid");
	if (sscanf(out.text, "secure=1 entries=%d", &secure) != 1)
		skip("set-user-ID has no effect here: %s", out.text);
	if (secure == plain)
		fail("NUMASLAB_TOPOLOGY was read by a set-user-ID program (%d entries)", secure);
	if (count_files(FOLDER "/published") != before ||
	    count_files("/dev/shm/numaslab-65534") != shm)
		fail("a set-user-ID program published");
	if (system("rm -rf " FOLDER))
		note("could not remove " FOLDER);
}

/* --- what is published ------------------------------------------------------------------------------------- */

static void private_files(void)
{
	char folder[80], path[400];
	struct dirent *entry;
	struct stat s;
	DIR *dir;
	int files = 0;

	exercise(300, 1);
	snprintf(folder, sizeof(folder), "/dev/shm/numaslab-%d", geteuid());
	if (stat(folder, &s))
		fail("nothing was published: no %s", folder);
	if ((s.st_mode & 07777) != 0700 || s.st_uid != geteuid())
		fail("%s has mode %o", folder, s.st_mode);
	dir = opendir(folder);
	CHECK(dir);
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		if (stat(path, &s))
			continue;
		files++;
		if ((s.st_mode & 07777) != 0600 || s.st_uid != geteuid())
			fail("%s has mode %o", path, s.st_mode);
	}
	closedir(dir);
	CHECK(files > 0);
}

/* Someone else's folder, or a link, in our place: nothing is published, nothing is said. */
static void hostile_folder(void)
{
	static struct outcome out;
	static char *args[] = {NULL, NULL};
	char *env[5];
	struct stat s;

	args[0] = (char *)dir_file("exec_target");
	env[0] = "NUMASLAB_DIR=/tmp/numaslab-test-link";
	env[1] = "NUMASLAB_PUBLISH_AFTER_MS=0";
	env[2] = malloc(4200);
	snprintf(env[2], 4200, "LD_PRELOAD=%.4000s", lib_path());
	env[3] = NULL;
	mkdir("/tmp/numaslab-test-target", 0777);
	unlink("/tmp/numaslab-test-link");
	CHECK_EQ(symlink("/tmp/numaslab-test-target", "/tmp/numaslab-test-link"), 0);
	run_program(&out, args, env);
	if (out.status || out.length)
		fail("%s %s", status_text(out.status), out.text);
	CHECK_EQ(count_files("/tmp/numaslab-test-target"), 0);
	CHECK(!lstat("/tmp/numaslab-test-link", &s) && S_ISLNK(s.st_mode));
	unlink("/tmp/numaslab-test-link");
	rmdir("/tmp/numaslab-test-target");
}

/* --- the tools, shown hostile things -------------------------------------------------------------------- */

#define HOSTILE "/tmp/numaslab-test-hostile"

/* No signal, no endless run, nothing that a terminal would act on. */
static void expect_calm(const struct outcome *out, const char *what)
{
	if (!WIFEXITED(out->status))
		fail("%s: %s", what, status_text(out->status));
	for (size_t i = 0; i < out->length; i++) {
		unsigned char c = out->text[i];

		if ((c < 32 && c != '\n' && c != '\t') || c == 127)
			fail("%s: byte %#x in the output: %.300s", what, c, out->text);
	}
}

static void ask_tools(struct outcome *out, const char *folder, const char *what)
{
	static char *const stat_args[] = {NULL, "stat", NULL}, *const json[] = {NULL, "stat", "--json", NULL},
				       *const top[] = {NULL, "top", "-b", "-n", "1", NULL};
	char *const *const all[] = {stat_args, json, top};
	char env_dir[300], *env[] = {env_dir, "PATH=/bin:/usr/bin", "TERM=xterm", NULL};
	char *tool = realpath(dir_file("../../numaslab"), NULL);

	if (!tool)
		skip("build/numaslab is not there");
	snprintf(env_dir, sizeof(env_dir), "NUMASLAB_DIR=%s", folder);
	for (int i = 0; i < 3; i++) {
		char *args[8] = {tool};

		for (int k = 1; all[i][k]; k++)
			args[k] = all[i][k];
		run_program(out, args, env);
		if (WIFEXITED(out->status) && WEXITSTATUS(out->status) == 2 && i != 1)
			skip("this build has no %s", args[1]);
		expect_calm(out, what);
	}
	free(tool);
}

/* What this process published, as bytes to be spoiled; 0 where there is nothing. */
static size_t own_file(char *text, size_t size, char *name, size_t name_size)
{
	DIR *dir = opendir(HOSTILE);
	struct dirent *entry;
	size_t got = 0;

	CHECK(dir);
	while ((entry = readdir(dir))) {
		char path[400];
		int fd;

		if (entry->d_name[0] == '.' || strstr(entry->d_name, "pins") ||
		    strstr(entry->d_name, "control"))
			continue;
		snprintf(path, sizeof(path), HOSTILE "/%.200s", entry->d_name);
		snprintf(name, name_size, "%.200s", entry->d_name);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		got = fd >= 0 ? read(fd, text, size) : 0;
		close(fd);
	}
	closedir(dir);
	return got == (size_t)-1 ? 0 : got;
}

static void spoil(char *text, size_t size, int way, uint64_t *seed)
{
	size_t header = size < 4096 ? size : 4096;

	switch (way % 4) {
	case 0: /* words of the header */
		for (int i = 0; i < 3; i++)
			((uint64_t *)(void *)text)[random_next(seed) % (header / 8)] =
				(uint64_t)random_next(seed) << (random_next(seed) % 33);
		break;
	case 1: /* all ones, somewhere */
		memset(text + random_next(seed) % header, 0xff, 16);
		break;
	case 2: /* escape sequences wherever text may be */
		for (int i = 0; i < 20; i++)
			memcpy(text + random_next(seed) % (header - 8), "\033]0;x\007", 7);
		break;
	default:
		for (int i = 0; i < 200; i++)
			text[random_next(seed) % size] ^= (char)(1 << random_next(seed) % 8);
	}
}

static void hostile_files(void)
{
	static struct outcome out;
	static char good[4 << 20], bad[4 << 20];
	char name[256] = "4026531836-1-1-0", path[600], what[80];
	uint64_t seed = 9;
	size_t size;

	exercise(300, 1);
	size = own_file(good, sizeof(good), name, sizeof(name));
	if (!size)
		fail("nothing was published in " HOSTILE);
	ask_tools(&out, HOSTILE, "a good file");
	snprintf(path, sizeof(path), HOSTILE "/%.200s9", name); /* another generation */
	for (int way = 0; way < 40; way++) {
		size_t length = way % 5 == 4 ? random_next(&seed) % size : size;
		int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

		memcpy(bad, good, size);
		spoil(bad, size, way, &seed);
		CHECK_EQ(write(fd, bad, length), (ssize_t)length);
		close(fd);
		snprintf(what, sizeof(what), "spoiled file %d", way);
		ask_tools(&out, HOSTILE, what);
	}
	unlink(path);
	CHECK(!mkfifo(path, 0600));
	ask_tools(&out, HOSTILE, "a fifo");
	unlink(path);
	CHECK(!symlink("/dev/zero", path));
	ask_tools(&out, HOSTILE, "a link to a device");
	unlink(path);
	CHECK(!mkdir(path, 0700));
	ask_tools(&out, HOSTILE, "a folder");
	rmdir(path);
}

static void make_hostile(void)
{
	if (system("rm -rf " HOSTILE))
		fail("cannot remove " HOSTILE);
	CHECK(!mkdir(HOSTILE, 0700));
}

/* A process is called what it likes. */
static void control_characters(void)
{
	static struct outcome out;
	char evil[] = "\033[2J\007\tx\n\x9b" "31m";

	CHECK_EQ(prctl(PR_SET_NAME, evil), 0);
	exercise(300, 1);
	ask_tools(&out, HOSTILE, "an evil name");
	if (strstr(out.text, "2J") == NULL)
		note("the name is not shown at all: %s", out.text);
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
	{.name = "wrong_frees_unchecked", .run = wrong_frees_unchecked, .timeout = 60},
	{.name = "corrupt_top_32", .run = corrupt_top_32, .timeout = 120},
	{.name = "corrupt_middle_32", .run = corrupt_middle_32, .timeout = 120},
	{.name = "corrupt_remote_32", .run = corrupt_remote_32, .timeout = 120},
	{.name = "corrupt_middle_500", .run = corrupt_middle_500, .timeout = 120},
	{.name = "corrupt_remote_2000", .run = corrupt_remote_2000, .timeout = 120},
	{.name = "at_secure", .run = at_secure, .numaslab = true},
	{.name = "private_files",
	 .run = private_files,
	 .env = {"NUMASLAB_PUBLISH_AFTER_MS=0"},
	 .numaslab = true},
	{.name = "hostile_files",
	 .run = hostile_files,
	 .before = make_hostile,
	 .env = {"NUMASLAB_PUBLISH_AFTER_MS=0", "NUMASLAB_DIR=" HOSTILE},
	 .numaslab = true,
	 .timeout = 90},
	{.name = "control_characters",
	 .run = control_characters,
	 .before = make_hostile,
	 .env = {"NUMASLAB_PUBLISH_AFTER_MS=0", "NUMASLAB_DIR=" HOSTILE},
	 .numaslab = true},
	{.name = "hostile_folder", .run = hostile_folder, .numaslab = true},
	{.name = NULL},
};
