/* SPDX-License-Identifier: MIT */
/*
 * count [--lib PATH] [--max OP=N,...] [--only OP] [--trace OP] [--samples N] [--quick] [--json]
 *
 * Counts the instructions of one malloc, one free and a few more by single-stepping a process
 * that has PATH preloaded (libc's own malloc without --lib): natively, so that the code that
 * users run is counted, rseq included.  `lib` are those inside the library, `total` adds the
 * call, the PLT and whatever else is entered.  An instruction with a rep prefix counts once.
 * --quick leaves out the means of many calls, --trace prints where each instruction lies.
 * Where the machine allows no ptrace, exit 77.  With --max, exit 1 when the median of `lib`
 * exceeds the budget; "malloc" and "free" mean malloc16 and free16.
 */
#include <elf.h>
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"
#include "count.h"

enum { RANGES_MAX = 64, SAMPLES_DEFAULT = 50 };

struct range {
	uint64_t start, end, offset; /* offset: where start lies in the file */
	bool lib, self;
};

struct tracer {
	pid_t pid;
	const char *lib;
	struct range ranges[RANGES_MAX];
	int ranges_n;
	int trace; /* the operation to print, once, or -1 */
	int only;  /* the operation to count, or -1 */
	bool quick;
	struct count_result results[COUNT_OPS_N];
};

static void die(const char *what)
{
	fprintf(stderr, "count: %s: %s\n", what, strerror(errno));
	exit(errno == EPERM || errno == ENOSYS ? 77 : 3);
}

/* ---- the traced process ---- */

static bool mapping_is_lib(const struct tracer *t, const char *path, dev_t dev, ino_t ino)
{
	const char *base = strrchr(path, '/');
	struct stat st;

	if (!base)
		return false;
	if (!t->lib)
		return !strncmp(base, "/libc.so", 8) || !strncmp(base, "/libc-", 6);
	if (!stat(t->lib, &st) && st.st_ino == ino && st.st_dev == dev)
		return true;
	return strstr(base, "malloc") != NULL; /* what a proxy brings along */
}

static void ranges_read(struct tracer *t)
{
	char name[64], line[4096], self[4096] = "";
	FILE *f;

	snprintf(name, sizeof(name), "/proc/%d/exe", t->pid);
	if (readlink(name, self, sizeof(self) - 1) < 0)
		die(name);
	snprintf(name, sizeof(name), "/proc/%d/maps", t->pid);
	f = fopen(name, "re");
	if (!f)
		die(name);
	t->ranges_n = 0;
	while (fgets(line, sizeof(line), f) && t->ranges_n < RANGES_MAX) {
		unsigned long long start, end, offset, ino;
		unsigned major, minor;
		char perms[5], path[4096] = "";
		struct range *r = &t->ranges[t->ranges_n];

		if (sscanf(line, "%llx-%llx %4s %llx %x:%x %llu %4095[^\n]", &start, &end, perms,
			   &offset, &major, &minor, &ino, path) < 7 ||
		    perms[2] != 'x')
			continue;
		r->start = start;
		r->end = end;
		r->offset = offset;
		r->self = !strcmp(path, self);
		r->lib = !r->self && mapping_is_lib(t, path, makedev(major, minor), (ino_t)ino);
		t->ranges_n++;
	}
	fclose(f);
}

static const struct range *range_of(const struct tracer *t, uint64_t pc)
{
	for (int i = 0; i < t->ranges_n; i++)
		if (pc >= t->ranges[i].start && pc < t->ranges[i].end)
			return &t->ranges[i];
	return NULL;
}

static bool lib_is_mapped(const struct tracer *t)
{
	for (int i = 0; i < t->ranges_n; i++)
		if (t->ranges[i].lib)
			return true;
	return false;
}

static void regs_get(pid_t pid, struct user_regs_struct *regs)
{
	struct iovec iov = {regs, sizeof(*regs)};

	if (ptrace(PTRACE_GETREGSET, pid, (void *)NT_PRSTATUS, &iov))
		die("PTRACE_GETREGSET");
}

static void regs_skip_gate(pid_t pid, struct user_regs_struct *regs)
{
	struct iovec iov = {regs, sizeof(*regs)};

	gate_pc(*regs) += GATE_SIZE;
	if (ptrace(PTRACE_SETREGSET, pid, (void *)NT_PRSTATUS, &iov))
		die("PTRACE_SETREGSET");
}

static bool gate_is_at(pid_t pid, uint64_t pc)
{
	errno = 0;
	long word = ptrace(PTRACE_PEEKTEXT, pid, (void *)pc, NULL);

	return !errno && ((uint64_t)word & GATE_MASK) == GATE_INSN;
}

/* Returns false when the process is gone; other signals than ours go on to it. */
static bool stop_wait(pid_t pid, enum __ptrace_request how)
{
	int status, sig = 0;

	for (;;) {
		if (ptrace(how, pid, NULL, (void *)(long)sig) || waitpid(pid, &status, 0) < 0)
			die("ptrace");
		if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
			return false;
		if (!WIFSTOPPED(status)) {
			fprintf(stderr, "count: the process ended with status %#x\n", status);
			exit(3);
		}
		if (WSTOPSIG(status) == SIGTRAP)
			return true;
		sig = WSTOPSIG(status);
	}
}

