/* SPDX-License-Identifier: MIT */
/*
 * micro ROW: runs one row and prints
 *   ROW wall=NS cpu=NS rss=KIB faults=N ops=N
 * with ns per operation (median of the repetitions, the first one thrown away), the peak
 * resident set of the process and its minor faults.  One row per process: peak RSS is
 * the row's own.
 *   micro --list    name, then what it measures
 *   micro -r N -s F ROW    N repetitions (5) of F times the usual operations (1.0)
 */
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "bench.h"

enum { REPEAT_MAX = 64 };

static int ns_compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double ns_median(double *v, int n)
{
	qsort(v, (size_t)n, sizeof(*v), ns_compare);
	return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

/* VmHWM, not ru_maxrss: the latter keeps what the process was before exec. */
static long rss_peak_kib(void)
{
	FILE *f = fopen("/proc/self/status", "re");
	char line[256];
	long kib = -1;

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "VmHWM: %ld", &kib) == 1)
			break;
	if (f)
		fclose(f);
	return kib;
}

static const struct row *row_find(const char *name)
{
	const struct row *const tables[] = {single_rows, thread_rows};

	for (size_t t = 0; t < 2; t++)
		for (const struct row *r = tables[t]; r->name; r++)
			if (!strcmp(r->name, name))
				return r;
	return NULL;
}

static void rows_list(void)
{
	for (const struct row *r = single_rows; r->name; r++)
		printf("%s\tone\t%s\n", r->name, r->what);
	for (const struct row *r = thread_rows; r->name; r++)
		printf("%s\tmany\t%s\n", r->name, r->what);
}

static void row_run(const struct row *row, int repeat, double scale)
{
	double wall[REPEAT_MAX], cpu[REPEAT_MAX];
	uint64_t ops = (uint64_t)((double)row->ops * scale);
	struct rusage before, after;

	if (ops < 1)
		ops = 1;
	if (row->setup)
		row->setup();
	getrusage(RUSAGE_SELF, &before);
	for (int i = -1; i < repeat; i++) {
		uint64_t w = clock_ns(CLOCK_MONOTONIC);
		uint64_t c = clock_ns(CLOCK_PROCESS_CPUTIME_ID);

		row->run(ops);
		c = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - c;
		w = clock_ns(CLOCK_MONOTONIC) - w;
		if (i < 0)
			continue;
		wall[i] = (double)w / (double)ops;
		cpu[i] = (double)c / (double)ops;
	}
	getrusage(RUSAGE_SELF, &after);
	if (row->finish)
		row->finish();
	printf("%s wall=%.2f cpu=%.2f rss=%ld faults=%ld ops=%llu\n", row->name,
	       ns_median(wall, repeat), ns_median(cpu, repeat), rss_peak_kib(),
	       after.ru_minflt - before.ru_minflt, (unsigned long long)ops);
}

int main(int argc, char **argv)
{
	double scale = 1;
	int repeat = 5, opt;

	if (argc == 2 && !strcmp(argv[1], "--list")) {
		rows_list();
		return 0;
	}
	while ((opt = getopt(argc, argv, "r:s:")) != -1) {
		if (opt == 'r')
			repeat = atoi(optarg);
		else if (opt == 's')
			scale = atof(optarg);
		else
			return 2;
	}
	if (optind + 1 != argc || repeat < 1 || repeat > REPEAT_MAX || !(scale > 0)) {
		fputs("usage: micro [-r 1..64] [-s FACTOR] ROW | micro --list\n", stderr);
		return 2;
	}
	const struct row *row = row_find(argv[optind]);

	if (!row) {
		fprintf(stderr, "micro: no row '%s' (micro --list)\n", argv[optind]);
		return 2;
	}
	row_run(row, repeat, scale);
	return 0;
}
