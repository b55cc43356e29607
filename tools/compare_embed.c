/* SPDX-License-Identifier: MIT */
/* The launcher's image, and a descriptor from which it can be run. */
#include <sys/mman.h>
#include <unistd.h>

#include "tools/compare_run.h"

#ifndef COMPARE_LAUNCHER /* for analysers; an empty image is not run */
#define COMPARE_LAUNCHER "/dev/null"
#endif

extern const char cmp_launcher[], cmp_launcher_end[];

__asm__(".section .rodata\n"
	".globl cmp_launcher, cmp_launcher_end\n"
	"cmp_launcher:\n"
	".incbin \"" COMPARE_LAUNCHER "\"\n"
	"cmp_launcher_end:\n"
	".previous\n");

int cmp_launcher_open(void)
{
	size_t size = (uintptr_t)cmp_launcher_end - (uintptr_t)cmp_launcher;
	int fd = memfd_create("numaslab-launcher", MFD_CLOEXEC);

	if (fd >= 0 && write(fd, cmp_launcher, size) != (ssize_t)size) {
		close(fd);
		fd = -1;
	}
	return fd;
}
