/* SPDX-License-Identifier: MIT */
#ifndef TEST_SIMRUN_H
#define TEST_SIMRUN_H

/* Programs that run themselves again under LIB, in a simulated topology, and print TAP. */

#include "preload/numaslab.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static unsigned tap_test;

#define tap(ok, name, ...)                                                                         \
	do {                                                                                       \
		printf("%sok %u - %s\n", (ok) ? "" : "not ", ++tap_test, name);                    \
		printf("# " __VA_ARGS__);                                                          \
		printf("\n");                                                                      \
	} while (0)

static inline int tap_end(void)
{
	printf("1..%u\n", tap_test);
	return 0;
}

static inline void tap_bail(const char *why)
{
	printf("Bail out! %s\n", why);
	exit(1);
}

/* argv[0] with the one argument, under the library; does not return. */
static inline void run_under(const char *lib, const char *topology, char *self, const char *what)
{
	char *argv[] = {self, (char *)what, NULL};

	setenv("LD_PRELOAD", lib, 1);
	if (topology)
		setenv("NUMASLAB_TOPOLOGY", topology, 1);
	setenv("TEST_RUN", "1", 1);
	fflush(stdout);
	execv("/proc/self/exe", argv);
	tap_bail("exec failed");
}

/* Whether this is the second run; bails out if the library is not there then. */
static inline bool is_under_library(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!getenv("TEST_RUN"))
		return false;
	if (!numaslab_set_cpu)
		tap_bail("the library is not there");
	return true;
}

static inline void must_run_on(int cpu)
{
	if (numaslab_set_cpu(cpu))
		tap_bail("no such simulated cpu");
}

#endif
