/* SPDX-License-Identifier: MIT */
/* Where libnumaslab.so is. */
#ifndef NUMASLAB_LIBRARY_H
#define NUMASLAB_LIBRARY_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#define LIBRARY_NAME   "libnumaslab.so"
#define LIBRARY_PLACES 3

struct library {
	char path[PATH_MAX];
	char tried[LIBRARY_PLACES][PATH_MAX];
	int places; /* of tried[] */
};

/*
 * Beside the command (a build tree), in ../lib of it (a moved installation), then in the
 * directory that it was built for.  False: none is readable, and tried[] says where it looked.
 */
bool library_find(struct library *lib);

/* The places that were tried, with commas, control characters replaced. */
void library_places(const struct library *lib, char *buf, size_t size);

#endif
