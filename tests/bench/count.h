/* SPDX-License-Identifier: MIT */
/*
 * The operations whose instructions are counted.  count_child.c does them between two gates,
 * count.c steps the process from one gate to the other.
 */
#ifndef NUMASLAB_COUNT_H
#define NUMASLAB_COUNT_H

#include <stdbool.h>
#include <stddef.h>

/* name, how many calls pass between the gates, what */
#define COUNT_OPS(X)                                                                               \
	X(pair16_alone, 1, "malloc(16) and free, nothing else of that size alive")                 \
	X(malloc16, 1, "malloc(16) from a warm heap")                                              \
	X(free16, 1, "free of it")                                                                 \
	X(malloc64, 1, "malloc(64)")                                                               \
	X(free64, 1, "free of it")                                                                 \
	X(malloc1000, 1, "malloc(1000)")                                                           \
	X(free1000, 1, "free of it")                                                               \
	X(malloc2000, 1, "malloc(2000)")                                                           \
	X(free2000, 1, "free of it")                                                               \
	X(calloc16, 1, "calloc(1, 16)")                                                            \
	X(memalign64, 1, "posix_memalign of 64 at 64")                                             \
	X(rotate, 63, "pair of rotating sizes 16 to 1008, mean")                                   \
	X(batch_malloc, 1000, "1,000 malloc(64), mean")                                            \
	X(batch_free_lifo, 1000, "freed last first, mean")                                         \
	X(batch_free_fifo, 1000, "freed first first, mean")                                        \
	X(random1k, 1000, "random replacement of 16 to 1023 B over 1,000, mean")                   \
	X(random20k, 1000, "the same over 20,000, mean")

enum count_op {
#define X(name, calls, what) COUNT_##name,
	COUNT_OPS(X)
#undef X
	    COUNT_OPS_N
};

enum { COUNT_SAMPLES_MAX = 1000 };

struct count_name {
	const char *name, *what;
	int calls;
};

extern const struct count_name count_ops[COUNT_OPS_N];

/* instructions per call, one value a sample */
struct count_result {
	double lib[COUNT_SAMPLES_MAX], total[COUNT_SAMPLES_MAX];
	int n;
};

/*
 * A gate is a breakpoint with the operation in the first register; the closing one is
 * recognised by its instruction.
 */
#if defined(__x86_64__)
#define GATE_INSN      0xccu
#define GATE_MASK      0xffu
#define GATE_SIZE      1u
#define GATE_PASSED    1 /* the program counter is already beyond it */
#define gate_pc(r)     ((r).rip)
#define gate_op(r)     ((long)(r).rax)
#define count_gate(op) __asm__ volatile("int3" : : "a"((long)(op)) : "memory")
#elif defined(__aarch64__)
#define GATE_INSN   0xd4200000u
#define GATE_MASK   0xffffffffu
#define GATE_SIZE   4u
#define GATE_PASSED 0
#define gate_pc(r)  ((r).pc)
#define gate_op(r)  ((long)(r).regs[0])
#define count_gate(op)                                                                             \
	do {                                                                                       \
		register long gate_x0 __asm__("x0") = (op);                                        \
		__asm__ volatile("brk #0" : : "r"(gate_x0) : "memory");                            \
	} while (0)
#else
#error "count: no breakpoint instruction known for this processor"
#endif

int count_child(int samples);

/* Exits with 2 and a list when there is no such operation. */
int count_op_find(const char *name, size_t length);
/* "OP=N,OP=N"; exits with 2 when it is anything else. */
void count_budgets_parse(const char *text, double budget[COUNT_OPS_N]);
/* Returns how many operations exceed their budget; sorts the results. */
int count_report(struct count_result *results, const char *lib_path,
		 const double budget[COUNT_OPS_N], bool json);

#endif
