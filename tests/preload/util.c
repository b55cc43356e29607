/* SPDX-License-Identifier: MIT */
#include "harness.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void finish_outcome(struct outcome *out, pid_t pid, int fd)
{
	ssize_t n;
	char waste[512];

	out->length = 0;
	for (;;) {
		size_t room = sizeof(out->text) - 1 - out->length;

		n = read(fd, room ? out->text + out->length : waste, room ? room : sizeof(waste));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		if (room)
			out->length += n;
	}
	out->text[out->length] = 0;
	close(fd);
	while (waitpid(pid, &out->status, 0) < 0 && errno == EINTR)
		;
}

void run_function(struct outcome *out, void (*function)(void *), void *arg)
{
	int fds[2];
	pid_t pid;

	CHECK(pipe2(fds, O_CLOEXEC) == 0);
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		dup2(fds[1], 1);
		dup2(fds[1], 2);
		function(arg);
		_exit(0);
	}
	close(fds[1]);
	finish_outcome(out, pid, fds[0]);
}

void run_program(struct outcome *out, char *const argv[], char *const envp[])
{
	int fds[2];
	pid_t pid;

	CHECK(pipe2(fds, O_CLOEXEC) == 0);
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		dup2(fds[1], 1);
		dup2(fds[1], 2);
		if (envp)
			execve(argv[0], argv, envp);
		else
			execv(argv[0], argv);
		_exit(127);
	}
	close(fds[1]);
	finish_outcome(out, pid, fds[0]);
}

const char *status_text(int status)
{
	static char text[80];

	if (WIFSIGNALED(status))
		snprintf(text, sizeof(text), "signal %d (%s)", WTERMSIG(status),
			 strsignal(WTERMSIG(status)));
	else
		snprintf(text, sizeof(text), "exit status %d", WEXITSTATUS(status));
	return text;
}

bool is_numaslab(void)
{
	return dlsym(RTLD_DEFAULT, "numaslab_stats") != NULL;
}

void *opaque(void *p)
{
	__asm__ volatile("" : "+r"(p) : : "memory");
	return p;
}

/* The number after `key` in a /proc file, read without stdio (which allocates). */
static size_t proc_value(const char *path, const char *key)
{
	static __thread char text[8192];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = 0, got;
	char *at;

	if (fd < 0)
		return 0;
	while (n < (ssize_t)sizeof(text) - 1 &&
	       (got = read(fd, text + n, sizeof(text) - 1 - n)) > 0)
		n += got;
	close(fd);
	text[n] = 0;
	at = strstr(text, key);
	return at ? strtoul(at + strlen(key), NULL, 10) : 0;
}

size_t rss_kib(void)
{
	return proc_value("/proc/self/smaps_rollup", "\nRss:");
}

size_t anon_kib(void)
{
	return proc_value("/proc/self/smaps_rollup", "\nAnonymous:");
}

size_t private_dirty_kib(void)
{
	return proc_value("/proc/self/smaps_rollup", "\nPrivate_Dirty:");
}

size_t vsz_kib(void)
{
	return proc_value("/proc/self/status", "\nVmSize:");
}

int thread_count(void)
{
	return (int)proc_value("/proc/self/status", "\nThreads:");
}

int map_count(void)
{
	char text[4096];
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC), lines = 0;
	ssize_t n;

	while ((n = read(fd, text, sizeof(text))) > 0)
		for (ssize_t i = 0; i < n; i++)
			lines += text[i] == '\n';
	close(fd);
	return lines;
}

int open_fds(char *list, size_t size)
{
	size_t used = 0;
	int count = 0;

	list[0] = 0;
	for (int fd = 0; fd < 4096; fd++) {
		char link[40], target[200];
		ssize_t n;

		if (fcntl(fd, F_GETFD) < 0)
			continue;
		count++;
		snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
		n = readlink(link, target, sizeof(target) - 1);
		target[n < 0 ? 0 : n] = 0;
		if (used < size)
			used += snprintf(list + used, size - used, " %d=%s", fd, target);
	}
	return count;
}

