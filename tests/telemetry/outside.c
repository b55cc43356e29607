/* SPDX-License-Identifier: MIT */
#include "tests/telemetry/outside.h"

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static bool read_mem(const struct outside *o, uintptr_t at, void *to, size_t bytes)
{
	return pread(o->memory, to, bytes, (off_t)at) == (ssize_t)bytes;
}

/* --- The library's variables. --- */

static uintptr_t find_bias(int pid, const char *library)
{
	char path[64], line[600];
	uintptr_t bias = 0;

	snprintf(path, sizeof path, "/proc/%d/maps", pid);
	FILE *maps = fopen(path, "r");
	while (maps && !bias && fgets(line, sizeof line, maps)) {
		unsigned long from, offset;

		if (strstr(line, library) && sscanf(line, "%lx-%*x %*s %lx", &from, &offset) == 2 &&
		    offset == 0)
			bias = from;
	}
	if (maps)
		fclose(maps);
	return bias;
}

/* A symbol of .symtab, also a local one; 0: there is none. */
static uintptr_t find_symbol(const char *elf, size_t size, const char *name)
{
	const Elf64_Ehdr *e = (const void *)elf;
	const Elf64_Shdr *sections = (const void *)(elf + e->e_shoff);

	for (unsigned i = 0; i < e->e_shnum; i++) {
		const Elf64_Shdr *s = &sections[i];

		if (s->sh_type != SHT_SYMTAB || s->sh_offset + s->sh_size > size)
			continue;
		const char *names = elf + sections[s->sh_link].sh_offset;
		const Elf64_Sym *sym = (const void *)(elf + s->sh_offset);
		for (size_t k = 0; k < s->sh_size / sizeof *sym; k++)
			if (sym[k].st_value && !strcmp(names + sym[k].st_name, name))
				return sym[k].st_value;
	}
	return 0;
}

struct library {
	const char *elf;
	size_t size;
};

static bool read_variable(const struct outside *o, const struct library *l, const char *name,
			  void *to, size_t bytes)
{
	uintptr_t at = find_symbol(l->elf, l->size, name);

	return at && read_mem(o, o->bias + at, to, bytes);
}

static bool read_pools(struct outside *o, const struct library *l)
{
	uintptr_t at = 0;

	if (!read_variable(o, l, "pools", &at, sizeof at) || o->nodes + 1 > OUTSIDE_POOLS ||
	    !read_mem(o, at, o->pool, (o->nodes + 1) * sizeof *o->pool))
		return false;
	for (unsigned i = 0; i <= o->nodes; i++) {
		size_t top = o->top[i] = o->pool[i].window.top;

		o->first[i] = (uintptr_t)o->pool[i].window.first;
		o->slab[i] = aligned_alloc(CACHE_LINE, (top + 1) * sizeof(struct slab));
		if (top && !read_mem(o, o->first[i], o->slab[i], top * sizeof(struct slab)))
			return false;
	}
	return true;
}

