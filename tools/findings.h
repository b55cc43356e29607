/* SPDX-License-Identifier: MIT */
/* doctor's verdicts: each a pure function of the facts. */
#ifndef NUMASLAB_FINDINGS_H
#define NUMASLAB_FINDINGS_H

#include "tools/facts.h"

enum finding_status { FINDING_OK, FINDING_WARN, FINDING_MISSING };

struct finding {
	const char *name;
	enum finding_status status;
	char have[512]; /* what is there */
	char cost[512]; /* what the user loses; "" if nothing */
	char mend[512]; /* the command that mends it; "" if nothing needs or can mend it */
};

struct check {
	const char *name;
	void (*judge)(const struct facts *f, struct finding *out);
};

extern const struct check system_checks[], process_checks[];
extern const size_t system_check_count, process_check_count;

#define FINDINGS_MAX 32

/* Runs all checks in the order of the report; returns their number. */
size_t findings_judge(const struct facts *f, struct finding out[FINDINGS_MAX]);

/* For the checks: what is there; with what it costs and what mends it. */
void finding_ok(struct finding *out, const char *have, ...) __attribute__((format(printf, 2, 3)));
void finding_bad(struct finding *out, enum finding_status status, const char *cost,
		 const char *mend, const char *have, ...) __attribute__((format(printf, 5, 6)));

#endif
