/* SPDX-License-Identifier: MIT */
#include "tools/compare_cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define GROUP_PREFIX "numaslab-compare."

static bool file_write(const char *dir, const char *name, const char *text)
{
	char path[PATH_MAX + 32];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = write(fd, text, strlen(text));
	close(fd);
	return n == (ssize_t)strlen(text);
}

static double file_number(const char *dir, const char *name)
{
	char path[PATH_MAX + 32], text[64];
	double value = NAN;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "re");
	if (f && fgets(text, sizeof(text), f))
		value = strtod(text, NULL);
	if (f)
		fclose(f);
	return value;
}

static bool has_word(const char *dir, const char *name, const char *word)
{
	char path[PATH_MAX + 32], text[512];
	bool found = false;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "re");
	if (f && fgets(text, sizeof(text), f))
		for (char *save, *w = strtok_r(text, " \n", &save); w && !found;
		     w = strtok_r(NULL, " \n", &save))
			found = !strcmp(w, word);
	if (f)
		fclose(f);
	return found;
}

bool cmp_cgroup_own(const char *self, char *out, unsigned long size)
{
	const char *at = !strncmp(self, "0::", 3) ? self : strstr(self, "\n0::");
	size_t len;

	if (!at)
		return false;
	at = strstr(at, "0::") + 3;
	len = strcspn(at, "\n");
	if (len >= size || *at != '/')
		return false;
	snprintf(out, size, "%.*s", (int)len, at);
	return true;
}

/* Groups of runs whose compare was killed: theirs is a dead process's number. */
static void sweep(const char *parent)
{
	struct dirent *d;
	DIR *dir = opendir(parent);

	while (dir && (d = readdir(dir))) {
		char path[PATH_MAX + 300];
		int pid;

		if (strncmp(d->d_name, GROUP_PREFIX, strlen(GROUP_PREFIX)) != 0)
			continue;
		pid = atoi(d->d_name + strlen(GROUP_PREFIX));
		if (pid <= 0 || kill(pid, 0) == 0 || errno != ESRCH)
			continue;
		snprintf(path, sizeof(path), "%s/%s", parent, d->d_name);
		rmdir(path);
	}
	if (dir)
		closedir(dir);
}

bool cmp_cgroup_begin(struct cmp_cgroup *cg)
{
	if (!cg->parent[0])
		return false;
	if (snprintf(cg->path, sizeof(cg->path), "%s/" GROUP_PREFIX "%d", cg->parent, getpid()) >=
	    (int)sizeof(cg->path))
		cg->path[0] = '\0';
	if (cg->path[0] && mkdir(cg->path, 0755))
		cg->path[0] = '\0';
	return cg->path[0];
}

bool cmp_cgroup_enter(const struct cmp_cgroup *cg)
{
	return file_write(cg->path, "cgroup.procs", "0");
}

double cmp_cgroup_end(struct cmp_cgroup *cg)
{
	double peak;

	if (!cg->path[0])
		return NAN;
	peak = file_number(cg->path, "memory.peak");
	file_write(cg->path, "cgroup.kill", "1");
	rmdir(cg->path);
	cg->path[0] = '\0';
	return peak;
}

/* Does it really work there?  A child tries. */
static bool trial(struct cmp_cgroup *cg)
{
	int status = -1;
	pid_t pid;

	if (!cmp_cgroup_begin(cg))
		return false;
	pid = fork();
	if (!pid)
		_exit(cmp_cgroup_enter(cg) ? 0 : 1);
	if (pid > 0)
		waitpid(pid, &status, 0);
	return !isnan(cmp_cgroup_end(cg)) && status == 0;
}

bool cmp_cgroup_open(struct cmp_cgroup *cg, const char *mount, const char *self, const char **why)
{
	char own[PATH_MAX / 2];

	memset(cg, 0, sizeof(*cg));
	*why = "no version 2 cgroup holds this process";
	if (!cmp_cgroup_own(self, own, sizeof(own)))
		return false;
	*why = "no cgroup here lets this user make one with memory.peak (Linux 5.19)";
	for (int beside = 0; beside < 2; beside++) {
		snprintf(cg->parent, sizeof(cg->parent), "%s%s", mount, own);
		if (beside) {
			if (!strcmp(own, "/"))
				break;
			*strrchr(cg->parent, '/') = '\0';
		}
		if (!has_word(cg->parent, "cgroup.subtree_control", "memory"))
			continue;
		sweep(cg->parent);
		if (trial(cg))
			return true;
	}
	cg->parent[0] = '\0';
	return false;
}
