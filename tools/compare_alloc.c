/* SPDX-License-Identifier: MIT */
/* Which library an allocator's name means, and whether the dynamic loader takes it. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/cmd.h"
#include "tools/compare_run.h"
#include "tools/library.h"

static const struct {
	const char *name, *soname;
} known[] = {
    {"jemalloc", "libjemalloc.so.2"},
    {"mimalloc", "libmimalloc.so.2"},
    {"tcmalloc", "libtcmalloc_minimal.so.4"},
    {"tbbmalloc", "libtbbmalloc_proxy.so.2"},
};

/* "/usr/lib/libjemalloc.so.2" -> "jemalloc" */
static void name_from_path(char *out, size_t size, const char *path)
{
	const char *base = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	size_t len;

	if (!strncmp(base, "lib", 3))
		base += 3;
	len = strcspn(base, ".");
	snprintf(out, size, "%.*s", (int)len, base);
}

/* Starts this very program with the library preloaded and the loader told to list what it would
 * load instead of starting it.  The list goes to text. */
static bool loader_list(const char *library, char *text, size_t size)
{
	char *const argv[] = {"numaslab", NULL};
	int fds[2], status;
	size_t len = 0;
	ssize_t n;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC))
		return false;
	pid = fork();
	if (!pid) {
		dup2(fds[1], 1);
		dup2(fds[1], 2);
		setenv("LD_TRACE_LOADED_OBJECTS", "1", 1);
		setenv("LD_PRELOAD", library, 1);
		execv("/proc/self/exe", argv);
		_exit(127);
	}
	close(fds[1]);
	while (len + 1 < size && (n = read(fds[0], text + len, size - 1 - len)) > 0)
		len += (size_t)n;
	text[len] = '\0';
	close(fds[0]);
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

/* Puts the path that the loader found for the library into a->library. */
static const char *resolve(struct cmp_allocator *a, const char *library)
{
	static char why[PATH_MAX + 200];
	char text[16384], shown[PATH_MAX], *line, *arrow;

	printable(shown, sizeof shown, library);
	if (!loader_list(library, text, sizeof text)) {
		snprintf(why, sizeof why, "the dynamic loader cannot be asked about '%s'", shown);
		return why;
	}
	line = strstr(text, "cannot be preloaded");
	if (line) {
		snprintf(why, sizeof why, "'%s' cannot be preloaded %.*s", shown,
			 (int)strcspn(line + 19, "\n"), line + 20);
		return why;
	}
	snprintf(a->library, sizeof a->library, "%s", library);
	if (strchr(library, '/')) {
		char *full = realpath(library, NULL);

		if (full)
			snprintf(a->library, sizeof a->library, "%s", full);
		free(full);
		return NULL;
	}
	line = strstr(text, library);
	arrow = line ? strstr(line, "=> ") : NULL;
	if (arrow)
		snprintf(a->library, sizeof a->library, "%.*s", (int)strcspn(arrow + 3, " \n"),
			 arrow + 3);
	return NULL;
}

static const char *numaslab_find(struct cmp_allocator *a)
{
	static char why[PATH_MAX * LIBRARY_PLACES + 100];
	struct library lib;

	if (library_find(&lib))
		return resolve(a, lib.path);
	memcpy(why, "no " LIBRARY_NAME " in ", sizeof "no " LIBRARY_NAME " in ");
	library_places(&lib, why + strlen(why), sizeof why - strlen(why));
	return why;
}

static const char *find(struct cmp_allocator *a, const char *text)
{
	const char *equals = strchr(text, '=');

	snprintf(a->name, sizeof a->name, "%s", text);
	if (!strcmp(text, "glibc"))
		return NULL;
	if (!strcmp(text, "numaslab"))
		return numaslab_find(a);
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (!strcmp(text, known[i].name))
			return resolve(a, known[i].soname);
	if (equals && equals != text && !memchr(text, '/', (size_t)(equals - text))) {
		snprintf(a->name, sizeof a->name, "%.*s", (int)(equals - text), text);
		return resolve(a, equals + 1);
	}
	name_from_path(a->name, sizeof a->name, text);
	return resolve(a, text);
}

static bool is_numaslab(const char *entry, size_t len)
{
	while (len && memchr(entry, '/', len)) {
		size_t skip = (size_t)((const char *)memchr(entry, '/', len) - entry) + 1;

		entry += skip;
		len -= skip;
	}
	return len >= strlen(LIBRARY_NAME) && !memcmp(entry, LIBRARY_NAME, strlen(LIBRARY_NAME));
}

const char *cmp_allocator_find(struct cmp_allocator *a, const char *text)
{
	const char *why;

	memset(a, 0, sizeof *a);
	why = find(a, text);
	a->is_numaslab = is_numaslab(a->library, strlen(a->library));
	return why;
}

void cmp_preload_text(char *buf, size_t size, const char *library, const char *present)
{
	size_t used = (size_t)snprintf(buf, size, "%s", library);

	while (present && *present && used < size) {
		size_t len = strcspn(present, ": ");

		if (len && !is_numaslab(present, len))
			used += (size_t)snprintf(buf + used, size - used, "%s%.*s", used ? ":" : "",
						 (int)len, present);
		present += len + (present[len] != '\0');
	}
}
