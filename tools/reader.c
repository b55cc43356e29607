/* SPDX-License-Identifier: MIT */
/* Opens a file and believes nothing of it that was not checked. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/cmd.h"
#include "tools/reader_internal.h"

#define FILE_MAX    ((uint64_t)1 << 30)
#define NAMES_MAX   64u
#define ENTRIES_MAX ((uint64_t)1 << 20)

static enum reader_result damaged(char *why, const char *what)
{
	snprintf(why, READER_WHY_SIZE, "not a telemetry file of numaslab, or damaged: %s", what);
	return READER_DAMAGED;
}

static bool read_at(const struct reader *r, uint64_t offset, void *to, size_t size)
{
	return pread(r->fd, to, size, (off_t)offset) == (ssize_t)size;
}

static enum reader_result check_header(const struct ring_header *h, uint64_t size, char *why)
{
	if (h->magic != RING_MAGIC)
		return damaged(why, "its magic number is wrong");
	if (h->major != RING_MAJOR) {
		snprintf(
		    why, READER_WHY_SIZE,
		    "format version %u.%u, and this numaslab reads %u.x: use the numaslab that "
		    "came with the library which wrote it",
		    (unsigned)h->major, (unsigned)h->minor, (unsigned)RING_MAJOR);
		return READER_VERSION;
	}
	if (h->word_size != 8)
		return damaged(why, "its words are not 8 bytes");
	if (h->file_size > size)
		return damaged(why, "it is shorter than it says");
	if (h->section_count > RING_SECTIONS)
		return damaged(why, "its table of contents is too long");
	if (h->pin_count > RING_PINS)
		return damaged(why, "it has too many pins");
	return READER_OK;
}

/* The section of a type, if it lies in the file and its parts are neither too small nor too many.
 */
static bool find_section(const struct ring_header *h, uint64_t size, enum ring_section_type type,
			 uint64_t stride_min, uint64_t count_max, struct ring_section *out)
{
	for (uint32_t i = 0; i < h->section_count; i++) {
		const struct ring_section *s = &h->sections[i];

		if (s->type != type)
			continue;
		if (s->count > count_max || s->stride < stride_min || s->stride % 8 ||
		    s->offset % 8 || s->offset > size || s->count * s->stride > size - s->offset ||
		    s->stride > FILE_MAX)
			return false;
		*out = *s;
		return true;
	}
	return false;
}

static bool load_names(struct reader *r, const struct ring_header *h, uint64_t *count)
{
	static const char *const ours[COUNTER_COUNT] = {
#define X(name, unit, help) #name,
	    COUNTERS(X)
#undef X
	};
	struct ring_section s;

	for (unsigned c = 0; c < COUNTER_COUNT; c++)
		r->column[c] = -1;
	if (!find_section(h, r->size, RING_NAMES, sizeof(struct ring_name), NAMES_MAX, &s))
		return false;
	for (uint64_t i = 0; i < s.count; i++) {
		struct ring_name name;

		if (!read_at(r, s.offset + i * s.stride, &name, sizeof name))
			return false;
		name.name[RING_NAME_SIZE - 1] = 0;
		for (unsigned c = 0; c < COUNTER_COUNT; c++)
			if (!strcmp(ours[c], name.name))
				r->column[c] = (int)i;
	}
	*count = s.count;
	return r->column[COUNT_slots] >= 0 && r->column[COUNT_used] >= 0;
}

static bool load_classes(struct reader *r, const struct ring_header *h)
{
	struct ring_section s;

	if (!find_section(h, r->size, RING_CLASSES, sizeof(struct ring_class), READER_CLASSES_MAX,
			  &s) ||
	    s.count == 0)
		return false;
	r->info.classes = (unsigned)s.count;
	for (unsigned i = 0; i < s.count; i++) {
		struct ring_class class;

		if (!read_at(r, s.offset + i * s.stride, &class, sizeof class) ||
		    class.size > (1u << 30))
			return false;
		r->class_size[i] = class.size;
		r->slab_bytes[i] = class.slab_bytes;
	}
	return true;
}

