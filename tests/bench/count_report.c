/* SPDX-License-Identifier: MIT */
/* The operations' names and budgets, and what count prints. */
#include <string.h>

#include "bench.h"
#include "count.h"

const struct count_name count_ops[COUNT_OPS_N] = {
#define X(op, count, text) {#op, text, count},
    COUNT_OPS(X)
#undef X
};

static int value_compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

struct summary {
	double median, common, least, most;
};

static struct summary values_sum(double *v, int n)
{
	struct summary s = {0};
	int best = 0;

	if (!n)
		return s;
	qsort(v, (size_t)n, sizeof(*v), value_compare);
	for (int i = 0, run = 1; i < n; i++, run++) {
		if (i && v[i] != v[i - 1])
			run = 1;
		if (run > best) {
			best = run;
			s.common = v[i];
		}
	}
	s.median = v[n / 2];
	s.least = v[0];
	s.most = v[n - 1];
	return s;
}

int count_op_find(const char *name, size_t length)
{
	if (length == 6 && !strncmp(name, "malloc", 6))
		return COUNT_malloc16;
	if (length == 4 && !strncmp(name, "free", 4))
		return COUNT_free16;
	for (int i = 0; i < COUNT_OPS_N; i++)
		if (strlen(count_ops[i].name) == length &&
		    !strncmp(count_ops[i].name, name, length))
			return i;
	fprintf(stderr, "count: no operation '%.*s'; there are:", (int)length, name);
	for (int i = 0; i < COUNT_OPS_N; i++)
		fprintf(stderr, " %s", count_ops[i].name);
	fputs("\n", stderr);
	exit(2);
}

void count_budgets_parse(const char *text, double budget[COUNT_OPS_N])
{
	while (*text) {
		size_t length = strcspn(text, "=,");
		char *end = NULL;
		int op = count_op_find(text, length);

		if (text[length] == '=')
			budget[op] = strtod(text + length + 1, &end);
		if (!end || end == text + length + 1 || (*end && *end != ',')) {
			fputs("count: --max wants OP=N[,OP=N]\n", stderr);
			exit(2);
		}
		text = *end ? end + 1 : end;
	}
}

int count_report(struct count_result *results, const char *lib_path,
		 const double budget[COUNT_OPS_N], bool json)
{
	const char *between = "";
	int over = 0;

	if (json)
		printf("{\"lib\": \"%s\", \"ops\": {", lib_path ? lib_path : "libc");
	else
		printf("%-16s %9s %9s %15s %9s\n", "", "lib", "common", "least-most", "total");
	for (int i = 0; i < COUNT_OPS_N; i++) {
		struct summary lib = values_sum(results[i].lib, results[i].n);
		struct summary total = values_sum(results[i].total, results[i].n);
		bool bad = budget[i] > 0 && (!results[i].n || lib.median > budget[i]);

		over += bad;
		if (!results[i].n && !bad)
			continue;
		if (json)
			printf("%s\"%s\": {\"lib\": %.1f, \"common\": %.1f, \"least\": %.1f, "
			       "\"most\": %.1f, \"total\": %.1f}",
			       between, count_ops[i].name, lib.median, lib.common, lib.least,
			       lib.most, total.median);
		else
			printf("%-16s %9.1f %9.1f %7.1f-%-7.1f %9.1f  %s\n", count_ops[i].name,
			       lib.median, lib.common, lib.least, lib.most, total.median,
			       count_ops[i].what);
		if (bad)
			fprintf(stderr, "count: %s takes %.1f instructions, the budget is %.1f\n",
				count_ops[i].name, lib.median, budget[i]);
		between = ", ";
	}
	if (json)
		puts("}}");
	return over;
}
