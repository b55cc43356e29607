/* SPDX-License-Identifier: MIT */
/* JSON of what was read, schema 1 of numaslab-format(5); streamed, needs no library. */
#ifndef NUMASLAB_READER_JSON_H
#define NUMASLAB_READER_JSON_H

#include <stdio.h>

#include "tools/machine.h"
#include "tools/reader.h"

struct json {
	FILE *out;
	bool comma; /* something stands before in this object or array */
};

/* key NULL: an element of an array, or the document. */
void json_open(struct json *j, const char *key, char bracket); /* '{' or '[' */
void json_close(struct json *j, char bracket);		       /* '}' or ']' */
void json_number(struct json *j, const char *key, uint64_t n);
void json_int(struct json *j, const char *key, int64_t n);
void json_real(struct json *j, const char *key, double n);
void json_text(struct json *j, const char *key, const char *text);
void json_null(struct json *j, const char *key);
void json_bool(struct json *j, const char *key, bool truth);

/*
 * One process: an element of processes[].  machine names the nodes that are left out; NULL: not
 * known.  history may be NULL, and so may map: no such member.
 */
void json_process(struct json *j, const struct reader_info *info, const struct reader_snapshot *s,
		  const struct machine *machine, const struct reader_map *map,
		  const struct reader_history *history);
/* Without classes[]; left open for more members. */
void json_process_open(struct json *j, const struct reader_info *info,
		       const struct reader_snapshot *s, const struct machine *machine);

/* The nodes of the machine that the process has no pool for. */
struct excluded {
	int node;
	char reason[96];
};
size_t excluded_nodes(const struct reader_info *info, const struct reader_snapshot *s,
		      const struct machine *machine, struct excluded *out, size_t max);

#endif
