/* SPDX-License-Identifier: MIT */
#include "allocator/base.h"
#include "allocator/tunables.h"

#include <dlfcn.h>

/*
 * RTLD_DEEPBIND would bind a plugin's malloc to libc's and leave blocks of two allocators in one
 * program: the flag is dropped (NUMASLAB_DEEPBIND=keep leaves it).  libc's dlopen looks at its
 * return address for the caller's RUNPATH and namespace, so it must be entered by a jump.
 */

typedef void *(*dlopen_fn)(const char *, int);

static dlopen_fn libc_dlopen;

/* The flags to use; finds libc's function on the first call. */
__attribute__((used)) dlopen_fn dlopen_target(void);
__attribute__((used)) int dlopen_flags(int flags);

dlopen_fn dlopen_target(void)
{
	if (unlikely(!libc_dlopen))
		libc_dlopen = (dlopen_fn)dlsym(RTLD_NEXT, "dlopen");
	return libc_dlopen;
}

int dlopen_flags(int flags)
{
	return tunables.deepbind == DEEPBIND_KEEP ? flags : flags & ~RTLD_DEEPBIND;
}

#if defined(__x86_64__)
__asm__(".text\n"
	".globl dlopen\n"
	".type dlopen, @function\n"
	"dlopen:\n"
	"	pushq %rdi\n"
	"	pushq %rsi\n"
	"	subq $8, %rsp\n"
	"	movl %esi, %edi\n"
	"	call dlopen_flags\n"
	"	movq %rax, 8(%rsp)\n"
	"	call dlopen_target\n"
	"	addq $8, %rsp\n"
	"	popq %rsi\n"
	"	popq %rdi\n"
	"	jmp *%rax\n"
	".size dlopen, .-dlopen\n");
#elif defined(__aarch64__)
__asm__(".text\n"
	".globl dlopen\n"
	".type dlopen, @function\n"
	"dlopen:\n"
	"	stp x29, x30, [sp, #-32]!\n"
	"	stp x0, x1, [sp, #16]\n"
	"	mov w0, w1\n"
	"	bl dlopen_flags\n"
	"	str x0, [sp, #24]\n"
	"	bl dlopen_target\n"
	"	mov x16, x0\n"
	"	ldp x0, x1, [sp, #16]\n"
	"	ldp x29, x30, [sp], #32\n"
	"	br x16\n"
	".size dlopen, .-dlopen\n");
#endif
