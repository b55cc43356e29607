/* SPDX-License-Identifier: MIT */
/* The tunables table for people: what each is, and why a value is refused. */
#ifndef NUMASLAB_TUNABLES_DOC_H
#define NUMASLAB_TUNABLES_DOC_H

#include <stdbool.h>
#include <stdio.h>
#include "allocator/tunables.h"

/* For each entry, by its index in tunable_table. */
const char *tunable_help(enum tunable_id id);
void tunable_default_text(enum tunable_id id, char *buf, size_t size);
void tunable_range_text(enum tunable_id id, char *buf, size_t size);

enum tunable_verdict {
	TUNABLE_GOOD,
	TUNABLE_BAD_VALUE,
	TUNABLE_UNKNOWN,   /* no such name */
	TUNABLE_MALFORMED, /* not NAME=VALUE */
};

/*
 * Looks at NAME=VALUE, with or without the NUMASLAB_ prefix.  Unless it is good, `why` says
 * which name, what is wrong and what would be right, with no control characters.
 */
enum tunable_verdict tunable_judge(const char *assignment, char *why, size_t size);

/* The same for each NUMASLAB_* variable of envp: calls bad(why, data) for each that is not good. */
size_t tunables_judge_all(char *const *envp, void (*bad)(const char *why, void *data), void *data);

/* The table as text, as roff for a manual page, or as names for a shell. */
void tunables_print(FILE *out);
void tunables_print_man(FILE *out);
void tunables_print_names(FILE *out);

#endif
