/* SPDX-License-Identifier: MIT */
/* What every subcommand shares: exit statuses, complaints, text that is safe on a terminal. */
#ifndef NUMASLAB_CMD_H
#define NUMASLAB_CMD_H

#include <getopt.h>
#include <stddef.h>
#include <stdio.h>

enum status {
	STATUS_DONE = 0,
	STATUS_REGRESSION = 1,
	STATUS_USAGE = 2,
	STATUS_NOTHING = 3, /* no such process, or it does not publish */
	STATUS_DENIED = 4,
	STATUS_FORMAT = 5,  /* a file of a version that is not understood */
	STATUS_UNABLE = 77, /* the machine cannot do this */
	STATUS_RUN_ITSELF = 125,
	STATUS_RUN_CANNOT = 126,
	STATUS_RUN_ABSENT = 127,
};

/* Prints "numaslab CMD: message" and where help is, on stderr; returns STATUS_USAGE. */
int cmd_usage(const char *cmd, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Prints "numaslab CMD: message" on stderr; returns status. */
int cmd_fail(int status, const char *cmd, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/*
 * For the '?' and ':' of getopt_long (short options starting with "+:", opterr 0): says which
 * option is unknown, with the nearest one, or lacks its value; returns STATUS_USAGE.
 */
int cmd_option_error(const char *cmd, char **argv, int got, const struct option *options);

/* The handling of --version, one line on stdout; returns STATUS_DONE. */
int cmd_version(void);

/* The word nearest to `to` by edit distance, or NULL where none is near enough to be meant. */
const char *nearest_word(const char *to, const char *const *words, size_t count);

/*
 * Copies s into buf with control characters (C0, DEL, C1) and bytes that are not UTF-8 replaced
 * by '?', cut at size; returns buf.
 */
char *printable(char *buf, size_t size, const char *s);

/* Prints text wrapped at width columns, each line but the first behind `indent` spaces. */
void print_wrapped(FILE *out, const char *text, int column, int indent, int width);

#endif
