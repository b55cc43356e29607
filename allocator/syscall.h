/* SPDX-License-Identifier: MIT */
#ifndef NUMASLAB_SYSCALL_H
#define NUMASLAB_SYSCALL_H

/* System calls, raw: errno is not touched, nothing is bound lazily, nothing is a cancellation
 * point. */

#include <sys/syscall.h>

static __attribute__((unused)) long call6(long nr, long a, long b, long c, long d, long e, long f)
{
#if defined(__x86_64__)
	long ret;
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return ret;
#elif defined(__aarch64__)
	register long x8 __asm__("x8") = nr;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	register long x5 __asm__("x5") = f;

	__asm__ volatile("svc #0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
			 : "memory");
	return x0;
#else
#error "numaslab knows the system calls of x86-64 and aarch64"
#endif
}

#define sys(nr, a, b, c, d, e, f)                                                                  \
	call6(nr, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

#endif
