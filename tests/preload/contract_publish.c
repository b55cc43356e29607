/* SPDX-License-Identifier: MIT */
/* AT_SECURE; what is published, to whom; tools shown hostile files. */
#include "harness.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

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
	if (system("rm -rf " FOLDER) || mkdir(FOLDER, 0755))
		fail("cannot make " FOLDER);
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
	char *env[] = {"NUMASLAB_TOPOLOGY=0:1G@0;1:1G@1;2:1G@2",
		       "NUMASLAB_PUBLISH_AFTER_MS=0",
		       "NUMASLAB_DIR=" FOLDER "/published",
		       "NUMASLAB_CHECK=1",
		       "PATH=/bin:/usr/bin",
		       NULL};

	run_program(out, args, env);
	if (out->status)
		fail("%s: %s %s", path, status_text(out->status), out->text);
}

static void at_secure(void)
{
	static struct outcome out;
	int plain, secure, files;
	struct stat s;

	if (geteuid())
		skip("only root can make a program set-user-ID");
	link_target();
	/* One that the library would take as its own: what runs owns it, and nobody else enters. */
	mkdir(FOLDER "/published", 0700);
	run_target(&out, FOLDER "/target");
	if (sscanf(out.text, "secure=0 entries=%d files=%d", &plain, &files) != 2 || files < 1)
		fail("without AT_SECURE it should publish: %s", out.text);
	copy_file(FOLDER "/target", FOLDER "/setuid", 0755);
	CHECK_EQ(chown(FOLDER "/setuid", 65534, 65534), 0);
	CHECK_EQ(chmod(FOLDER "/setuid", 06755), 0);
	CHECK_EQ(chown(FOLDER "/published", 65534, 65534), 0);
	int before = count_files(FOLDER "/published"), shm = count_files("/dev/shm/numaslab-65534");
	bool was_there = stat("/dev/shm/numaslab-65534", &s) == 0;

	run_target(&out, FOLDER "/setuid");
	if (sscanf(out.text, "secure=1 entries=%d files=%d", &secure, &files) != 2)
		skip("set-user-ID has no effect here: %s", out.text);
	if (secure == plain)
		fail("NUMASLAB_TOPOLOGY was read by a set-user-ID program (%d entries)", secure);
	if (files != 0 || count_files(FOLDER "/published") != before ||
	    count_files("/dev/shm/numaslab-65534") != shm ||
	    (!was_there && stat("/dev/shm/numaslab-65534", &s) == 0))
		fail("a set-user-ID program published: %s", out.text);
	if (system("rm -rf " FOLDER))
		note("could not remove " FOLDER);
}

static void private_files(void)
{
	char folder[80], path[400];
	struct dirent *entry;
	struct stat s;
	DIR *dir;
	char own[40];
	int files = 0;

	exercise(300, 1);
	snprintf(folder, sizeof(folder), "/dev/shm/numaslab-%d", geteuid());
	if (stat(folder, &s))
		fail("nothing was published: no %s", folder);
	if ((s.st_mode & 07777) != 0700 || s.st_uid != geteuid())
		fail("%s has mode %o", folder, s.st_mode);
	snprintf(own, sizeof(own), "-%d-", getpid());
	dir = opendir(folder);
	CHECK(dir);
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		if (stat(path, &s))
			continue;
		files += strstr(entry->d_name, own) != NULL;
		if ((s.st_mode & 07777) != 0600 || s.st_uid != geteuid())
			fail("%s has mode %o", path, s.st_mode);
	}
	closedir(dir);
	if (!files)
		fail("this process published nothing in %s", folder);
}

/* Someone else's folder, or a link, in our place: nothing is published, nothing is said. */
static void hostile_folder(void)
{
	static struct outcome out;
	static char *args[] = {NULL, NULL};
	const char *target = dir_file("hostile-target"), *link = dir_file("hostile-link");
	char *env[4], env_dir[300];
	struct stat s;

	args[0] = (char *)dir_file("exec_target");
	snprintf(env_dir, sizeof(env_dir), "NUMASLAB_DIR=%.280s", link);
	env[0] = env_dir;
	env[1] = "NUMASLAB_PUBLISH_AFTER_MS=0";
	env[2] = malloc(4200);
	snprintf(env[2], 4200, "LD_PRELOAD=%.4000s", lib_path());
	env[3] = NULL;
	mkdir(target, 0777);
	unlink(link);
	CHECK_EQ(symlink(target, link), 0);
	run_program(&out, args, env);
	if (out.status || out.length)
		fail("%s %s", status_text(out.status), out.text);
	CHECK_EQ(count_files(target), 0);
	CHECK(!lstat(link, &s) && S_ISLNK(s.st_mode));
	unlink(link);
	rmdir(target);
}

/* A folder beside the tests, so that no other user's is in the way. */
#define HOSTILE getenv("NUMASLAB_DIR")

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
	static char *const stat_args[] = {NULL, "stat", NULL},
			   *const json[] = {NULL, "stat", "--json", NULL},
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
		char path[600];
		int fd;

		if (entry->d_name[0] == '.' || strstr(entry->d_name, "pins") ||
		    strstr(entry->d_name, "control"))
			continue;
		snprintf(path, sizeof(path), "%.300s/%.200s", HOSTILE, entry->d_name);
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
		fail("nothing was published in %s", HOSTILE);
	ask_tools(&out, HOSTILE, "a good file");
	snprintf(path, sizeof(path), "%.300s/%.200s9", HOSTILE, name); /* another generation */
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
	if (system("rm -rf \"$NUMASLAB_DIR\""))
		fail("cannot remove %s", HOSTILE);
	CHECK(!mkdir(HOSTILE, 0700));
}

/* A process is called what it likes. */
static void control_characters(void)
{
	static struct outcome out;
	char evil[] = "\033[2J\007\tx\n\x9b"
		      "31m";

	CHECK_EQ(prctl(PR_SET_NAME, evil), 0);
	exercise(300, 1);
	ask_tools(&out, HOSTILE, "an evil name");
	if (strstr(out.text, "2J") == NULL)
		note("the name is not shown at all: %s", out.text);
}

const struct test tests[] = {
#define CHECKED .env = {"NUMASLAB_CHECK=1"}, .numaslab = true, .timeout = 60
    {.name = "at_secure", .run = at_secure, .numaslab = true},
    {.name = "private_files",
     .run = private_files,
     .env = {"NUMASLAB_PUBLISH_AFTER_MS=0"},
     .numaslab = true},
    {.name = "hostile_files",
     .run = hostile_files,
     .before = make_hostile,
     .env = {"NUMASLAB_PUBLISH_AFTER_MS=0", "NUMASLAB_DIR=DIR/hostile"},
     .numaslab = true,
     .timeout = 90},
    {.name = "control_characters",
     .run = control_characters,
     .before = make_hostile,
     .env = {"NUMASLAB_PUBLISH_AFTER_MS=0", "NUMASLAB_DIR=DIR/hostile"},
     .numaslab = true},
    {.name = "hostile_folder", .run = hostile_folder, .numaslab = true},
    {.name = NULL},
};
