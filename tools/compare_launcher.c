/* SPDX-License-Identifier: MIT */
/* A program of a page or two that starts the command.  The kernel counts what a process had in
 * memory before its exec into its high-water mark, so a command started by something large
 * (numaslab with its samples and the command's output) never seems smaller than that.  This one is
 * built without a C library, is embedded in the command and run from memory.  It makes the command
 * its own sibling, so that compare can wait for it, and ends.
 *
 * argv: descriptor of the pipe to compare, "/bin/sh", path of the command, its argv. */
#include <linux/sched.h>
#include <stdint.h>
#include <sys/syscall.h>

#include "tools/compare_launcher.h"

/* From the kernel's headers: libc's own would want a libc. */
#define SIGNAL_CHILD   17
#define SIGNAL_KILL    9
#define DEATH_SIGNAL   1 /* prctl */
#define SET_FD_FLAGS   2 /* fcntl */
#define CLOSE_ON_EXEC  1
#define MONOTONIC      1
#define NO_EXEC_FORMAT 8 /* ENOEXEC */

static long call(long nr, long a, long b, long c, long d, long e)
{
#if defined(__x86_64__)
	register long r10 __asm__("r10") = d, r8 __asm__("r8") = e;
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8)
			 : "rcx", "r11", "memory");
	return result;
#elif defined(__aarch64__)
	register long x8 __asm__("x8") = nr, x0 __asm__("x0") = a, x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c, x3 __asm__("x3") = d, x4 __asm__("x4") = e;

	__asm__ volatile("svc 0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4)
			 : "memory");
	return x0;
#else
#error "numaslab is for x86-64 and aarch64"
#endif
}

static void tell(long fd, struct cmp_started *s)
{
	call(SYS_write, fd, (long)s, sizeof *s, 0, 0);
}

static void become(long fd, char **argv, char **env)
{
	struct cmp_started s = {.kind = CMP_STARTED};
	int64_t time[2] = {0, 0};

	call(SYS_prctl, DEATH_SIGNAL, SIGNAL_KILL, 0, 0, 0);
	call(SYS_fcntl, fd, SET_FD_FLAGS, CLOSE_ON_EXEC, 0, 0);
	s.pid = call(SYS_getpid, 0, 0, 0, 0, 0);
	call(SYS_clock_gettime, MONOTONIC, (long)time, 0, 0, 0);
	s.seconds = time[0];
	s.nanoseconds = time[1];
	tell(fd, &s);
	s.error = -call(SYS_execve, (long)argv[2], (long)(argv + 3), (long)env, 0, 0);
	if (s.error == NO_EXEC_FORMAT) { /* as execvp(3): a script without its first line */
		argv[3] = argv[2];
		argv[2] = argv[1];
		s.error = -call(SYS_execve, (long)argv[1], (long)(argv + 2), (long)env, 0, 0);
	}
	s.kind = CMP_NOT_STARTED;
	tell(fd, &s);
	call(SYS_exit_group, 127, 0, 0, 0, 0);
}

__attribute__((used, noreturn)) void launch(long *stack)
{
	long argc = stack[0], fd = 0;
	char **argv = (char **)(stack + 1), **env = argv + argc + 1;
	struct cmp_started s = {.kind = CMP_NOT_STARTED};

	for (const char *c = argv[0]; *c; c++)
		fd = 10 * fd + *c - '0';
	s.error = -call(SYS_clone, CLONE_PARENT | SIGNAL_CHILD, 0, 0, 0, 0);
	if (s.error == 0)
		become(fd, argv, env);
	if (s.error > 0)
		tell(fd, &s);
	call(SYS_exit_group, 0, 0, 0, 0, 0);
	__builtin_unreachable();
}

#if defined(__x86_64__)
__asm__(".globl _start\n_start:\n\tmov %rsp, %rdi\n\tand $-16, %rsp\n\tcall launch\n");
#else
__asm__(".globl _start\n_start:\n\tmov x0, sp\n\tbl launch\n");
#endif
