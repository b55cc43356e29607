/* SPDX-License-Identifier: MIT */
#include "telemetry/pub.h"

#include <fcntl.h>
#include <sys/stat.h>

/*
 * What dead processes left is kept for `numaslab stat --dead`, at most DEAD_FILES and DEAD_BYTES of
 * it; who publishes removes the oldest beyond.  The work is bounded: LOOK_MAX files are looked at.
 */

#define DEAD_FILES 32u
#define DEAD_BYTES ((uint64_t)64 << 20)
#define LOOK_MAX   512u
#define LIST_SIZE  ((size_t)16 << 10)

struct dirent64 {
	uint64_t inode;
	int64_t offset;
	uint16_t length;
	uint8_t type;
	char name[];
};

struct dead {
	uint64_t modified_s, bytes;
	char name[96];
};

struct survey {
	char list[LIST_SIZE];
	unsigned looked, count;
	struct dead dead[LOOK_MAX];
};

static size_t text_length(const char *s)
{
	size_t n = 0;

	while (s[n])
		n++;
	return n;
}

/* Four numbers with dashes between, as pub_file.c makes them. */
static bool is_our_name(const char *name)
{
	unsigned dashes = 0;

	for (; *name; name++) {
		if (*name == '-')
			dashes++;
		else if (*name < '0' || *name > '9')
			return false;
	}
	return dashes == 3;
}

static void look_at(int dir, struct survey *s, const char *name)
{
	struct pub_stat st;
	size_t length = text_length(name);

	if (!is_our_name(name) || length >= sizeof s->dead[0].name)
		return;
	s->looked++;
	int fd = pub_open_at(dir, name, O_RDONLY | O_NONBLOCK, 0);
	if (fd < 0)
		return;
	if (pub_stat_fd(fd, &st) == 0 && S_ISREG(st.mode) && st.uid == pub_euid() &&
	    !pub_is_locked(fd, RING_LIVE_BYTE)) {
		struct dead *d = &s->dead[s->count++];

		d->modified_s = st.modified_s;
		d->bytes = st.blocks * 512;
		__builtin_memcpy(d->name, name, length + 1);
	}
	pub_close(fd);
}

static void survey_dir(int dir, struct survey *s)
{
	int n;

	while (s->looked < LOOK_MAX && (n = pub_list_dir(dir, s->list, LIST_SIZE)) > 0) {
		for (int at = 0; at < n && s->looked < LOOK_MAX;) {
			struct dirent64 *e = (struct dirent64 *)(s->list + at);

			look_at(dir, s, e->name);
			at += e->length;
		}
	}
}

static void remove_dead(int dir, const struct dead *d)
{
	char beside[sizeof d->name + sizeof pub_beside[0]];
	size_t n = text_length(d->name);

	pub_unlink_at(dir, d->name);
	__builtin_memcpy(beside, d->name, n);
	for (unsigned i = 0; i < PUB_BESIDE; i++) {
		__builtin_memcpy(beside + n, pub_beside[i], sizeof pub_beside[i]);
		pub_unlink_at(dir, beside);
	}
}

void pub_files_cap(const char *path)
{
	struct survey *s = pub_map_private(sizeof *s);
	int dir = s ? pub_open_dir(path) : -1;
	uint64_t bytes = 0;

	if (dir >= 0) {
		survey_dir(dir, s);
		for (unsigned i = 0; i < s->count; i++)
			bytes += s->dead[i].bytes;
		while (s->count > DEAD_FILES || (s->count && bytes > DEAD_BYTES)) {
			struct dead *oldest = s->dead;

			for (unsigned i = 1; i < s->count; i++)
				if (s->dead[i].modified_s < oldest->modified_s)
					oldest = &s->dead[i];
			remove_dead(dir, oldest);
			bytes -= oldest->bytes;
			*oldest = s->dead[--s->count];
		}
		pub_close(dir);
	}
	if (s)
		pub_unmap(s, sizeof *s);
}
