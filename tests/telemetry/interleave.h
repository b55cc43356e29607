/* SPDX-License-Identifier: MIT */
#ifndef TEST_INTERLEAVE_H
#define TEST_INTERLEAVE_H

/*
 * Two sides interleaved at each instruction: one is run with the trap flag set, and at its k-th
 * instruction the other runs as a whole, for each k.
 */

#include <signal.h>
#include <stdbool.h>
#include <ucontext.h>

#define TRAP_FLAG 0x100

static unsigned long at, trap_at;
static bool happened;
static void (*other)(void);

static void on_trap(int number, siginfo_t *info, void *context)
{
	greg_t *flags = &((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL];

	(void)number, (void)info;
	if (at++ != trap_at)
		return;
	*flags &= ~(greg_t)TRAP_FLAG;
	happened = true;
	other();
}

/* Runs one() with two() inside at instruction k; false: one() is shorter. */
static bool interleave(void (*one)(void), void (*two)(void), unsigned long k)
{
	at = 0;
	trap_at = k;
	happened = false;
	other = two;
	__asm__ volatile("pushfq; orq $0x100, (%%rsp); popfq" ::: "memory", "cc");
	one();
	__asm__ volatile("pushfq; andq $~0x100, (%%rsp); popfq" ::: "memory", "cc");
	return happened;
}

static void interleave_start(void)
{
	struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};

	sigaction(SIGTRAP, &action, NULL);
}

#endif
