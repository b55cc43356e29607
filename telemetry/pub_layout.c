/* SPDX-License-Identifier: MIT */
#include "telemetry/pub.h"

/* What a file is like: where its sections are, and those tables that every process's have alike. */

static void plan_entries(struct pub_layout *l, uint64_t entries)
{
	l->entries = entries;
	l->mapped = l->size = round_up(l->history + entries * l->entry_stride, os_page_size);
}

/* As long as the wish and the limit, but for l->size, allow; false: shorter than the least. */
static bool plan_history(struct pub_layout *l, uint64_t limit)
{
	size_t entries = min_size(RING_HISTORY_MAX / l->entry_stride, RING_ENTRIES_MAX);

	plan_entries(l, max_size(entries, RING_ENTRIES_MIN));
	if (l->size <= limit)
		return true;
	if (l->history + RING_ENTRIES_MIN * l->entry_stride > limit)
		return false;
	plan_entries(l, (round_down(limit, os_page_size) - l->history) / l->entry_stride);
	return l->size <= limit;
}

/* Behind the history: the directory, mapped with it, and the map, which is mapped as it grows. */
static void plan_map(struct pub_layout *l, size_t dir_count, size_t pages, uint64_t limit)
{
	l->dir_count = dir_count;
	l->dir = l->size;
	l->map = l->mapped = l->dir + round_up(dir_count * sizeof(uint32_t), os_page_size);
	l->map_pages = min_size(pages, (limit - l->map) / MAP_STEP * (MAP_STEP / MAP_PAGE_BYTES));
	l->size = l->map + l->map_pages * MAP_PAGE_BYTES;
}

bool pub_layout_plan(struct pub_layout *l, unsigned pool_count, size_t dir_count, size_t map_pages,
		     uint64_t limit)
{
	uint64_t rows = (uint64_t)pool_count * CLASS_COUNT;
	uint64_t least =
	    round_up(dir_count * sizeof(uint32_t), os_page_size) + MAP_PAGES_MIN * MAP_PAGE_BYTES;

	*l = (struct pub_layout){0};
	l->pool_count = pool_count;
	l->pool_stride = sizeof(struct ring_totals);
	l->entry_stride = sizeof(struct ring_entry) + (uint64_t)pool_count * l->pool_stride;
	l->names = RING_HEADER_SIZE;
	l->classes = l->names + COUNTER_COUNT * sizeof(struct ring_name);
	l->pools = l->classes + CLASS_COUNT * sizeof(struct ring_class);
	l->live = round_up(l->pools + pool_count * sizeof(struct ring_pool), CACHE_LINE);
	l->history = round_up(l->live + rows * RING_ROW_WORDS * 8, os_page_size);

	if (dir_count && limit > least && plan_history(l, limit - least))
		plan_map(l, dir_count, map_pages, limit);
	else if (!plan_history(l, limit))
		plan_entries(l, 0);
	return l->size <= limit;
}

static void set_section(struct ring_header *h, enum ring_section_type type, uint64_t offset,
			uint64_t stride, uint64_t count)
{
	h->sections[type - 1] = (struct ring_section){
	    .type = type,
	    .stride = (uint32_t)stride,
	    .offset = offset,
	    .count = count,
	};
}

static void fill_sections(struct ring_header *h, const struct pub_layout *l)
{
	h->section_count = RING_SECTIONS;
	h->pool_stride = l->pool_stride;
	set_section(h, RING_NAMES, l->names, sizeof(struct ring_name), COUNTER_COUNT);
	set_section(h, RING_CLASSES, l->classes, sizeof(struct ring_class), CLASS_COUNT);
	set_section(h, RING_POOLS, l->pools, sizeof(struct ring_pool), l->pool_count);
	set_section(h, RING_LIVE, l->live, RING_ROW_WORDS * 8,
		    (uint64_t)l->pool_count * CLASS_COUNT);
	if (l->entries)
		set_section(h, RING_HISTORY, l->history, l->entry_stride, l->entries);
	set_section(h, RING_SLAB_MAP, l->map, 8, l->map_pages * RING_MAP_UNITS);
	if (l->map)
		set_section(h, RING_SLAB_DIR, l->dir, sizeof(uint32_t), l->dir_count);
}

static void fill_tables(struct ring_header *h, const struct pub_layout *l)
{
	static const char names[COUNTER_COUNT][RING_NAME_SIZE] = {
#define X(name, unit, help) #name,
	    COUNTERS(X)
#undef X
	};
	char *base = (char *)h;
	struct ring_name *name = (struct ring_name *)(base + l->names);
	struct ring_class *class = (struct ring_class *)(base + l->classes);

	for (unsigned i = 0; i < COUNTER_COUNT; i++)
		__builtin_memcpy(name[i].name, names[i], RING_NAME_SIZE);
	for (unsigned i = 1; i < CLASS_COUNT; i++) {
		class[i].size = (uint32_t)class_size(i);
		class[i].slab_bytes = (uint32_t)(class_slab_units(i) << UNIT_SHIFT);
	}
}

void layout_fill(const struct pub_layout *l, struct ring_header *h)
{
	fill_sections(h, l);
	fill_tables(h, l);
}

void layout_drop_map(struct ring_header *h)
{
	set_section(h, RING_SLAB_MAP, 0, 8, 0);
	h->sections[RING_SLAB_DIR - 1] = (struct ring_section){0};
}
