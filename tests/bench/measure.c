/* SPDX-License-Identifier: MIT */
/*
 * measure [-n TIMES] [-o FILE] -- CMD...
 *
 * Runs CMD, TIMES times one after the other, and writes to FILE (standard error)
 *   wall=S total=S cpu=S user=S sys=S rss=KIB faults=N status=N
 * wall is the median run's, cpu the mean's, total, user and sys of all of them, in seconds; rss is
 * the largest resident set of one process of the tree.  This program is static and small, because
 * the kernel counts the resident set that a process had before exec as well, and untouched by
 * LD_PRELOAD, which CMD inherits.  Exits as CMD did (128 + signal).
 */
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

static int status_code(int status)
{
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Stops at the first run that fails. */
static int command_run(char **argv)
{
	int status;
	pid_t pid = fork();

	if (pid < 0) {
		perror("measure: fork");
		exit(125);
	}
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execvp(argv[0], argv);
		perror(argv[0]);
		_exit(127);
	}
	while (waitpid(pid, &status, 0) < 0)
		;
	return status_code(status);
}

static int ns_compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static double seconds(struct timeval t)
{
	return (double)t.tv_sec + (double)t.tv_usec / 1e6;
}

enum { TIMES_MAX = 10000 };

int main(int argc, char **argv)
{
	const char *file = NULL;
	static uint64_t each[TIMES_MAX];
	int times = 1, done = 0, code = 0, opt;
	struct rusage use;
	FILE *out = stderr;

	while ((opt = getopt(argc, argv, "+n:o:")) != -1) {
		if (opt == 'n')
			times = atoi(optarg);
		else if (opt == 'o')
			file = optarg;
		else
			return 125;
	}
	if (optind >= argc || times < 1 || times > TIMES_MAX) {
		fputs("usage: measure [-n TIMES] [-o FILE] -- CMD...\n", stderr);
		return 125;
	}
	uint64_t start = clock_ns(CLOCK_MONOTONIC);

	while (done < times && !code) {
		each[done] = clock_ns(CLOCK_MONOTONIC);
		code = command_run(argv + optind);
		each[done] = clock_ns(CLOCK_MONOTONIC) - each[done];
		done++;
	}
	double total = (double)(clock_ns(CLOCK_MONOTONIC) - start) / 1e9;

	qsort(each, (size_t)done, sizeof(*each), ns_compare);
	getrusage(RUSAGE_CHILDREN, &use);
	if (file && !(out = fopen(file, "we"))) {
		perror(file);
		return 125;
	}
	double user = seconds(use.ru_utime), sys = seconds(use.ru_stime);

	fprintf(out,
		"wall=%.7f total=%.6f cpu=%.7f user=%.6f sys=%.6f rss=%ld faults=%ld status=%d\n",
		(double)each[done / 2] / 1e9, total, (user + sys) / done, user, sys, use.ru_maxrss,
		use.ru_minflt, code);
	return code;
}
