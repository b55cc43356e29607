/* SPDX-License-Identifier: MIT */
/* Can a program be run under a preloaded library?  Told from its file, before it is run. */
#ifndef NUMASLAB_PROGRAM_H
#define NUMASLAB_PROGRAM_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum program_kind {
	PROGRAM_GOOD,	/* or not ours to judge: unreadable, or a script for the shell */
	PROGRAM_ABSENT, /* no such file, or no such command in PATH */
	PROGRAM_DIRECTORY,
	PROGRAM_DENIED,	   /* not executable, or the way to it is closed */
	PROGRAM_NO_LOADER, /* the loader or the #! interpreter that it names does not exist */
	PROGRAM_STATIC,	   /* no dynamic loader, so nothing reads LD_PRELOAD */
	PROGRAM_SETID,	   /* set-user-ID or set-group-ID for this user */
	PROGRAM_CAPS,	   /* file capabilities, for a user who is not root */
	PROGRAM_BITS,	   /* 32-bit under a 64-bit library, or the reverse */
	PROGRAM_MACHINE,   /* another processor */
	PROGRAM_DAMAGED,   /* an ELF file that is cut or contradicts itself */
	PROGRAM_LIBC,	   /* another C library than the one that ours was linked with */
};

/* What the dynamic loader compares. */
struct elf_id {
	uint8_t class; /* ELFCLASS32 or ELFCLASS64 */
	uint8_t data;
	uint16_t machine;
};

struct program {
	enum program_kind kind;
	char path[PATH_MAX];	/* the command as found */
	char subject[PATH_MAX]; /* the file that the verdict is about: path, or its interpreter */
	char detail[PATH_MAX];	/* NO_LOADER, LIBC: the loader; MACHINE: the processor */
};

/* Reads the identity of an ELF file; false if it is none. */
bool elf_identify(const char *path, struct elf_id *id);

/* Fills p for the command `name`, looked up in PATH as execvp does; follows #! once. */
void program_examine(struct program *p, const char *name, const struct elf_id *library);

/* One or two sentences: what it is, why it cannot be preloaded, what to do. */
void program_explain(const struct program *p, const char *name, char *buf, size_t size);

#endif