long read_number(const char *path)
{
	char text[64];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -1;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return -1;
	text[n] = 0;
	return strtol(text, NULL, 10);
}

bool write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool good;

	if (fd < 0)
		return false;
	good = write(fd, text, strlen(text)) == (ssize_t)strlen(text);
	close(fd);
	return good;
}

uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000ull + t.tv_nsec / 1000000;
}

uint32_t random_next(uint64_t *state)
{
	*state = *state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(*state >> 33);
}

size_t random_size(uint64_t *state)
{
	uint32_t r = random_next(state);
	int bits = (r & 15) < 10 ? 8 : (r & 15) < 14 ? 13 : (r & 15) < 15 ? 17 : 20;

	return 1 + random_next(state) % (1u << bits);
}

/* The first and last 64 bytes and one in 512 between: enough to see an overlap. */
static inline unsigned char pattern(const void *p, size_t size, size_t i)
{
	return (unsigned char)(((uintptr_t)p >> 4) * 31 + size * 7 + i);
}

void block_fill(void *p, size_t size)
{
	unsigned char *c = p;

	for (size_t i = 0; i < size; i += i < 64 || i + 65 > size || size < 512 ? 1 : 512)
		c[i] = pattern(p, size, i);
	if (size)
		c[size - 1] = pattern(p, size, size - 1);
}

bool block_holds(const void *p, size_t size)
{
	const unsigned char *c = p;

	for (size_t i = 0; i < size; i += i < 64 || i + 65 > size || size < 512 ? 1 : 512)
		if (c[i] != pattern(p, size, i))
			return false;
	return !size || c[size - 1] == pattern(p, size, size - 1);
}

void exercise(int rounds, uint64_t seed)
{
	enum { SLOTS = 256 };
	void *blocks[SLOTS] = {0};
	size_t sizes[SLOTS] = {0};

	for (int i = 0; i < rounds * SLOTS; i++) {
		int slot = random_next(&seed) % SLOTS;

		if (blocks[slot] && !block_holds(blocks[slot], sizes[slot]))
			fail("block %p of %zu bytes was overwritten", blocks[slot], sizes[slot]);
		free(blocks[slot]);
		sizes[slot] = random_size(&seed);
		blocks[slot] = malloc(sizes[slot]);
		if (!blocks[slot])
			fail("malloc(%zu): %s", sizes[slot], strerror(errno));
		block_fill(blocks[slot], sizes[slot]);
	}
	for (int i = 0; i < SLOTS; i++) {
		if (blocks[i] && !block_holds(blocks[i], sizes[i]))
			fail("block %p of %zu bytes was overwritten", blocks[i], sizes[i]);
		free(blocks[i]);
	}
}

static void install_filter(uint32_t listed, uint32_t others, const int *calls, int count)
{
	struct sock_filter code[128];
	struct sock_fprog program = {0, code};
	unsigned short n = 0;

	CHECK(count < 100);
	code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
						 offsetof(struct seccomp_data, nr));
	for (int i = 0; i < count; i++)
		code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[i],
							 (unsigned char)(count - i), 0);
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, others);
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, listed);
	program.len = n;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program))
		skip("no seccomp filters here: %s", strerror(errno));
}

void filter_calls(uint32_t action, const int *calls, int count)
{
	install_filter(action, SECCOMP_RET_ALLOW, calls, count);
}

void filter_all_but(uint32_t action, const int *calls, int count)
{
	install_filter(SECCOMP_RET_ALLOW, action, calls, count);
}

bool become_nobody(void)
{
	return geteuid() != 0 || (!setgroups(0, NULL) && !setresgid(65534, 65534, 65534) &&
				  !setresuid(65534, 65534, 65534));
}

void skip_unless_reached(void)
{
	if (access("/proc/self/exe", X_OK) || access(lib_path(), R_OK) || access(test_dir(), X_OK))
		skip("another user cannot enter %s", test_dir());
}
