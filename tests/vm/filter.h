/* SPDX-License-Identifier: MIT */
#ifndef TESTS_VM_FILTER_H
#define TESTS_VM_FILTER_H

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/filter.h>
#include <linux/seccomp.h>

/* System calls about placement: what containers' filters commonly refuse. */
static const int filter_placement[] = {
    SYS_mbind,	    SYS_get_mempolicy, SYS_set_mempolicy,
    SYS_move_pages, SYS_migrate_pages, 450 /* set_mempolicy_home_node */,
};

/* What a program may still do in steady state: decisions 5, and what this test itself needs. */
static const int filter_steady[] = {
    SYS_mmap, SYS_munmap, SYS_mprotect, SYS_madvise,	SYS_mremap,	     SYS_futex,
    SYS_read, SYS_write,  SYS_exit,	SYS_exit_group, SYS_restart_syscall,
};

/*
 * mode "errno": placement calls fail with EPERM; "kill": they kill the process; "steady":
 * everything but filter_steady kills.  0, or -1 with errno.
 */
static inline int filter_install(const char *mode)
{
	int steady = !strcmp(mode, "steady"), n = 0;
	const int *calls = steady ? filter_steady : filter_placement;
	int count =
	    steady ? sizeof(filter_steady) / sizeof(int) : sizeof(filter_placement) / sizeof(int);
	unsigned kill = SECCOMP_RET_KILL_PROCESS, allow = SECCOMP_RET_ALLOW;
	unsigned hit = steady ? allow : !strcmp(mode, "kill") ? kill : SECCOMP_RET_ERRNO | EPERM;
	struct sock_filter code[40];
	struct sock_fprog program = {.filter = code};

	code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
						 offsetof(struct seccomp_data, nr));
	for (int i = 0; i < count; i++) {
		code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[i], 0, 1);
		code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, hit);
	}
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, steady ? kill : allow);
	program.len = n;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -1;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

#endif
