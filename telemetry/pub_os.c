/* SPDX-License-Identifier: MIT */
#include "telemetry/pub.h"
#include "allocator/syscall.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <sys/uio.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif
#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

/* 0, 1 and 2 may be closed, and are not ours to take. */
int pub_open_at(int dir, const char *name, int flags, int mode)
{
	int at = dir < 0 ? AT_FDCWD : dir;
	long fd = sys(SYS_openat, at, name, flags | O_CLOEXEC | O_NOFOLLOW, mode, 0, 0);

	if (fd < 0 || fd > 2)
		return (int)fd;
	long high = sys(SYS_fcntl, fd, F_DUPFD_CLOEXEC, 3, 0, 0, 0);
	sys(SYS_close, fd, 0, 0, 0, 0, 0);
	return (int)high;
}

int pub_open_dir(const char *path)
{
	return pub_open_at(-1, path, O_RDONLY | O_DIRECTORY, 0);
}

void pub_close(int fd)
{
	sys(SYS_close, fd, 0, 0, 0, 0, 0);
}

int pub_make_dir(const char *path, int mode)
{
	return (int)sys(SYS_mkdirat, AT_FDCWD, path, mode, 0, 0, 0);
}

int pub_stat_fd(int fd, struct pub_stat *to)
{
	struct stat st; /* the kernel's layout on both machines */
	long r = sys(SYS_fstat, fd, &st, 0, 0, 0, 0);

	if (r < 0)
		return (int)r;
	*to = (struct pub_stat){
	    .device = st.st_dev,
	    .inode = st.st_ino,
	    .size = (uint64_t)st.st_size,
	    .blocks = (uint64_t)st.st_blocks,
	    .modified_s = (uint64_t)st.st_mtime,
	    .mode = st.st_mode,
	    .uid = st.st_uid,
	    .gid = st.st_gid,
	};
	return 0;
}

int pub_truncate(int fd, uint64_t size)
{
	return (int)sys(SYS_ftruncate, fd, size, 0, 0, 0, 0);
}

int pub_set_group(int fd, uint32_t gid, int mode)
{
	long r = sys(SYS_fchown, fd, -1, gid, 0, 0, 0);

	return r < 0 ? (int)r : (int)sys(SYS_fchmod, fd, mode, 0, 0, 0, 0);
}

int pub_unlink_at(int dir, const char *name)
{
	return (int)sys(SYS_unlinkat, dir < 0 ? AT_FDCWD : dir, name, 0, 0, 0, 0);
}

int pub_rename_new(int dir, const char *from, const char *to)
{
	return (int)sys(SYS_renameat2, dir, from, dir, to, RENAME_NOREPLACE, 0);
}

int pub_list_dir(int dir, void *buf, size_t size)
{
	return (int)sys(SYS_getdents64, dir, buf, size, 0, 0, 0);
}

int pub_read_link(const char *path, char *buf, size_t size)
{
	return (int)sys(SYS_readlinkat, AT_FDCWD, path, buf, size, 0, 0);
}

int pub_lock(int fd, uint64_t at)
{
	struct flock l = {.l_type = F_WRLCK, .l_start = (off_t)at, .l_len = 1};

	return (int)sys(SYS_fcntl, fd, F_OFD_SETLK, &l, 0, 0, 0);
}

bool pub_is_locked(int fd, uint64_t at)
{
	struct flock l = {.l_type = F_RDLCK, .l_start = (off_t)at, .l_len = 1};

	return sys(SYS_fcntl, fd, F_OFD_GETLK, &l, 0, 0, 0) < 0 || l.l_type != F_UNLCK;
}

static void *map(int fd, uint64_t offset, size_t bytes, int flags, uintptr_t hint)
{
	long p = sys(SYS_mmap, hint, bytes, PROT_READ | PROT_WRITE, flags, fd, offset);

	return p < 0 && p > -4096 ? NULL : (void *)p;
}

void *pub_map(int fd, size_t bytes)
{
	return map(fd, 0, bytes, MAP_SHARED, 0);
}

void *pub_map_private(size_t bytes)
{
	return map(-1, 0, bytes, MAP_PRIVATE | MAP_ANONYMOUS, 0);
}

void *pub_map_part(int fd, uint64_t offset, size_t bytes, uintptr_t hint)
{
	return map(fd, offset, bytes, MAP_SHARED, hint);
}

void *pub_map_view(int fd, uint64_t offset, size_t bytes, uintptr_t hint)
{
	long p = sys(SYS_mmap, hint, bytes, PROT_READ, MAP_SHARED, fd, offset);

	return p < 0 && p > -4096 ? NULL : (void *)p;
}

bool pub_map_grow(void *at, size_t from, size_t to)
{
	return sys(SYS_mremap, at, from, to, 0, 0, 0) == (long)at;
}

void pub_unmap(void *at, size_t bytes)
{
	sys(SYS_munmap, at, bytes, 0, 0, 0, 0);
}

/* From the page that `at` lies in: a piece may begin inside a page that is there. */
static int populate(const void *at, size_t bytes, int how)
{
	uintptr_t page = round_down((uintptr_t)at, os_page_size);

	return (int)sys(SYS_madvise, page, (uintptr_t)at + bytes - page, how, 0, 0, 0);
}

int pub_populate(void *at, size_t bytes)
{
	return populate(at, bytes, MADV_POPULATE_WRITE);
}

int pub_populate_view(const void *at, size_t bytes)
{
	return populate(at, bytes, MADV_POPULATE_READ);
}

int pub_wipe_on_fork(void *at, size_t bytes)
{
	return (int)sys(SYS_madvise, at, bytes, MADV_WIPEONFORK, 0, 0, 0);
}

int pub_dont_fork(void *at, size_t bytes)
{
	sys(SYS_madvise, at, bytes, MADV_DONTDUMP, 0, 0, 0);
	return (int)sys(SYS_madvise, at, bytes, MADV_DONTFORK, 0, 0, 0);
}

int pub_read_only(void *at, size_t bytes)
{
	return (int)sys(SYS_mprotect, at, bytes, PROT_READ, 0, 0, 0);
}

bool pub_has_filter(void)
{
	return sys(SYS_prctl, PR_GET_SECCOMP, 0, 0, 0, 0, 0) != 0;
}

int pub_pid(void)
{
	return (int)sys(SYS_getpid, 0, 0, 0, 0, 0, 0);
}

uint64_t pub_ram(void)
{
	struct sysinfo info = {.mem_unit = 0};

	return sys(SYS_sysinfo, &info, 0, 0, 0, 0, 0) < 0 ? 0 : info.totalram * info.mem_unit;
}

uint32_t pub_euid(void)
{
	return (uint32_t)sys(SYS_geteuid, 0, 0, 0, 0, 0, 0);
}

/* Compares, wakes nobody and moves nobody. */
int pub_word_is(const void *at, uint32_t value)
{
	long r = sys(SYS_futex, at, FUTEX_CMP_REQUEUE, 0, 0, at, value);

	return r == -EAGAIN ? 0 : r < 0 ? (int)r : 1;
}

bool pub_copy(void *to, const void *from, size_t bytes)
{
	const struct iovec here = {to, bytes}, there = {(void *)from, bytes};

	return sys(SYS_process_vm_readv, pub_pid(), &here, 1, &there, 1, 0) == (long)bytes;
}
