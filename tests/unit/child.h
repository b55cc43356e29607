/* SPDX-License-Identifier: MIT */
#ifndef TEST_CHILD_H
#define TEST_CHILD_H

/*
 * The allocator starts once in a process: each scenario runs in a child of its own.  CHECK ends
 * the child with a line that says where; the parent's test fails with it.
 */

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#ifndef CHECK_FAILED
#define CHECK_FAILED() _exit(1)
#endif

#define CHECK(what, ...)                                                                           \
	do {                                                                                       \
		if (!(what)) {                                                                     \
			printf("# %s:%d: %s", __FILE__, __LINE__, #what);                          \
			printf(" " __VA_ARGS__);                                                   \
			printf("\n");                                                              \
			fflush(stdout);                                                            \
			CHECK_FAILED();                                                            \
		}                                                                                  \
	} while (0)

/* The wait status of fn(arg) in a child; 0: it returned. */
static inline int child_run(void (*fn)(const void *), const void *arg)
{
	int status = -1;

	fflush(stdout);
	pid_t pid = fork();

	if (pid == 0) {
		/* cmocka's handlers would go on with the parent's tests. */
		signal(SIGSEGV, SIG_DFL);
		signal(SIGBUS, SIG_DFL);
		signal(SIGILL, SIG_DFL);
		signal(SIGFPE, SIG_DFL);
		alarm(300);
		fn(arg);
		fflush(stdout);
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -1;
	if (WIFSIGNALED(status))
		printf("# killed by signal %d\n", WTERMSIG(status));
	fflush(stdout);
	return status;
}

#define assert_child(fn, arg) assert_int_equal(child_run(fn, arg), 0)

/* A cmocka group as TAP. */
#define TAP_MAIN(tests)                                                                            \
	int main(void)                                                                             \
	{                                                                                          \
		setvbuf(stdout, NULL, _IOLBF, 0);                                                  \
		cmocka_set_message_output(CM_OUTPUT_TAP);                                          \
		return cmocka_run_group_tests(tests, NULL, NULL);                                  \
	}

#endif
