/* SPDX-License-Identifier: MIT */
#include "telemetry/pub.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "allocator/tunables.h"

/*
 * The files: /dev/shm/numaslab-<euid>/ (0700, ours, no link) holds for each process
 *	<pid namespace>-<pid>-<start>-<generation>        the file
 *	...the same with .pins                            readers' pins
 *	...the same with .control                         who asks for observation
 *	.new-...                                          the first one, before it is complete
 *
 * Descriptors are used here for a moment at a time and never kept: a program may close what it
 * does not know.
 */

#define GENERATIONS 16u
#define UNFINISHED  ".new-"
#define NO_GROUP    UINT32_MAX
#define PINS_SIZE   (RING_PINS * sizeof(struct ring_pin))

enum { PINS, CONTROL };
const char pub_beside[PUB_BESIDE][16] = {[PINS] = ".pins", [CONTROL] = ".control"};

/* --- Text without stdio. --- */

static char *put_text(char *at, const char *end, const char *text)
{
	while (*text && at < end - 1)
		*at++ = *text++;
	*at = 0;
	return at;
}

static char *put_number(char *at, const char *end, uint64_t n)
{
	char digits[24], *d = digits + sizeof digits - 1;

	*d = 0;
	do
		*--d = (char)('0' + n % 10);
	while (n /= 10);
	return put_text(at, end, d);
}

static uint64_t get_number(const char **at)
{
	uint64_t n = 0;

	while (**at >= '0' && **at <= '9')
		n = n * 10 + (uint64_t)(*(*at)++ - '0');
	return n;
}

/* --- Who we are. --- */

static uint64_t find_pid_namespace(void)
{
	char text[64];
	int n = pub_read_link("/proc/self/ns/pid", text, sizeof text - 1);

	if (n <= 0)
		return 0;
	text[n] = 0;
	for (const char *at = text; *at; at++)
		if (*at == '[') {
			at++;
			return get_number(&at);
		}
	return 0;
}

/* Field 22, counted from behind the name, which may hold anything. */
static uint64_t find_start_ticks(void)
{
	char text[1024];
	long n = os_read_file("/proc/self/stat", text, sizeof text - 1);
	const char *at;

	if (n <= 0)
		return 0;
	text[n] = 0;
	for (at = text + n; at > text && *at != ')'; at--)
		;
	for (unsigned field = 2; field < 22 && *at; at++)
		field += *at == ' ';
	return get_number(&at);
}

static void read_line(const char *path, char *to, size_t room)
{
	long n = os_read_file(path, to, room - 1);

	if (n < 0)
		n = 0;
	if (n > 0 && to[n - 1] == '\n')
		n--;
	to[n] = 0;
}

/* --- What the file says of the process. --- */

static void fill_header(struct ring_header *h, const struct pub_layout *l, uint64_t now_ms)
{
	h->magic = RING_MAGIC;
	h->major = RING_MAJOR;
	h->minor = RING_MINOR;
	h->word_size = sizeof(uintptr_t);
	h->placement = (uint8_t)tunables.placement;
	h->file_size = l->size;
	h->pid_namespace = find_pid_namespace();
	h->start_ticks = find_start_ticks();
	h->pid = pub_pid();
	h->uid = pub_euid();
	h->publish_ms = now_ms;
	h->tick_ms = (uint32_t)tunables.tick_ms;
	h->page_size = (uint32_t)os_page_size;
	read_line("/proc/sys/kernel/random/boot_id", h->boot_id, sizeof h->boot_id);
	read_line("/proc/self/comm", h->comm, sizeof h->comm);
	layout_fill(l, h);
}

/* --- The directory. --- */

static uint32_t group_wanted(void)
{
	const char *at = tunables.group;
	uint64_t gid = get_number(&at);

	return at != tunables.group && *at == 0 && gid < NO_GROUP ? (uint32_t)gid : NO_GROUP;
}

static void name_dir(char *to)
{
	char *end = to + PUB_PATH_MAX;

	if (tunables.dir[0]) {
		put_text(to, end, tunables.dir);
		return;
	}
	put_number(put_text(to, end, "/dev/shm/numaslab-"), end, pub_euid());
}

/* A directory of ours that nobody else can write, and only our group, if any, can read; or -1. */
static int open_own_dir(const char *path)
{
	struct pub_stat st;
	uint32_t group = group_wanted();
	bool made = pub_make_dir(path, 0700) == 0;
	int fd = pub_open_dir(path);

	if (fd < 0)
		return -1;
	if (made && group != NO_GROUP)
		pub_set_group(fd, group, 0750);
	if (pub_stat_fd(fd, &st) == 0 && st.uid == pub_euid() &&
	    (st.mode & (group != NO_GROUP ? 0027 : 0077)) == 0)
		return fd;
	pub_close(fd);
	return -1;
}

/* --- Making the files. --- */

static void name_file(char *to, size_t room, const struct ring_header *h, const char *before,
		      const char *after)
{
	const char *end = to + room;
	char *at = put_text(to, end, before);
	const uint64_t part[] = {h->pid_namespace, (uint64_t)h->pid, h->start_ticks, h->generation};

	for (unsigned i = 0; i < 4; i++) {
		at = put_text(at, end, i ? "-" : "");
		at = put_number(at, end, part[i]);
	}
	put_text(at, end, after);
}

static void unlink_named(int dir, const struct ring_header *h, const char *before,
			 const char *after)
{
	char name[128];

	name_file(name, sizeof name, h, before, after);
	pub_unlink_at(dir, name);
}

/*
 * The first generation whose name is free; what an earlier program of this process left (exec) is
 * removed.  Where neither /proc tells who we are, another process may have the same name.
 */
