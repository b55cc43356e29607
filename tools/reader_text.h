/* SPDX-License-Identifier: MIT */
/* Numbers and tables of what was read, for people. */
#ifndef NUMASLAB_READER_TEXT_H
#define NUMASLAB_READER_TEXT_H

#include <stdio.h>

#include "tools/machine.h"
#include "tools/reader_set.h"

#define TEXT_NUMBER 16

/* 1023, 12.3K, 4.00M: at most 5 characters, powers of 1024; returns buf. */
char *text_bytes(char buf[TEXT_NUMBER], uint64_t n);
/* 9999, 12.3k, 4.00M: the same in powers of 1000. */
char *text_count(char buf[TEXT_NUMBER], double n);
/* 950 ms, 12 s, 3 min, 2 h */
char *text_age(char buf[TEXT_NUMBER], uint64_t ms);

/* The report of `numaslab stat`. */
void text_process(FILE *out, const struct process *p, const struct machine *machine,
		  const struct reader_history *history);

#endif
