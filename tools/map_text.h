/* SPDX-License-Identifier: MIT */
/* The slab map for `numaslab stat --map`, as text and as JSON. */
#ifndef NUMASLAB_MAP_TEXT_H
#define NUMASLAB_MAP_TEXT_H

#include "tools/reader_json.h"

/* Behind the process's report. */
void map_put_text(FILE *out, const struct reader_map *m, const struct reader_pool *pool);

/* The member "map"; null where there is none. */
void map_put_json(struct json *j, const struct reader_map *m, const struct reader_pool *pool);

#endif
