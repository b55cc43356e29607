/* SPDX-License-Identifier: MIT */
#ifndef NUMASLAB_PUB_H
#define NUMASLAB_PUB_H

/*
 * Inside the writer: its system calls (pub_os.c), the ring (pub_ring.c), the slab map (pub_map.c,
 * pub_pages.c), the files (pub_layout.c, pub_file.c, pub_cap.c).
 */

#include "allocator/os.h"
#include "telemetry/publish.h"
#include "telemetry/ring.h"

/* --- System calls, raw; results are the kernel's, -errno on failure. --- */

struct pub_stat {
	uint64_t device, inode, size, blocks, modified_s;
	uint32_t mode, uid, gid;
};

#define PUB_PATH_MAX 384

int pub_open_dir(const char *path);
int pub_open_at(int dir, const char *name, int flags, int mode); /* the descriptor is >= 3 */
void pub_close(int fd);
int pub_make_dir(const char *path, int mode);
int pub_stat_fd(int fd, struct pub_stat *to);
int pub_truncate(int fd, uint64_t size);
int pub_set_group(int fd, uint32_t gid, int mode);
int pub_unlink_at(int dir, const char *name); /* dir < 0: name is a whole path */
int pub_rename_new(int dir, const char *from, const char *to);
int pub_list_dir(int dir, void *buf, size_t size); /* getdents64 */
int pub_read_link(const char *path, char *buf, size_t size);
int pub_lock(int fd, uint64_t at); /* write lock of the open file description */
bool pub_is_locked(int fd, uint64_t at);
void *pub_map(int fd, size_t bytes); /* shared, read and write; NULL */
void *pub_map_private(size_t bytes);
/* A part of a file; near `hint` if nothing is there. */
void *pub_map_part(int fd, uint64_t offset, size_t bytes, uintptr_t hint);
/* In place; false: something stands behind it, or it is not `from` bytes long. */
bool pub_map_grow(void *at, size_t from, size_t to);
/* As pub_map_part, to be read alone. */
void *pub_map_view(int fd, uint64_t offset, size_t bytes, uintptr_t hint);
void pub_unmap(void *at, size_t bytes);
int pub_populate(void *at, size_t bytes);
/* Of a view: what lies there already is there without a fault. */
int pub_populate_view(const void *at, size_t bytes);
int pub_wipe_on_fork(void *at, size_t bytes);
int pub_dont_fork(void *at, size_t bytes);
int pub_read_only(void *at, size_t bytes);
int pub_pid(void);
bool pub_has_filter(void); /* seccomp: a call that it forbids may kill */
uint32_t pub_euid(void);
uint64_t pub_ram(void); /* bytes that the machine has; 0: not known */

/*
 * What another process may truncate under us is read by calls, which fail: a load would be a
 * SIGBUS.  Whether the word is `value` (1, 0, -errno), by futex, which does not sleep here and is
 * among the calls that we make anyway; a copy, by process_vm_readv, made only once that said that
 * another process has something to say.
 */
int pub_word_is(const void *at, uint32_t value);
bool pub_copy(void *to, const void *from, size_t bytes);

/* --- The ring. --- */

struct ring_writer {
	struct ring_header *file;
	char *history;
	const struct ring_pin *pins; /* NULL: none; read by calls alone */
	unsigned pin_count;
	uint64_t entries, stride; /* entries 0: no history */
	uint64_t entry;		  /* last number given out */
	size_t populated;	  /* bytes of the history */
	struct {
		uint64_t entry, since_ms;
	} seen[RING_PINS];
};

/* Fills an entry whose slot is the writer's alone. */
typedef void ring_fill(struct ring_entry *e, void *data);

/*
 * Adds an entry; false: none was written (no history, no memory for it, or every slot that was
 * tried is pinned).  One thread at a time.  Never waits: at most RING_PINS + 1 slots are tried.
 */
