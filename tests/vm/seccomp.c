/* SPDX-License-Identifier: MIT */
/*
 * Runs a command under a filter that was there before its exec.
 *
 *	seccomp errno|kill [NAME=VALUE...] COMMAND...
 *
 * A process of its own, without the filter, tells the command where its pages lie (guest.h).
 * Settings (LD_PRELOAD) come after the filter, so that only the command sees them.
 */
#include "tests/vm/filter.h"
#include "tests/vm/guest.h"

#include <stdlib.h>

int main(int argc, char **argv)
{
	int i = 2;

	guest_start();
	if (argc < 3)
		die("usage: seccomp errno|kill [NAME=VALUE...] COMMAND...");
	probe_start();
	for (; i < argc - 1 && strchr(argv[i], '='); i++)
		putenv(argv[i]);
	if (filter_install(argv[1], SECCOMP_RET_KILL_PROCESS))
		die("a seccomp filter: %m");
	execvp(argv[i], argv + i);
	die("%s: %m", argv[i]);
}
