/* SPDX-License-Identifier: MIT */
#include "tests/tools/fake_tree.h"

#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void stop(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	abort();
}

void fake_create(char root[64])
{
	const char *tmp = getenv("TMPDIR");

	snprintf(root, 64, "%s/numaslab-test-XXXXXX", tmp && strlen(tmp) < 40 ? tmp : "/tmp");
	if (!mkdtemp(root))
		stop(root);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

void fake_remove(const char *root)
{
	if (nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS))
		stop(root);
}

void fake_file(const char *root, const char *path, const char *format, ...)
{
	char full[PATH_MAX];
	va_list args;
	FILE *out;

	snprintf(full, sizeof full, "%s%s", root, path);
	for (char *s = full + strlen(root) + 1; (s = strchr(s, '/')); s++) {
		*s = 0;
		if (mkdir(full, 0755) && errno != EEXIST)
			stop(full);
		*s = '/';
	}
	out = fopen(full, "w");
	if (!out)
		stop(full);
	va_start(args, format);
	vfprintf(out, format, args);
	va_end(args);
	if (fclose(out))
		stop(full);
}

void fake_node(const char *root, int id, unsigned long mib, const char *cpus, const char *distance)
{
	char path[96];

	snprintf(path, sizeof path, "/sys/devices/system/node/node%d/meminfo", id);
	fake_file(root, path,
		  "Node %d MemTotal:       %lu kB\nNode %d MemFree:        %lu kB\n"
		  "Node %d MemUsed:        %lu kB\n",
		  id, mib << 10, id, mib << 9, id, mib << 9);
	snprintf(path, sizeof path, "/sys/devices/system/node/node%d/cpulist", id);
	fake_file(root, path, "%s\n", cpus);
	snprintf(path, sizeof path, "/sys/devices/system/node/node%d/distance", id);
	fake_file(root, path, "%s\n", distance);
}