static bool load_pools(struct reader *r, const struct ring_header *h)
{
	bool seen[READER_POOLS_MAX + 1] = {false};
	struct ring_section s;

	if (!find_section(h, r->size, RING_POOLS, sizeof(struct ring_pool), READER_POOLS_MAX, &s) ||
	    s.count == 0)
		return false;
	r->info.pools = (unsigned)s.count;
	for (unsigned i = 0; i < s.count; i++) {
		struct ring_pool pool;

		if (!read_at(r, s.offset + i * s.stride, &pool, sizeof pool))
			return false;
		int node = pool.flags & RING_POOL_LARGE ? -1 : pool.node;
		if (node < -1 || node >= 1024 || seen[node + 1] ||
		    (node < 0 && !(pool.flags & RING_POOL_LARGE)))
			return false;
		seen[node + 1] = true;
		r->node[i] = node;
	}
	return true;
}

static enum reader_result load_tables(struct reader *r, const struct ring_header *h, char *why)
{
	uint64_t names;

	if (!load_names(r, h, &names))
		return damaged(why, "its table of counters");
	if (!load_classes(r, h))
		return damaged(why, "its table of size classes");
	if (!load_pools(r, h))
		return damaged(why, "its table of nodes");
	uint64_t rows = (uint64_t)r->info.pools * r->info.classes;
	if (!find_section(h, r->size, RING_LIVE, names * 8, rows, &r->live) ||
	    r->live.count != rows)
		return damaged(why, "its live counters");
	r->pool_stride = h->pool_stride;
	/* No history is allowed: there was no room for it. */
	for (uint32_t i = 0; i < h->section_count; i++)
		if (h->sections[i].type == RING_HISTORY &&
		    (r->pool_stride % 8 || r->pool_stride > FILE_MAX ||
		     r->pool_stride < offsetof(struct ring_totals, counter) + names * 8 ||
		     !find_section(h, r->size, RING_HISTORY,
				   sizeof(struct ring_entry) +
				       (uint64_t)r->info.pools * r->pool_stride,
				   ENTRIES_MAX, &r->history)))
			return damaged(why, "its history");
	if (!reader_load_map(r, h))
		return damaged(why, "its slab map");
	return READER_OK;
}

static void load_info(struct reader *r, const struct ring_header *h, const struct stat *st)
{
	static const char *const placements[] = {"home", "observe", "kernel"};
	char comm[RING_COMM_SIZE + 1];

	memcpy(comm, h->comm, RING_COMM_SIZE);
	comm[RING_COMM_SIZE] = 0;
	printable(r->info.comm, sizeof r->info.comm, comm);
	r->info.pid = h->pid;
	r->info.uid = st->st_uid; /* not what the file says */
	r->info.generation = h->generation;
	r->info.minor = h->minor;
	r->info.pid_namespace = h->pid_namespace;
	r->info.start_ticks = h->start_ticks;
	r->info.publish_ms = h->publish_ms;
	r->info.tick_ms = h->tick_ms;
	r->info.placement = h->placement < 3 ? placements[h->placement] : "unknown";
	r->info.simulated = h->flags & RING_FLAG_SIMULATED;
	r->info.bytes = (uint64_t)st->st_blocks * 512;
	r->info.inode = st->st_ino;
	r->info.device = st->st_dev;
}

/*
 * A pin of our own in the second file: the lock on its byte says that it is ours and goes with us.
 * Without one we read all the same.
 */
static void take_pin(struct reader *r, const char *path, unsigned count)
{
	char name[4096];
	struct stat st;

	if (!count || snprintf(name, sizeof name, "%s.pins", path) >= (int)sizeof name)
		return;
	int fd = open(name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return;
	size_t size = RING_PINS * sizeof(struct ring_pin);
	void *at = MAP_FAILED;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size >= (off_t)size)
		at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	for (unsigned i = 0; at != MAP_FAILED && i < count; i++) {
		struct flock l = {
		    .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = (off_t)i, .l_len = 1};

		if (fcntl(fd, F_OFD_SETLK, &l) == 0) {
			r->pins = at;
			r->pins_fd = fd;
			r->pin_slot = (int)i;
			r->info.has_pins = true;
			ring_store(&r->pins->touched, 1); /* 0 of the protocol */
			return;
		}
	}
	if (at != MAP_FAILED)
		munmap(at, size);
	close(fd);
}