bool ring_write(struct ring_writer *w, uint64_t now_ms, ring_fill *fill, void *data);

/* --- The slab map. --- */

#define MAP_PAGE_BYTES (RING_MAP_UNITS * sizeof(uint64_t))
#define MAP_PAGES_MIN  64u
#define MAP_STEP       ((size_t)64 << 10) /* the mapping grows by so much; >= a page anywhere */

struct map_writer {
	_Atomic(uint64_t *) *dir; /* private, the truth: a page's words, NULL none, or MAP_LOST;
				   * NULL: no map */
	uint32_t *shown;	  /* SLAB_DIR of the file */
	char *words;		  /* SLAB_MAP of it */
	char *view;		  /* both once more, read-only; NULL: there is none */
	struct ring_header *file;
	size_t dir_count, pages, dir_bytes;
	size_t large_from;	       /* unit from which on all are large blocks' */
	_Atomic size_t mapped, viewed; /* bytes of .words, and of the map in .view */
	_Atomic uint32_t given, spare; /* pages; one that lost a race for its place, 0: none */
	_Atomic uint64_t lost;
};

#define MAP_LOST ((uint64_t *)8) /* there was no room or memory: not asked again */

/* A page for RING_MAP_UNITS units; returns what stands in the directory then. */
uint64_t *map_give_page(struct map_writer *m, size_t place);

/* How many pages of the map a machine of so much memory gets. */
size_t map_pages_wanted(uint64_t ram);

/* The private part, for all windows; false: no memory, there is no map. */
bool map_prepare(struct map_writer *m);

/* Maps the beginning of the file's map, and the directory before it; not possible: .words stays
 * NULL, there is none. */
void map_attach(struct map_writer *m, int fd, uint64_t dir, uint64_t map, size_t pages);

/* Says in the header where the map is. */
void map_show(struct map_writer *m, struct ring_header *h, uint64_t dir);

/* There will be no map: what map_prepare() made goes. */
void map_drop(struct map_writer *m);

/* Stores all that there is. */
void map_walk(struct map_writer *m);

/* --- The files. --- */

struct pub_files {
	char dir[PUB_PATH_MAX];
	char name[96];			    /* of the file; "": none */
	int pid;			    /* who made it */
	const struct ring_control *control; /* NULL: none; read by calls alone */
};

/* What stands behind the names of the files that lie beside it. */
#define PUB_BESIDE 2
extern hidden_ const char pub_beside[PUB_BESIDE][16];

/* What a file of so many pools is like. */
struct pub_layout {
	uint64_t names, classes, pools, live, history; /* offsets */
	uint64_t dir, map;			       /* 0: there is no map */
	uint64_t mapped, size; /* bytes that are mapped at once: all but the map; of the file */
	uint64_t entries, entry_stride;
	uint64_t dir_count, map_pages;
	uint32_t pool_stride, pool_count;
};

/*
 * The largest that `limit` bytes of file allow, with a map of at most so many pages and dir_count
 * entries in its directory (0: no map); false: not even the live counters fit.
 */
bool pub_layout_plan(struct pub_layout *l, unsigned pool_count, size_t dir_count, size_t map_pages,
		     uint64_t limit);

/* The table of contents, and the sections up to the pools; and without a map. */
void layout_fill(const struct pub_layout *l, struct ring_header *h);
void layout_drop_map(struct ring_header *h);

/*
 * Makes the directory, the files of pins and control and the file, complete but for the counters,
 * under names of their own; false: nothing of it stays.  Then pub_files_show() gives the file its
 * name.
 */
bool pub_files_make(struct pub_files *f, const struct pub_layout *l, struct ring_writer *w,
		    struct map_writer *m, uint64_t now_ms);
bool pub_files_show(struct pub_files *f);
void pub_files_remove(struct pub_files *f);

/* Removes the oldest files of dead processes beyond 32 files or 64 MiB. */
void pub_files_cap(const char *dir);

#endif