static bool choose_generation(int dir, struct ring_header *h)
{
	char name[128];

	for (h->generation = 0; h->generation < GENERATIONS; h->generation++) {
		name_file(name, sizeof name, h, "", "");
		int fd = pub_open_at(dir, name, O_RDONLY, 0);
		if (fd == -ENOENT)
			return true;
		if (fd < 0)
			continue;
		bool ours =
		    h->pid_namespace && h->start_ticks && !pub_is_locked(fd, RING_LIVE_BYTE);
		pub_close(fd);
		if (!ours)
			continue;
		unlink_named(dir, h, "", "");
		for (unsigned i = 0; i < PUB_BESIDE; i++)
			unlink_named(dir, h, "", pub_beside[i]);
		return true;
	}
	return false;
}

/*
 * A new file of its full size, populated up to the history, mapped; NULL: nothing of it stays.  m:
 * it is the file of the counters, whose map goes there.
 */
static void *make_file(int dir, const char *name, const struct pub_layout *l, struct map_writer *m)
{
	struct pub_stat st;
	void *at = NULL;
	uint32_t group = group_wanted();
	int fd = pub_open_at(dir, name, O_RDWR | O_CREAT | O_EXCL, 0600);

	if (fd < 0)
		return NULL;
	if (pub_stat_fd(fd, &st) == 0 && S_ISREG(st.mode) && st.size == 0 &&
	    pub_truncate(fd, l->size) == 0 && (!m || pub_lock(fd, RING_LIVE_BYTE) == 0))
		at = pub_map(fd, l->mapped);
	if (at && m && group != NO_GROUP)
		pub_set_group(fd, group, 0640);
	if (at && (pub_dont_fork(at, l->mapped) < 0 || pub_populate(at, l->history) < 0)) {
		pub_unmap(at, l->mapped);
		at = NULL;
	}
	if (at && m && l->map)
		map_attach(m, fd, l->dir, l->map, l->map_pages);
	pub_close(fd);
	if (!at)
		pub_unlink_at(dir, name);
	return at;
}

/* One of the files beside it, mapped read-only; NULL. */
static const void *make_beside(int dir, const struct ring_header *h, unsigned which, size_t bytes)
{
	size_t size = round_up(bytes, os_page_size);
	const struct pub_layout l = {.history = size, .mapped = size, .size = size};
	char name[128];

	name_file(name, sizeof name, h, "", pub_beside[which]);
	pub_unlink_at(dir, name); /* the file that it lay beside is gone, so nobody uses it */
	void *at = make_file(dir, name, &l, NULL);
	if (at)
		pub_read_only(at, size);
	return at;
}

static bool make_in(int dir, struct pub_files *f, const struct pub_layout *l, struct ring_writer *w,
		    struct map_writer *m, struct ring_header *draft)
{
	char name[128];

	if (!choose_generation(dir, draft))
		return false;
	name_file(f->name, sizeof f->name, draft, "", "");
	name_file(name, sizeof name, draft, UNFINISHED, "");
	pub_unlink_at(dir, name); /* of a publisher that was killed; the name is ours alone */
	struct ring_header *h = make_file(dir, name, l, m);
	if (!h)
		return false;
	*h = *draft;
	if (m->words)
		map_show(m, h, l->dir);
	else
		layout_drop_map(h);
	w->file = h;
	w->history = (char *)h + l->history;
	w->entries = l->entries;
	w->stride = l->entry_stride;
	w->pins = make_beside(dir, h, PINS, PINS_SIZE);
	w->pin_count = h->pin_count = w->pins ? RING_PINS : 0;
	f->control = make_beside(dir, h, CONTROL, sizeof(struct ring_control));
	return true;
}

bool pub_files_make(struct pub_files *f, const struct pub_layout *l, struct ring_writer *w,
		    struct map_writer *m, uint64_t now_ms)
{
	/* Up to the live rows, in private memory: /proc is read before a name is taken. */
	struct ring_header *draft = pub_map_private(round_up(l->live, os_page_size));
	bool done = false;

	if (!draft)
		return false;
	fill_header(draft, l, now_ms);
	f->pid = draft->pid;
	name_dir(f->dir);
	int dir = open_own_dir(f->dir);
	if (dir >= 0) {
		done = make_in(dir, f, l, w, m, draft);
		pub_close(dir);
	}
	if (done)
		__builtin_memcpy((char *)w->file + l->names, (char *)draft + l->names,
				 l->live - l->names);
	pub_unmap(draft, round_up(l->live, os_page_size));
	return done;
}

/* By whole paths: a directory may be there and not to be opened, when descriptors are short. */
static void remove_named(const struct pub_files *f, const char *before)
{
	char path[PUB_PATH_MAX + 128], *end = path + sizeof path;
	char *at = put_text(put_text(path, end, f->dir), end, "/");

	put_text(put_text(at, end, before), end, f->name);
	pub_unlink_at(-1, path);
	at = put_text(at, end, f->name);
	for (unsigned i = 0; i < PUB_BESIDE; i++) {
		put_text(at, end, pub_beside[i]);
		pub_unlink_at(-1, path);
	}
}

bool pub_files_show(struct pub_files *f)
{
	char name[128];
	int dir = pub_open_dir(f->dir), r = dir;

	if (dir >= 0) {
		put_text(put_text(name, name + sizeof name, UNFINISHED), name + sizeof name,
			 f->name);
		r = pub_rename_new(dir, name, f->name);
		pub_close(dir);
	}
	if (r < 0)
		remove_named(f, UNFINISHED);
	return r == 0;
}

void pub_files_remove(struct pub_files *f)
{
	remove_named(f, "");
}