/* From behind one gate to the next one, which it skips. */
static void region_step(struct tracer *t, int op, struct user_regs_struct *regs)
{
	struct count_result *res = &t->results[op];
	uint64_t pc = gate_pc(*regs), before = 0;
	long lib = 0, total = 0;
	const struct range *r;
	bool show = op == t->trace && res->n == 10;

	for (;;) {
		r = range_of(t, pc);
		if (r && r->self && gate_is_at(t->pid, pc))
			break;
		if (pc != before) { /* a rep instruction stops once a turn */
			total++;
			lib += r && r->lib;
			if (show)
				printf("%s %llx\n",
				       !r	 ? "?"
				       : r->lib	 ? "lib"
				       : r->self ? "self"
						 : "other",
				       (unsigned long long)(r ? pc - r->start + r->offset : pc));
		}
		before = pc;
		if (!stop_wait(t->pid, PTRACE_SINGLESTEP)) {
			fputs("count: the process ended between two gates\n", stderr);
			exit(3);
		}
		regs_get(t->pid, regs);
		pc = gate_pc(*regs);
	}
	regs_skip_gate(t->pid, regs);
	if (res->n < COUNT_SAMPLES_MAX) {
		res->lib[res->n] = (double)lib / count_ops[op].calls;
		res->total[res->n++] = (double)total / count_ops[op].calls;
	}
}

static void child_start(struct tracer *t, int samples)
{
	char count[16];
	int status;

	snprintf(count, sizeof(count), "%d", samples);
	t->pid = fork();
	if (t->pid < 0)
		die("fork");
	if (!t->pid) {
		if (t->lib)
			setenv("LD_PRELOAD", t->lib, 1);
		else
			unsetenv("LD_PRELOAD");
		if (!ptrace(PTRACE_TRACEME, 0, NULL, NULL))
			execl("/proc/self/exe", "count", "--child", count, (char *)NULL);
		_exit(errno == EPERM ? 77 : 3);
	}
	if (waitpid(t->pid, &status, 0) < 0 || !WIFSTOPPED(status)) {
		fputs("count: this machine allows no ptrace\n", stderr);
		exit(77);
	}
	if (ptrace(PTRACE_SETOPTIONS, t->pid, NULL, (void *)(long)PTRACE_O_EXITKILL))
		die("PTRACE_SETOPTIONS");
}

static bool op_wanted(const struct tracer *t, long op)
{
	if (op < 0 || op >= COUNT_OPS_N || (t->only >= 0 && op != t->only))
		return false;
	return !t->quick || count_ops[op].calls == 1;
}

static void child_follow(struct tracer *t)
{
	struct user_regs_struct regs;
	bool first = true;

	while (stop_wait(t->pid, PTRACE_CONT)) {
		if (first) {
			ranges_read(t);
			if (!lib_is_mapped(t)) {
				fprintf(stderr, "count: %s was not loaded\n",
					t->lib ? t->lib : "libc");
				exit(3);
			}
			first = false;
		}
		regs_get(t->pid, &regs);
		if (!GATE_PASSED)
			regs_skip_gate(t->pid, &regs);
		long op = gate_op(regs);

		if (op_wanted(t, op))
			region_step(t, (int)op, &regs);
	}
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
	    {"lib", 1, NULL, 'l'},     {"max", 1, NULL, 'm'},
	    {"only", 1, NULL, 'o'},    {"trace", 1, NULL, 't'},
	    {"samples", 1, NULL, 's'}, {"json", 0, NULL, 'j'},
	    {"quick", 0, NULL, 'q'},   {0},
	};
	static struct tracer t = {.trace = -1, .only = -1};
	double budget[COUNT_OPS_N] = {0};
	int samples = SAMPLES_DEFAULT, opt;
	bool json = false;

	if (argc == 3 && !strcmp(argv[1], "--child"))
		return count_child(atoi(argv[2]));
	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (opt == 'l')
			t.lib = realpath(optarg, NULL);
		if (opt == 'l' && !t.lib)
			die(optarg);
		if (opt == 'm')
			count_budgets_parse(optarg, budget);
		if (opt == 'o')
			t.only = count_op_find(optarg, strlen(optarg));
		if (opt == 't')
			t.only = t.trace = count_op_find(optarg, strlen(optarg));
		if (opt == 's')
			samples = atoi(optarg);
		if (opt == 'q')
			t.quick = true;
		if (opt == 'j')
			json = true;
		if (opt == '?')
			return 2;
	}
	if (samples < 11 || samples > COUNT_SAMPLES_MAX || optind != argc) {
		fputs("usage: count [--lib PATH] [--max OP=N,...] [--only OP] [--trace OP] "
		      "[--samples 11..1000] [--quick] [--json]\n",
		      stderr);
		return 2;
	}
	child_start(&t, samples);
	child_follow(&t);
	return count_report(t.results, t.lib, budget, json) ? 1 : 0;
}
