/* SPDX-License-Identifier: MIT */
#ifndef TESTS_TELEMETRY_TAP_H
#define TESTS_TELEMETRY_TAP_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

static int tap_count, tap_failures;

static inline __attribute__((format(printf, 2, 3))) bool ok(bool good, const char *name, ...)
{
	va_list args;

	printf("%sok %d - ", good ? "" : "not ", ++tap_count);
	va_start(args, name);
	vprintf(name, args);
	va_end(args);
	putchar('\n');
	fflush(stdout);
	tap_failures += !good;
	return good;
}

/* Says both numbers where they differ. */
static inline bool ok_equal(long long got, long long want, const char *name)
{
	if (!ok(got == want, "%s", name))
		printf("# got %lld, want %lld\n", got, want);
	return got == want;
}

static inline int tap_end(void)
{
	printf("1..%d\n", tap_count);
	fflush(stdout);
	return tap_failures != 0;
}

#endif
