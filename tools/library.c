/* SPDX-License-Identifier: MIT */
#include "tools/library.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>
#include "tools/cmd.h"

/* The directory of the running command; without /proc, from how it was started. */
static bool own_directory(char *out)
{
	ssize_t n = readlink("/proc/self/exe", out, PATH_MAX - 1);
	const char *started = (const char *)getauxval(AT_EXECFN);
	char *slash;

	if (n > 0)
		out[n] = 0;
	else if (!started || !realpath(started, out))
		return false;
	slash = strrchr(out, '/');
	if (!slash)
		return false;
	*slash = 0;
	return true;
}

static bool try_place(struct library *lib, const char *directory, const char *below)
{
	char *place = lib->tried[lib->places];
	int n = snprintf(place, PATH_MAX, "%s%s/" LIBRARY_NAME, directory, below);

	if (n < 0 || n >= PATH_MAX)
		return false;
	lib->places++;
	return !access(place, R_OK) && realpath(place, lib->path);
}

bool library_find(struct library *lib)
{
	char own[PATH_MAX];

	lib->places = 0;
	lib->path[0] = 0;
	if (own_directory(own) && (try_place(lib, own, "") || try_place(lib, own, "/../lib")))
		return true;
	return try_place(lib, NUMASLAB_LIBDIR, "");
}

void library_places(const struct library *lib, char *buf, size_t size)
{
	size_t used = 0;

	*buf = 0;
	for (int i = 0; i < lib->places && used < size; i++) {
		char shown[PATH_MAX];

		used += (size_t)snprintf(buf + used, size - used, "%s%s", i ? ", " : "",
					 printable(shown, sizeof shown, lib->tried[i]));
	}
}
