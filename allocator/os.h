/* SPDX-License-Identifier: MIT */
#ifndef NUMASLAB_OS_H
#define NUMASLAB_OS_H

/*
 * Every system call of the allocator, raw: errno is not touched, nothing is bound lazily, nothing
 * allocates.  The seam that tests replace (another object with these functions plays any
 * machine).  All may be called with a lock held and before any constructor; those that can fail
 * say so by false or -errno.
 */

#include "allocator/base.h"

#define OS_NODE_BITS  1024u
#define OS_NODE_WORDS (OS_NODE_BITS / 64)

extern hidden_ size_t os_page_size; /* set by os_init */

struct os_start {
	char *const *envp; /* NULL when not known */
	bool secure;	   /* AT_SECURE */
	bool valgrind;	   /* a tool of valgrind's runs us: large empty mappings are dear there */
	uint64_t random;
	unsigned rseq_feature_size; /* AT_RSEQ_FEATURE_SIZE, 0 when absent */
};

/* What the kernel told the process at its start; reads the auxiliary vector. */
void os_init(struct os_start *start);

/*
 * Whether nothing is mapped in the range (that could be found out: a limit may hide the answer,
 * then yes).
 */
bool os_range_is_free(uintptr_t at, size_t bytes);

/* Usable memory, zero, exactly there; false: something is there already, or there is no more. */
bool os_map_at(void *at, size_t bytes);

/* Memory of its own, zero; NULL on failure. */
void *os_map(size_t bytes);
bool os_unmap(void *at, size_t bytes);

/* Pages come in now, on whatever node the policy says; -errno (-ENOSYS before 5.14). */
int os_populate(void *at, size_t bytes);

/* The range's memory goes back to the system and reads as zero. */
bool os_discard(void *at, size_t bytes);

/* A private mapping laid afresh over the range: policy, locks and protection are the default's. */
bool os_remap_fresh(void *at, size_t bytes);

/* Moves pages from one usable range to another; the old range stays, empty. */
bool os_move_range(void *from, void *to, size_t bytes);

bool os_no_huge(void *at, size_t bytes);
bool os_huge(void *at, size_t bytes);

/* MPOL_* of numaif.h; node < 0: no mask. */
int os_set_policy(void *at, size_t bytes, int mode, int node);
int os_task_policy(void); /* mode of the calling thread's policy, or -errno */
int os_mems_allowed(uint64_t mask[OS_NODE_WORDS]);
int os_page_node(const void *at);		     /* a touched page's node, or -errno */
int os_move_pages(void *at, size_t bytes, int node); /* 0, or -errno: not all moved */

/* The CPU and node where the caller runs; 0 or -errno. */
int os_getcpu(unsigned *cpu, unsigned *node);

/* At most room bytes; how many, or -errno. */
long os_read_file(const char *path, char *to, size_t room);

uint64_t os_rlimit(int resource); /* the soft limit; UINT64_MAX if unlimited or not known */
uint64_t os_now_ms(void);	  /* monotonic, coarse (some milliseconds) */
void os_wait(_Atomic uint32_t *word, uint32_t while_is);
void os_wake_one(_Atomic uint32_t *word);
void os_yield(void);
void os_write_error(const char *text, size_t n);
_Noreturn void os_abort(void);

/* Calls that preload/ passes on for the program. */
enum os_passed { OS_mprotect, OS_mlock, OS_mlock2, OS_mbind, OS_prctl };
long os_call(enum os_passed call, long a, long b, long c, long d, long e, long f);

#endif
