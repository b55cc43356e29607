/* SPDX-License-Identifier: MIT */
#ifndef TESTS_PRELOAD_HARNESS_H
#define TESTS_PRELOAD_HARNESS_H

/*
 * The drop-in contract's harness.  A program lists its subtests in `tests`; the harness runs each
 * in a fresh process (the program itself, executed again with `--run NAME`) under
 * LD_PRELOAD=$LIB, in its own process group, with a timeout, and prints TAP.  The harness itself
 * runs without the library.  LIB names the allocator (default build/libnumaslab.so); LIB= is
 * glibc.
 *
 * A subtest fails by fail() or CHECK, by a signal, by a non-zero exit, by taking too long, and by
 * printing anything: an allocator prints nothing.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define REPORT_FD   99 /* where a subtest's words go; the harness reads them */
#define STATUS_SKIP 77 /* exit status of a skipped subtest */
#define TEST_ROOT                                                                                  \
	"/tmp/numaslab-test-root" /* to mount on and to chroot to; the harness removes it */

struct test {
	const char *name;
	void (*run)(void);    /* the subtest, under the library */
	const char *program;  /* or: a helper program, beside this one; 0 = passed */
	const char *preload;  /* LD_PRELOAD; "LIB" and "DIR/" are replaced; default "LIB" */
	const char *env[4];   /* NAME=VALUE, "LIB" and "DIR/" replaced too */
	void (*before)(void); /* in the new process, before exec and without the library */
	int timeout;	      /* seconds; default 30 */
	bool prints;	      /* what it prints is its own business */
	bool part;	      /* run by another subtest only */
	bool numaslab;	      /* of no meaning to another allocator: skipped there */
};

extern const struct test tests[]; /* ends with a null name */
extern int errno_at_start;	  /* as main found it */

void fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
void skip(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
void note(const char *format, ...) __attribute__((format(printf, 1, 2)));

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition))                                                                  \
			fail("%s:%d: %s", __FILE__, __LINE__, #condition);                         \
	} while (0)
#define CHECK_EQ(a, b)                                                                             \
	do {                                                                                       \
		long long a_ = (long long)(a), b_ = (long long)(b);                                \
		if (a_ != b_)                                                                      \
			fail("%s:%d: %s is %lld, not %lld", __FILE__, __LINE__, #a, a_, b_);       \
	} while (0)

/* The folder of the test programs and plugins; the allocator's file, "" for glibc. */
const char *test_dir(void);
const char *lib_path(void);
const char *dir_file(const char *name); /* DIR/name, in static storage, four at a time */

/* --- util.c: for the subtests --------------------------------------------------------------- */

/* What a function in a forked child, or a program, printed and how it ended. */
struct outcome {
	int status; /* of waitpid */
	size_t length;
	char text[8192]; /* stdout and stderr; a string */
};
void run_function(struct outcome *out, void (*function)(void *), void *arg);
void run_program(struct outcome *out, char *const argv[], char *const envp[]);
const char *status_text(int status); /* "exit 1", "signal 6 (Aborted)"; static */

bool is_numaslab(void);
void *opaque(void *p); /* the compiler knows nothing of the result */

size_t rss_kib(void);  /* resident, now */
size_t anon_kib(void); /* anonymous resident (RssAnon) */
size_t private_dirty_kib(void);
size_t vsz_kib(void);
int map_count(void);
int thread_count(void);
int open_fds(char *list, size_t size); /* how many; their numbers and targets in list */
long read_number(const char *path);    /* -1 where there is none */
bool write_text(const char *path, const char *text);
uint64_t now_ms(void);

uint32_t random_next(uint64_t *state);
size_t random_size(uint64_t *state); /* mostly small, up to 1 MiB */

/* A block's content: a pattern from its own address and size. */
void block_fill(void *p, size_t size);
bool block_holds(const void *p, size_t size);
/* Allocates, fills, checks and frees in every size up to 1 MiB, `rounds` times. */
void exercise(int rounds, uint64_t seed);

/* seccomp: `action` (SECCOMP_RET_...) for the calls listed, allow the rest; or the reverse. */
void filter_calls(uint32_t action, const int *calls, int count);
void filter_all_but(uint32_t action, const int *calls, int count);

/* Leaves root for nobody; the library's file must be readable.  False without the right. */
bool become_nobody(void);

/* Before an exec as nobody: a skip if that user cannot enter the folder of the tests. */
void skip_unless_reached(void);

/* --- exhaust.c: a list whose links lie in the blocks themselves ------------------------------- */

struct link {
	struct link *next;
	size_t size;
};
/* Blocks of size until most bytes or a clean NULL; how many bytes were had. */
size_t grab_all(struct link **list, size_t size, size_t most);
void release_all(struct link **list);
/* To the end and back in several sizes; at least `enough` bytes must be there each time. */
void exhaust(size_t enough, size_t most);

/* --- forks.c: what the tests of fork and clone share ------------------------------------------ */

/* Threads that allocate all the time: two are enough to be inside every lock at some fork. */
void start_churn(pthread_t *threads, int count);
void end_churn(pthread_t *threads, int count);
/* Waits at most 10 s: a child that hangs is the failure looked for. */
void expect_child(pid_t pid, int wanted, const char *what);
void fill_blocks(void **blocks, int count);
/* Forks beside two such threads; the child uses what it inherited, and forks again. */
void fork_many(int forks);

#ifdef __cplusplus
}
#endif

#endif
