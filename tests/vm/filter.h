/* SPDX-License-Identifier: MIT */
#ifndef TESTS_VM_FILTER_H
#define TESTS_VM_FILTER_H

#include "tests/vm/guest.h"

#include <errno.h>
#include <signal.h>
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

/*
 * What a program may still do in steady state: the library's six, what this test itself needs, and
 * clock_gettime, which is no call where the machine's clock is good enough for the vDSO.
 */
static const int filter_steady[] = {
    SYS_mmap,	       SYS_munmap, SYS_mprotect, SYS_madvise, SYS_mremap,     SYS_futex,
    SYS_clock_gettime, SYS_read,   SYS_write,	 SYS_exit,    SYS_exit_group, SYS_restart_syscall,
};

/*
 * mode "errno": placement calls fail with EPERM; "kill": they kill the process; "steady":
 * everything but filter_steady kills.  `deadly` is how: SECCOMP_RET_KILL_PROCESS, or
 * SECCOMP_RET_TRAP. 0, or -1 with errno.
 */
static inline int filter_install(const char *mode, unsigned deadly)
{
	bool steady = !strcmp(mode, "steady"), kill = steady || !strcmp(mode, "kill");
	const int *calls = steady ? filter_steady : filter_placement;
	size_t count = steady ? sizeof(filter_steady) : sizeof(filter_placement);
	unsigned hit = kill ? deadly : SECCOMP_RET_ERRNO | EPERM, allow = SECCOMP_RET_ALLOW;
	struct sock_filter code[40];
	struct sock_fprog program = {.filter = code};
	int n = 0;

	code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
						 offsetof(struct seccomp_data, nr));
	for (size_t i = 0; i < count / sizeof(int); i++) {
		code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[i], 0, 1);
		code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, steady ? allow : hit);
	}
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, steady ? hit : allow);
	program.len = n;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -1;
	if (!steady) /* as libseccomp does */
		return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static inline void filter_caught(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)context;
	die("system call %d under the filter", info->si_syscall);
}

/* In the calling process, which names the forbidden call as it dies. */
static inline void filter_here(const char *mode)
{
	struct sigaction action = {.sa_sigaction = filter_caught, .sa_flags = SA_SIGINFO};

	if (sigaction(SIGSYS, &action, NULL) || filter_install(mode, SECCOMP_RET_TRAP))
		die("a seccomp filter: %m");
}

#endif
