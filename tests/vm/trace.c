/* SPDX-License-Identifier: MIT */
#include "tests/vm/trace.h"
#include "tests/vm/guest.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TRACE "/sys/kernel/tracing/"

static uint8_t *page_map; /* a bit per page of [map_from, map_to) */
static uintptr_t map_from, map_to;

void trace_pages(uintptr_t from, uintptr_t to)
{
	map_from = from & -GUEST_PAGE;
	map_to = to;
	page_map = map_pages((to - map_from) / GUEST_PAGE / 8 + GUEST_PAGE, -1);
}

void trace_mark(const void *page)
{
	uintptr_t i = ((uintptr_t)page - map_from) / GUEST_PAGE;

	page_map[i / 8] |= 1 << i % 8;
}

static bool is_marked(uintptr_t addr)
{
	uintptr_t i = (addr - map_from) / GUEST_PAGE;

	return addr >= map_from && addr < map_to && (page_map[i / 8] >> i % 8 & 1);
}

static void put(const char *name, const char *text, int flags)
{
	char path[80];

	snprintf(path, sizeof(path), TRACE "%s", name);
	int fd = open(path, O_WRONLY | O_CLOEXEC | flags);
	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		die("tracing of hint faults (%s): %m", name);
	close(fd);
}

void trace_restart(void)
{
	put("tracing_on", "0", 0);
	put("trace", "", O_TRUNC);
	put("tracing_on", "1", 0);
}

long trace_count(long *seen)
{
	char line[400], *at;
	long found = 0;
	FILE *trace;

	put("tracing_on", "0", 0);
	*seen = 0;
	trace = fopen(TRACE "trace", "re");
	if (!trace)
		die("the trace of hint faults: %m");
	while (fgets(line, sizeof(line), trace)) {
		at = strstr(line, "addr=0x");
		if (!at)
			continue;
		++*seen;
		found += is_marked(strtoul(at + 5, NULL, 16));
	}
	fclose(trace);
	return found;
}