bool outside_open(struct outside *o, int pid, const char *library, const char **why)
{
	static struct topology nodes;
	struct library l = {NULL, 0};
	char path[64];
	struct stat st;
	int fd = open(library, O_RDONLY);

	memset((void *)o, 0, sizeof *o);
	o->pid = pid;
	snprintf(path, sizeof path, "/proc/%d/mem", pid);
	o->memory = open(path, O_RDONLY);
	*why = "the library cannot be read";
	if (fd < 0 || fstat(fd, &st) < 0)
		return false;
	l.size = (size_t)st.st_size;
	l.elf = mmap(NULL, l.size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (l.elf == MAP_FAILED)
		return false;
	*why = "its memory cannot be read";
	if (o->memory < 0)
		return false;
	*why = "the library is not in it";
	if (!(o->bias = find_bias(pid, strrchr(library, '/') + 1)))
		return false;
	*why = "a variable of the library cannot be read";
	bool good = read_variable(o, &l, "layout", &o->layout, sizeof o->layout) &&
		    read_variable(o, &l, "topology", &nodes, sizeof nodes) &&
		    read_variable(o, &l, "link_inv", &o->link_inv, sizeof o->link_inv);
	o->nodes = nodes.count;
	good = good && read_pools(o, &l);
	read_variable(o, &l, "kept", &o->kept, sizeof o->kept);
	munmap((void *)l.elf, l.size);
	return good;
}

void outside_close(struct outside *o)
{
	for (unsigned i = 0; i < OUTSIDE_POOLS; i++)
		free(o->slab[i]);
	if (o->memory >= 0)
		close(o->memory);
}

/* --- The walk. --- */

static uintptr_t desc_addr(const struct outside *o, unsigned pool, size_t unit)
{
	return o->first[pool] + unit * sizeof(struct slab);
}

static uintptr_t unit_addr(const struct outside *o, unsigned pool, size_t unit)
{
	return o->layout.base + ((uintptr_t)pool << o->layout.window_shift) + (unit << UNIT_SHIFT);
}

/* Length of a list of blocks in the copy of a slab's memory. */
static unsigned list_length(struct outside *o, const char *memory, uintptr_t at,
			    const struct slab *s, uintptr_t first, uintptr_t end)
{
	unsigned n = 0;

	while (first - at < (size_t)s->units << UNIT_SHIFT && n <= s->extended) {
		uint64_t word;

		o->torn += (first - at) % s->size != 0;
		memcpy(&word, memory + (first - at), sizeof word);
		first = word * o->link_inv;
		n++;
	}
	o->torn += first != end && n > 0;
	return n;
}

/* Blocks of the slab in its owner's bin. */
static unsigned in_bin(struct outside *o, const char *memory, uintptr_t desc, uintptr_t at,
		       const struct slab *s, bool *current)
{
	static struct heap heap;
	uintptr_t owner = (uintptr_t)s->owner & ~(uintptr_t)1;

	if (!owner || !read_mem(o, owner, &heap, sizeof heap)) {
		o->torn++;
		return 0;
	}
	bool filled = (uintptr_t)heap.cls[s->cls].current == desc;
	*current = filled || (uintptr_t)heap.cls[s->cls].room == desc;
	if (!filled)
		return 0;
	uintptr_t first = heap.bin[s->cls];
	return first - at < (size_t)s->units << UNIT_SHIFT
		   ? list_length(o, memory, at, s, first, LINK_END + at)
		   : 0;
}

/*
 * How far the counters may lag (telemetry/counters.h): nothing of a FULL slab, of a LISTED one what
 * was freed by others before; of an owned one what others freed, and frees of its owner's until
 * the next look: a quarter of its blocks, any of one that the heap allocates from, or lately did
 * (few: *lately).
 */
static bool lag_is_allowed(const struct slab *s, int64_t behind, bool current,
			   unsigned long *lately)
{
	uint64_t w = s->remote;
	int64_t quarter = (int64_t)max_size(s->capacity / 4u, s->size < 1024 ? 16 : 2);

	switch (remote_state(w)) {
	case SLAB_FULL:
		return behind == remote_count(w) && behind < slab_few(s);
	case SLAB_LISTED:
		return behind == remote_count(w) % s->step;
	default:
		*lately += !current && behind > remote_count(w) + quarter;
		return behind >= 0 && behind <= remote_count(w) + s->extended;
	}
}

/*
 * What the slab has populated, and no more: where the kernel has no page of zeros to share, a look
 * at a page that is not there brings one.
 */
static bool read_resident(struct outside *o, uintptr_t at, char *memory, const struct slab *s)
{
	for (size_t i = 0; i < s->units * (UNIT_SIZE / GRANULE); i++)
		if (s[i / 16].resident >> i % 16 & 1 &&
		    !read_mem(o, at + i * GRANULE, memory + i * GRANULE, GRANULE))
			return false;
	return true;
}

static void walk_lists(struct outside *o, unsigned pool, size_t unit, int64_t used)
{
	static char memory[WIDE_SLAB_UNITS * UNIT_SIZE];
	const struct slab *s = &o->slab[pool][unit];
	uintptr_t at = unit_addr(o, pool, unit), desc = desc_addr(o, pool, unit);
	uintptr_t end = LINK_END + at;
	uint64_t w = s->remote;

	if (!read_resident(o, at, memory, s)) {
		o->torn++;
		return;
	}
	unsigned local = list_length(o, memory, at, s, s->free, end);
	unsigned remote =
	    remote_first(w) == REMOTE_NONE
		? 0
		: list_length(o, memory, at, s, at + ((uintptr_t)remote_first(w) << 4), end);
	unsigned hidden = (unsigned)__builtin_popcountll(s->hidden);
	bool current = false;
	unsigned bin = remote_state(w) == SLAB_OWNED ? in_bin(o, memory, desc, at, s, &current) : 0;
	unsigned free_blocks = local + hidden + remote + bin;

	o->torn += remote != remote_count(w);
	o->torn += s->extended != local + hidden + slab_used(s);
	o->torn += free_blocks > s->extended;
	int64_t out = (int64_t)s->extended - free_blocks;
	o->out[s->cls] += (uint64_t)out;
	o->ready[s->cls] += bin;
	o->behind[s->cls] += (uint64_t)(used - out - bin);
	if (!lag_is_allowed(s, used - out - bin, current, &o->lately) && o->astray++ < 5)
		printf("# class %u state %u: used %ld, out %ld, ready %u, remote %u, room %u\n",
		       s->cls, remote_state(w), (long)used, (long)out, bin, remote, s->capacity);
}

static void walk_slab(struct outside *o, unsigned pool, size_t unit, bool lists)
{
	static const enum counter state[4] = {COUNT_active, COUNT_full, COUNT_partial, 0};
	const struct slab *s = &o->slab[pool][unit];
	uint64_t w = s->remote;
	int64_t *n = o->count[s->node][s->cls], used = s->tallied;

	if (remote_state(w) == SLAB_LISTED)
		used -= slab_told(s, w);
	n[state[remote_state(w)]]++;
	n[COUNT_slots] += (int64_t)(((size_t)s->units << UNIT_SHIFT) / class_size(s->cls));
	n[COUNT_used] += used;
	n[COUNT_misplaced] += s->misplaced;
	for (unsigned i = 0; i < s->units; i++)
		n[COUNT_held] += __builtin_popcount(s[i].resident) * (int64_t)GRANULE;
	if (lists)
		walk_lists(o, pool, unit, used);
}

void outside_walk(struct outside *o, bool lists)
{
	for (unsigned i = 0; i <= o->nodes; i++)
		for (size_t u = 0; u < o->top[i];) {
			const struct slab *s = &o->slab[i][u];
			int64_t *n = o->count[i][0];
			bool large = i == o->nodes;

			if (s->units == 0 || u + s->units > o->top[i]) {
				o->torn++;
				break;
			}
			if (s->state == SPAN_SLAB) {
				walk_slab(o, i, u, lists);
			} else if (s->state == SPAN_LARGE ||
				   (large && o->kept == desc_addr(o, i, u))) {
				n[COUNT_active]++;
				n[COUNT_used] += (int64_t)s->bytes;
				o->large_units += s->units;
			} else if (s->state == SPAN_FREE && s->dirty) {
				n[COUNT_empty] += s->units;
				for (unsigned k = 0; k < s->units; k++)
					n[COUNT_held] +=
					    __builtin_popcount(s[k].resident) * (int64_t)GRANULE;
			}
			u += s->units;
		}
}

/* --- The map. --- */

/* The first unit of the span that unit lies in, by walking: no unit but a first one is trusted. */
static size_t first_unit(const struct outside *o, unsigned pool, size_t unit)
{
	static size_t at[OUTSIDE_POOLS];

	if (at[pool] > unit || at[pool] >= o->top[pool])
		at[pool] = 0;
	while (o->slab[pool][at[pool]].units && at[pool] + o->slab[pool][at[pool]].units <= unit)
		at[pool] += o->slab[pool][at[pool]].units;
	return at[pool];
}

uint64_t outside_word(const struct outside *o, unsigned pool, size_t unit)
{
	size_t first = first_unit(o, pool, unit);
	const struct slab *s = &o->slab[pool][first];
	uint64_t w = s->remote, used = s->tallied;

	if (pool == o->nodes)
		return unit == first &&
			       (s->state == SPAN_LARGE || o->kept == desc_addr(o, pool, first))
			   ? (uint64_t)s->units << 32 | pool << 16 | 6
			   : 0;
	if (s->state != SPAN_SLAB)
		return s->state == SPAN_FREE && s->dirty ? pool << 16 | 4 : 0;
	if (unit != first)
		return (unit - first) << 32 | 5;
	if (remote_state(w) == SLAB_LISTED)
		used -= slab_told(s, w);
	return used << 32 | (unsigned)s->node << 16 | (unsigned)s->cls << 8 |
	       (unsigned)s->misplaced << 3 |
	       (remote_state(w) == SLAB_OWNED  ? 1
		: remote_state(w) == SLAB_FULL ? 3
					       : 2);
}

/* --- What the kernel says. --- */

static FILE *open_proc(const struct outside *o, const char *name)
{
	char path[64];

	snprintf(path, sizeof path, "/proc/%d/%s", o->pid, name);
	return fopen(path, "r");
}

static void read_smaps(const struct outside *o, uintptr_t from, uintptr_t to,
		       struct outside_pages *p)
{
	FILE *f = open_proc(o, "smaps");
	char line[600];
	bool inside = false;
	long kib;

	p->rss = p->swapped = f ? 0 : -1;
	while (f && fgets(line, sizeof line, f)) {
		unsigned long start, end;

		if (sscanf(line, "%lx-%lx ", &start, &end) == 2)
			inside = start >= from && end <= to;
		else if (inside && sscanf(line, "Rss: %ld kB", &kib) == 1)
			p->rss += kib << 10;
		else if (inside && sscanf(line, "Swap: %ld kB", &kib) == 1)
			p->swapped += kib << 10;
	}
	if (f)
		fclose(f);
}

static void read_numa_maps(const struct outside *o, uintptr_t from, uintptr_t to,
			   struct outside_pages *p)
{
	FILE *f = open_proc(o, "numa_maps");
	char line[2000];

	p->numa = f ? 0 : -1;
	while (f && fgets(line, sizeof line, f)) {
		unsigned long start = strtoul(line, NULL, 16), pages, kib = 4;
		unsigned node;
		char *size = strstr(line, "kernelpagesize_kB=");
		int64_t sum = 0;

		if (start < from || start >= to)
			continue;
		if (size)
			kib = strtoul(strchr(size, '=') + 1, NULL, 10);
		for (char *word = strtok(line, " \n"); word; word = strtok(NULL, " \n"))
			if (sscanf(word, "N%u=%lu", &node, &pages) == 2)
				sum += (int64_t)(pages * kib << 10);
		p->numa += sum;
	}
	if (f)
		fclose(f);
}

struct outside_pages outside_pages(const struct outside *o, unsigned pool)
{
	uintptr_t from = unit_addr(o, pool, 0), to = unit_addr(o, pool + 1, 0);
	struct outside_pages p;

	read_smaps(o, from, to, &p);
	read_numa_maps(o, from, to, &p);
	return p;
}

void outside_say_pages(const struct outside *o, unsigned pool)
{
	char path[64];
	unsigned said = 0;
	size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = UNIT_SIZE / page;

	snprintf(path, sizeof path, "/proc/%d/pagemap", o->pid);
	int fd = open(path, O_RDONLY);
	for (size_t u = 0; fd >= 0 && u < o->top[pool] && said < 8; u++) {
		const struct slab *s = &o->slab[pool][u];
		uint64_t entry[16] = {0};
		unsigned there = 0;

		if (pages > 16 ||
		    pread(fd, entry, pages * 8, (off_t)(unit_addr(o, pool, u) / page * 8)) < 0)
			break;
		for (unsigned i = 0; i < pages; i++)
			there |= (unsigned)(entry[i] >> 63) << i;
		if (there != s->resident && ++said)
			printf("# unit %zu: pages %04x, known %04x; state %u class %u part %u "
			       "extended %u of %u, hidden %lx\n",
			       u, there, s->resident, s->state, s->cls, s->part, s->extended,
			       s->capacity, (unsigned long)s->hidden);
	}
	if (fd >= 0)
		close(fd);
}
