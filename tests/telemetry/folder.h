/* SPDX-License-Identifier: MIT */
#ifndef TESTS_TELEMETRY_FOLDER_H
#define TESTS_TELEMETRY_FOLDER_H

/*
 * A folder of the test's own, gone when the test is, however it ends: a process of another session
 * waits for its end, and removes what is still there.
 */
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder_path[64];
static pid_t folder_owner, folder_guard;
static int folder_pipe;

static inline int folder_remove_one(const char *path, const struct stat *st, int kind,
				    struct FTW *at)
{
	(void)st, (void)kind, (void)at;
	return remove(path) && 0; /* what is left is told by the folder itself */
}

static inline void folder_wait(int pipe)
{
	char nothing;

	setsid();
	for (int fd = 0; fd < 3; fd++)
		if (fd != pipe)
			close(fd);
	for (int number = 1; number < 32; number++)
		signal(number, SIG_IGN);
	while (read(pipe, &nothing, 1) != 0)
		;
	nftw(folder_path, folder_remove_one, 16, FTW_DEPTH | FTW_PHYS);
	_exit(0);
}

/* template: as mkdtemp() wants it; NULL: it cannot be made. */
static inline const char *folder_make(const char *template)
{
	int ends[2];

	snprintf(folder_path, sizeof folder_path, "%s", template);
	if (pipe2(ends, O_CLOEXEC) < 0 || !mkdtemp(folder_path))
		return NULL;
	folder_owner = getpid();
	folder_guard = fork();
	if (folder_guard == 0) {
		close(ends[1]);
		folder_wait(ends[0]);
	}
	close(ends[0]);
	folder_pipe = ends[1];
	return folder_path;
}

/* At the end of a test; in a child of it, nothing.  What still writes there must have ended. */
static inline void folder_remove(void)
{
	if (getpid() != folder_owner)
		return;
	nftw(folder_path, folder_remove_one, 16, FTW_DEPTH | FTW_PHYS);
	if (folder_guard > 0)
		kill(folder_guard, SIGKILL);
	close(folder_pipe);
	waitpid(folder_guard, NULL, 0);
	folder_owner = 0;
}

#endif