static enum reader_result open_file(struct reader *r, const char *path, struct stat *st, char *why)
{
	r->fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (r->fd < 0) {
		int error = errno;

		snprintf(why, READER_WHY_SIZE, "%s", strerror(error));
		return error == ENOENT || error == ENOTDIR ? READER_ABSENT
		       : error == EACCES || error == EPERM ? READER_DENIED
		       : error == ELOOP || error == ENXIO  ? READER_DAMAGED
							   : READER_FAILED;
	}
	if (fstat(r->fd, st) < 0 || !S_ISREG(st->st_mode))
		return damaged(why, "it is not a regular file");
	if ((uint64_t)st->st_size < RING_HEADER_SIZE)
		return damaged(why, "it is too short");
	if ((uint64_t)st->st_size > FILE_MAX)
		return damaged(why, "it is too long");
	r->size = (uint64_t)st->st_size;
	return READER_OK;
}

static enum reader_result open_all(struct reader *r, const char *path, char *why)
{
	struct ring_header h;
	struct stat st;
	enum reader_result result = open_file(r, path, &st, why);

	if (result != READER_OK)
		return result;
	if (!read_at(r, 0, &h, sizeof h))
		return damaged(why, "its header cannot be read");
	result = check_header(&h, r->size, why);
	if (result == READER_OK)
		result = load_tables(r, &h, why);
	if (result != READER_OK)
		return result;
	r->map = mmap(NULL, r->size, PROT_READ, MAP_SHARED, r->fd, 0);
	if (r->map == MAP_FAILED) {
		r->map = NULL;
		snprintf(why, READER_WHY_SIZE, "cannot be mapped: %s", strerror(errno));
		return READER_FAILED;
	}
	load_info(r, &h, &st);
	take_pin(r, path, h.pin_count);
	return READER_OK;
}

enum reader_result reader_open(struct reader **out, const char *path, char why[READER_WHY_SIZE])
{
	struct reader *r = calloc(1, sizeof *r);

	*why = 0;
	*out = NULL;
	if (!r) {
		snprintf(why, READER_WHY_SIZE, "out of memory");
		return READER_FAILED;
	}
	reader_guard_init();
	r->fd = r->pins_fd = r->pin_slot = -1;
	enum reader_result result = open_all(r, path, why);
	if (result == READER_OK)
		*out = r;
	else
		reader_close(r);
	return result;
}

void reader_close(struct reader *r)
{
	if (!r)
		return;
	if (r->map)
		munmap((void *)r->map, r->size);
	if (r->pins)
		munmap(r->pins, RING_PINS * sizeof(struct ring_pin));
	if (r->pins_fd >= 0)
		close(r->pins_fd);
	if (r->fd >= 0)
		close(r->fd);
	free(r);
}

const struct reader_info *reader_info(const struct reader *r)
{
	return &r->info;
}

uint64_t reader_id(const struct reader_info *info)
{
	const uint64_t part[] = {info->device, info->inode, info->publish_ms, (uint64_t)info->pid};
	uint64_t id = 0;

	/* Not the inode alone: a file system may give it to the next file. */
	for (size_t i = 0; i < sizeof part / sizeof *part; i++)
		id = (id ^ part[i]) * 0x9e3779b97f4a7c15;

	return id ? id : 1;
}

bool reader_is_live(const struct reader *r)
{
	struct flock l = {
	    .l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = RING_LIVE_BYTE, .l_len = 1};

	return fcntl(r->fd, F_OFD_GETLK, &l) == 0 && l.l_type != F_UNLCK;
}
