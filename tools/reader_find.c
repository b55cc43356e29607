/* SPDX-License-Identifier: MIT */
/* Where the files are, and the removal of those that dead processes left. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tools/reader_internal.h"

#define SHM	     "/dev/shm"
#define DIR_PREFIX   "numaslab-"
#define UNFINISHED   ".new-"
#define UNFINISHED_S 60
#define FILES_MAX    16384u

/* What stands behind the names of the files that lie beside one. */
static const char *const beside[] = {".pins", ".control"};
#define BESIDE (sizeof beside / sizeof *beside)

static bool add_path(struct reader_files *files, const char *path)
{
	if (files->count >= FILES_MAX)
		return true;
	if (files->count % 64 == 0) {
		char **more = realloc(files->path, (files->count + 64) * sizeof *more);

		if (!more)
			return false;
		files->path = more;
	}
	files->path[files->count] = strdup(path);
	return files->path[files->count++] != NULL;
}

/* <pid namespace>-<pid>-<start>-<generation> */
static bool is_file_name(const char *name)
{
	int dashes = 0;

	for (; *name; name++) {
		if (*name == '-')
			dashes++;
		else if (!isdigit((unsigned char)*name))
			return false;
	}
	return dashes == 3;
}

/* The directory, if it is no link and belongs to `uid` (-1: to anyone); NULL: errno says why. */
static DIR *open_dir(const char *path, long uid)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return NULL;
	if (fstat(fd, &st) == 0 && (uid < 0 || st.st_uid == (uid_t)uid)) {
		DIR *dir = fdopendir(fd);

		if (dir)
			return dir;
	}
	close(fd);
	errno = ENOENT;
	return NULL;
}

static bool add_dir(struct reader_files *files, const char *path, long uid)
{
	char name[4096];
	DIR *dir = open_dir(path, uid);
	struct dirent *e;
	bool good = true;

	if (!dir) {
		files->denied |= errno == EACCES;
		return true;
	}
	while (good && (e = readdir(dir)))
		if (is_file_name(e->d_name) &&
		    snprintf(name, sizeof name, "%s/%s", path, e->d_name) < (int)sizeof name)
			good = add_path(files, name);
	closedir(dir);
	return good;
}

/* Every user's directory below /dev/shm: one that we may not read tells nothing but that. */
static bool add_all_users(struct reader_files *files)
{
	DIR *shm = open_dir(SHM, -1);
	struct dirent *e;
	bool good = true;

	while (shm && good && (e = readdir(shm))) {
		char path[sizeof SHM + 1 + sizeof e->d_name], *end;

		if (strncmp(e->d_name, DIR_PREFIX, strlen(DIR_PREFIX)))
			continue;
		unsigned long uid = strtoul(e->d_name + strlen(DIR_PREFIX), &end, 10);
		if (*end || end == e->d_name + strlen(DIR_PREFIX))
			continue;
		snprintf(path, sizeof path, SHM "/%s", e->d_name);
		good = add_dir(files, path, (long)uid);
	}
	if (shm)
		closedir(shm);
	return good;
}

bool reader_find_all(struct reader_files *files)
{
	const char *own = getenv("NUMASLAB_DIR");

	memset(files, 0, sizeof *files);
	return own && *own == '/' ? add_dir(files, own, -1) : add_all_users(files);
}

bool reader_find_pid(struct reader_files *files, int pid)
{
	char path[64], line[4608], name[4608 + 64];
	bool found = false;

	memset(files, 0, sizeof *files);
	snprintf(path, sizeof path, "/proc/%d/maps", pid);
	FILE *maps = fopen(path, "re");
	if (!maps) {
		files->denied = errno == EACCES || errno == EPERM;
		return false;
	}
	while (!found && fgets(line, sizeof line, maps)) {
		char *file = strchr(line, '/'), *base = strrchr(line, '/');

		if (!file || !strchr(file, '\n'))
			continue;
		*strchr(file, '\n') = 0;
		if (!is_file_name(base + 1))
			continue;
		snprintf(name, sizeof name, "/proc/%d/root%s", pid, file);
		found = add_path(files, name);
	}
	/* Where it may be listed but not read, fgets fails at once. */
	files->denied |= !found && ferror(maps);
	fclose(maps);
	return found;
}

void reader_files_free(struct reader_files *files)
{
	for (size_t i = 0; i < files->count; i++)
		free(files->path[i]);
	free(files->path);
	memset(files, 0, sizeof *files);
}

uint64_t reader_pid_namespace(void)
{
	char text[64];
	ssize_t n = readlink("/proc/self/ns/pid", text, sizeof text - 1);

	if (n <= 0)
		return 0;
	text[n] = 0;
	const char *at = strchr(text, '[');
	return at ? strtoull(at + 1, NULL, 10) : 0;
}

/* --- Removal. --- */

static bool is_locked(int dir, const char *name)
{
	struct flock l = {
	    .l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = RING_LIVE_BYTE, .l_len = 1};
	struct stat st;
	bool locked = true;
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

	if (fd < 0)
		return true;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid())
		locked = fcntl(fd, F_OFD_GETLK, &l) < 0 || l.l_type != F_UNLCK;
	close(fd);
	return locked;
}

/* A publisher needs some milliseconds from a file's making to its lock and its name. */
static bool is_old(int dir, const char *name)
{
	struct stat st;

	return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_uid == geteuid() &&
	       time(NULL) - st.st_mtime > UNFINISHED_S;
}

/* One that lies beside a file that is gone. */
static void remove_alone(int dir, const char *name, size_t length)
{
	char file[256];

	snprintf(file, sizeof file, "%.*s", (int)length, name);
	if (is_file_name(file) && faccessat(dir, file, F_OK, AT_SYMLINK_NOFOLLOW) < 0 &&
	    is_old(dir, name))
		unlinkat(dir, name, 0);
}

/* Removes name if it is a dead file; what lies beside it goes with it. */
static bool remove_if_dead(int dir, const char *name)
{
	size_t length = strlen(name);
	char other[300];

	for (size_t i = 0; i < BESIDE; i++) {
		size_t own = length - strlen(beside[i]);

		if (length > strlen(beside[i]) && !strcmp(name + own, beside[i])) {
			remove_alone(dir, name, own);
			return false;
		}
	}
	if (!strncmp(name, UNFINISHED, strlen(UNFINISHED))) {
		if (is_file_name(name + strlen(UNFINISHED)) && is_old(dir, name) &&
		    !is_locked(dir, name))
			unlinkat(dir, name, 0);
		return false;
	}
	if (!is_file_name(name) || is_locked(dir, name) || unlinkat(dir, name, 0) < 0)
		return false;
	for (size_t i = 0; i < BESIDE; i++) {
		snprintf(other, sizeof other, "%s%s", name, beside[i]);
		unlinkat(dir, other, 0);
	}
	return true;
}

static size_t remove_dead_in(const char *path)
{
	DIR *dir = open_dir(path, (long)geteuid());
	struct dirent *e;
	size_t removed = 0;

	while (dir && (e = readdir(dir)))
		removed += remove_if_dead(dirfd(dir), e->d_name);
	if (dir)
		closedir(dir);
	return removed;
}

size_t reader_remove_dead(void)
{
	const char *own = getenv("NUMASLAB_DIR");
	char path[64];

	snprintf(path, sizeof path, SHM "/" DIR_PREFIX "%u", (unsigned)geteuid());
	return remove_dead_in(own && *own == '/' ? own : path);
}
