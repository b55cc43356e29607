/* SPDX-License-Identifier: MIT */
#include "tools/program.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>
#include "tools/cmd.h"

/* The fields of both ELF classes that are looked at, in host form. */
struct elf_file {
	int fd;
	struct elf_id id;
	bool foreign_order, malformed; /* either: no program headers are read */
	uint16_t type, phnum, phentsize;
	uint64_t phoff;
};

struct segment {
	uint32_t type;
	uint64_t offset, filesz;
};

static bool read_at(int fd, void *buf, size_t len, uint64_t offset)
{
	return offset <= INT64_MAX && pread(fd, buf, len, (off_t)offset) == (ssize_t)len;
}

static bool elf_open_fd(struct elf_file *f, int fd)
{
	static const uint16_t one = 1;
	const uint8_t own = *(const uint8_t *)&one ? ELFDATA2LSB : ELFDATA2MSB;
	union {
		unsigned char ident[EI_NIDENT];
		Elf32_Ehdr e32;
		Elf64_Ehdr e64;
	} h;

	memset(&h, 0, sizeof h);
	*f = (struct elf_file){.fd = fd};
	if (!read_at(fd, &h.e32, sizeof h.e32, 0) || memcmp(h.ident, ELFMAG, SELFMAG))
		return false;
	f->id.class = h.ident[EI_CLASS];
	f->id.data = h.ident[EI_DATA];
	f->foreign_order = f->id.data != own;
	/* type and machine are at the same place in both classes */
	f->type = f->foreign_order ? __builtin_bswap16(h.e32.e_type) : h.e32.e_type;
	f->id.machine = f->foreign_order ? __builtin_bswap16(h.e32.e_machine) : h.e32.e_machine;
	if (f->foreign_order)
		return true;
	if (f->id.class == ELFCLASS64) {
		f->malformed = !read_at(fd, &h.e64, sizeof h.e64, 0) ||
			       h.e64.e_phentsize != sizeof(Elf64_Phdr);
		f->phoff = h.e64.e_phoff;
		f->phnum = h.e64.e_phnum;
		f->phentsize = h.e64.e_phentsize;
		return true;
	}
	f->phoff = h.e32.e_phoff;
	f->phnum = h.e32.e_phnum;
	f->phentsize = h.e32.e_phentsize;
	f->malformed = f->phentsize != sizeof(Elf32_Phdr);
	return true;
}

static bool segment_read(const struct elf_file *f, unsigned index, struct segment *s)
{
	uint64_t at = f->phoff + (uint64_t)index * f->phentsize;
	Elf64_Phdr p64;
	Elf32_Phdr p32;

	if (f->id.class == ELFCLASS64) {
		if (!read_at(f->fd, &p64, sizeof p64, at))
			return false;
		*s = (struct segment){p64.p_type, p64.p_offset, p64.p_filesz};
		return true;
	}
	if (!read_at(f->fd, &p32, sizeof p32, at))
		return false;
	*s = (struct segment){p32.p_type, p32.p_offset, p32.p_filesz};
	return true;
}

static bool segment_find(struct elf_file *f, uint32_t type, struct segment *s)
{
	for (unsigned i = 0; i < f->phnum && !f->malformed; i++) {
		f->malformed = !segment_read(f, i, s);
		if (!f->malformed && s->type == type)
			return true;
	}
	return false;
}

/* A shared object started by itself (the dynamic loader, libc.so.6) has a name; a program none. */
static bool has_soname(struct elf_file *f)
{
	struct segment dynamic;
	Elf64_Dyn d64;
	Elf32_Dyn d32;
	uint64_t step = f->id.class == ELFCLASS64 ? sizeof d64 : sizeof d32;

	if (f->type != ET_DYN || !segment_find(f, PT_DYNAMIC, &dynamic))
		return false;
	for (uint64_t at = 0; at + step <= dynamic.filesz && at < 4096 * step; at += step) {
		int64_t tag;

		if (f->id.class == ELFCLASS64) {
			if (!read_at(f->fd, &d64, sizeof d64, dynamic.offset + at))
				return false;
			tag = d64.d_tag;
		} else {
			if (!read_at(f->fd, &d32, sizeof d32, dynamic.offset + at))
				return false;
			tag = d32.d_tag;
		}
		if (tag == DT_SONAME)
			return true;
		if (tag == DT_NULL)
			return false;
	}
	return false;
}

bool elf_identify(const char *path, struct elf_id *id)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct elf_file f;
	bool good;

	if (fd < 0)
		return false;
	good = elf_open_fd(&f, fd);
	*id = f.id;
	close(fd);
	return good;
}

