/* SPDX-License-Identifier: MIT */
/* numaslab compare: the files that it reads and writes.  All return -1, or the exit status after
 * having said what is wrong. */
#ifndef NUMASLAB_TOOLS_COMPARE_FILES_H
#define NUMASLAB_TOOLS_COMPARE_FILES_H

#include "tools/compare_options.h"
#include "tools/compare_report.h"

/* An earlier comparison; `like`: see cmp_read_json(). */
int cmp_file_load(struct cmp_document *d, const char *path, const struct cmp_document *like);

/* A file that cannot be written is found out before an hour of runs, not after it. */
int cmp_files_check(const struct cmp_options *o);

/* Writes one form (enum cmp_format) to its file or to standard output. */
int cmp_file_write(const struct cmp_document *d, const struct cmp_options *o, int format);

#endif