static const char *machine_name(uint16_t machine, char *buf, size_t size)
{
	static const struct {
		uint16_t machine;
		const char *name;
	} names[] = {{EM_386, "x86"},	    {EM_X86_64, "x86-64"}, {EM_ARM, "arm"},
		     {EM_AARCH64, "arm64"}, {EM_RISCV, "riscv"},   {EM_PPC64, "ppc64"},
		     {EM_S390, "s390"},	    {EM_MIPS, "mips"},	   {EM_LOONGARCH, "loongarch"}};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (names[i].machine == machine)
			return names[i].name;
	snprintf(buf, size, "ELF machine %u", machine);
	return buf;
}

/* Loaders of C libraries that cannot take in a library built for glibc. */
static bool is_foreign_loader(const char *loader)
{
	const char *base = strrchr(loader, '/') ? strrchr(loader, '/') + 1 : loader;

	return !strncmp(base, "ld-musl", 7) || !strncmp(base, "ld-uClibc", 9) ||
	       !strncmp(loader, "/system/bin/linker", 18);
}

static void judge_elf(struct program *p, struct elf_file *f, const struct elf_id *library)
{
	struct segment interp;
	char number[32];

	/* i386 on x86-64 is a matter of bits, not of the processor. */
	if (f->id.class != library->class) {
		p->kind = PROGRAM_BITS;
		snprintf(p->detail, sizeof p->detail, "%s",
			 f->id.class == ELFCLASS32 ? "32" : "64");
		return;
	}
	if (f->id.machine != library->machine || f->id.data != library->data) {
		p->kind = PROGRAM_MACHINE;
		snprintf(p->detail, sizeof p->detail, "%s",
			 machine_name(f->id.machine, number, sizeof number));
		return;
	}
	if (!segment_find(f, PT_INTERP, &interp)) {
		if (f->malformed)
			p->kind = PROGRAM_DAMAGED;
		else if (!has_soname(f))
			p->kind = PROGRAM_STATIC;
		return;
	}
	if (interp.filesz >= sizeof p->detail ||
	    !read_at(f->fd, p->detail, (size_t)interp.filesz, interp.offset)) {
		p->kind = PROGRAM_DAMAGED;
		return;
	}
	p->detail[interp.filesz] = 0;
	if (is_foreign_loader(p->detail))
		p->kind = PROGRAM_LIBC;
	else if (access(p->detail, F_OK) && errno == ENOENT)
		p->kind = PROGRAM_NO_LOADER;
}

/*
 * The kernel sets AT_SECURE, and the loader then drops LD_PRELOAD, where the program gains an
 * identity or, unless the user is root, capabilities.
 */
static void judge_privilege(struct program *p, int fd)
{
	struct stat st;
	struct statvfs fs;
	char caps[64];

	if (fstat(fd, &st) || prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1)
		return;
	if (!fstatvfs(fd, &fs) && fs.f_flag & ST_NOSUID)
		return;
	if ((st.st_mode & S_ISUID && st.st_uid != getuid()) ||
	    ((st.st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) && st.st_gid != getgid()))
		p->kind = PROGRAM_SETID;
	else if (getuid() && fgetxattr(fd, "security.capability", caps, sizeof caps) > 0)
		p->kind = PROGRAM_CAPS;
}

/* The interpreter of a #! line into out; false if there is none. */
static bool script_interpreter(int fd, char *out, size_t size)
{
	char line[256];
	ssize_t n = pread(fd, line, sizeof line - 1, 0);
	char *start = line + 2;

	if (n < 3 || line[0] != '#' || line[1] != '!')
		return false;
	line[n] = 0;
	line[strcspn(line, "\n")] = 0;
	start += strspn(start, " \t");
	start[strcspn(start, " \t")] = 0;
	snprintf(out, size, "%s", start);
	return *out;
}

static void examine_file(struct program *p, const struct elf_id *library, bool may_be_script)
{
	int fd = open(p->subject, O_RDONLY | O_CLOEXEC);
	struct elf_file f;
	struct stat st;

	if (fd < 0) /* may be executable all the same: let exec say */
		return;
	if (elf_open_fd(&f, fd)) {
		judge_elf(p, &f, library);
		if (p->kind == PROGRAM_GOOD)
			judge_privilege(p, fd);
	} else if (may_be_script && script_interpreter(fd, p->detail, sizeof p->detail)) {
		if (stat(p->detail, &st) && errno == ENOENT) {
			p->kind = PROGRAM_NO_LOADER;
		} else {
			snprintf(p->subject, sizeof p->subject, "%s", p->detail);
			examine_file(p, library, false);
		}
	}
	close(fd);
}

static enum program_kind look_at(const char *path)
{
	struct stat st;

	if (stat(path, &st))
		return errno == ENOENT || errno == ENOTDIR ? PROGRAM_ABSENT : PROGRAM_DENIED;
	if (S_ISDIR(st.st_mode))
		return PROGRAM_DIRECTORY;
	return access(path, X_OK) ? PROGRAM_DENIED : PROGRAM_GOOD;
}

/* As execvp: the first that can be run; a forbidden one is remembered, if it is there at all. */
static enum program_kind search_path(const char *name, char *out, size_t size)
{
	const char *path = getenv("PATH");
	enum program_kind worst = PROGRAM_ABSENT;
	char try[PATH_MAX];

	if (!path)
		path = "/bin:/usr/bin";
	while (*name) {
		int len = (int)strcspn(path, ":");
		enum program_kind kind;

		snprintf(try, sizeof try, "%.*s%s%s", len, path, len ? "/" : "", name);
		kind = access(try, F_OK) ? PROGRAM_ABSENT : look_at(try);
		if (kind == PROGRAM_GOOD || (kind == PROGRAM_DENIED && worst == PROGRAM_ABSENT))
			snprintf(out, size, "%s", try);
		if (kind == PROGRAM_GOOD)
			return kind;
		if (kind == PROGRAM_DENIED)
			worst = kind;
		if (!path[len])
			break;
		path += len + 1;
	}
	return worst;
}

void program_examine(struct program *p, const char *name, const struct elf_id *library)
{
	memset(p, 0, sizeof *p);
	if (strchr(name, '/')) {
		snprintf(p->path, sizeof p->path, "%s", name);
		p->kind = look_at(name);
	} else {
		p->kind = search_path(name, p->path, sizeof p->path);
	}
	snprintf(p->subject, sizeof p->subject, "%s", p->path);
	if (p->kind == PROGRAM_GOOD)
		examine_file(p, library, true);
}

static const char *reason_text(enum program_kind kind)
{
	switch (kind) {
	case PROGRAM_STATIC:
		return "is statically linked: no loader reads LD_PRELOAD, so it cannot be "
		       "preloaded; link it dynamically, or run it without numaslab";
	case PROGRAM_SETID:
		return "is set-user-ID or set-group-ID: the loader ignores LD_PRELOAD for it, so "
		       "it cannot be preloaded; run it as the user that owns it, or without "
		       "numaslab";
	case PROGRAM_CAPS:
		return "has file capabilities: the loader ignores LD_PRELOAD for it, so it cannot "
		       "be preloaded; run it as root, or remove them with 'setcap -r' from a copy";
	default:
		return "";
	}
}

void program_explain(const struct program *p, const char *name, char *buf, size_t size)
{
	char shown[256], subject[512], detail[256];

	printable(shown, sizeof shown, name);
	printable(subject, sizeof subject, p->subject);
	printable(detail, sizeof detail, p->detail);
	switch (p->kind) {
	case PROGRAM_GOOD:
		snprintf(buf, size, "'%s' can be preloaded", subject);
		return;
	case PROGRAM_ABSENT:
		snprintf(buf, size,
			 strchr(name, '/') ? "'%s': no such file" : "'%s': no such command in PATH",
			 shown);
		return;
	case PROGRAM_DIRECTORY:
		snprintf(buf, size, "'%s' is a directory, not a program", shown);
		return;
	case PROGRAM_DENIED:
		snprintf(buf, size,
			 "'%s' may not be executed; look at its mode with 'ls -l', "
			 "'chmod +x' makes a file executable",
			 subject);
		return;
	case PROGRAM_NO_LOADER:
		snprintf(buf, size, "'%s' needs '%s', which does not exist; install it", subject,
			 detail);
		return;
	case PROGRAM_BITS:
		snprintf(buf, size,
			 "'%s' is a %s-bit program and libnumaslab.so is %s-bit: it "
			 "cannot be preloaded; use a build of the same width",
			 subject, detail, *detail == '3' ? "64" : "32");
		return;
	case PROGRAM_MACHINE:
		snprintf(buf, size,
			 "'%s' is a program for another processor (%s): it cannot be "
			 "preloaded; use a build for this machine",
			 subject, detail);
		return;
	case PROGRAM_DAMAGED:
		snprintf(buf, size,
			 "'%s' is a damaged program file: it cannot be run; install it "
			 "again",
			 subject);
		return;
	case PROGRAM_LIBC:
		snprintf(buf, size,
			 "'%s' uses another C library (its loader is %s): it cannot be "
			 "preloaded; libnumaslab.so needs glibc",
			 subject, detail);
		return;
	case PROGRAM_STATIC:
	case PROGRAM_SETID:
	case PROGRAM_CAPS:
		snprintf(buf, size, "'%s' %s", subject, reason_text(p->kind));
		return;
	}
}
