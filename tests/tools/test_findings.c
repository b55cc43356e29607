/* SPDX-License-Identifier: MIT */
/* doctor's verdicts on made-up facts: each check in its good and its bad states. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "tools/findings.h"

static struct node nodes[3];
static int distances[9];
static char *no_env[] = {NULL};
static struct facts facts;
static struct finding findings[FINDINGS_MAX];

/* A machine of two nodes where everything is there. */
static int make_good(void **state)
{
	const struct rlimit none = {RLIM_INFINITY, RLIM_INFINITY};

	(void)state;
	memset(&facts, 0, sizeof facts);
	for (int i = 0; i < 2; i++)
		nodes[i] = (struct node){.id = i,
					 .memory = 1 << 30,
					 .has_memory = true,
					 .has_cpu = true,
					 .allowed = true,
					 .cpus = "0"};
	facts.root = "";
	facts.envp = no_env;
	facts.machine = (struct machine){2, nodes, distances, "sysfs"};
	strcpy(facts.mems_allowed, "0-1");
	strcpy(facts.cgroup, "/a.slice");
	strcpy(facts.cpuset_file, "cpuset.mems");
	facts.rseq_size = 20;
	facts.rseq_feature_size = 28;
	strcpy(facts.thp, "madvise");
	facts.huge_kb = 2048;
	facts.balancing = 1;
	facts.max_map_count = 65530;
	facts.shm_exists = facts.shm_writable = true;
	facts.shm_size = facts.shm_free = 1 << 30;
	facts.shm_owner = -1;
	strcpy(facts.shm_dir, "/dev/shm/numaslab-0");
	facts.btf = facts.caps_known = facts.library_found = true;
	facts.caps = ~0ull;
	strcpy(facts.library.path, "/usr/lib/libnumaslab.so");
	facts.limit_as = facts.limit_data = facts.limit_fsize = none;
	facts.limit_memlock = facts.limit_nofile = none;
	return 0;
}

/* The finding of one check; whatever is not ok says what it costs and what mends it. */
static const struct finding *judged(const char *name)
{
	size_t count = findings_judge(&facts, findings);

	for (size_t i = 0; i < count; i++)
		assert_true(*findings[i].have &&
			    (findings[i].status == FINDING_OK) == !*findings[i].cost &&
			    (findings[i].status == FINDING_OK) == !*findings[i].mend);
	for (size_t i = 0; i < count; i++)
		if (!strcmp(findings[i].name, name))
			return &findings[i];
	fail_msg("no check %s", name);
	return NULL;
}

static void expect(const char *name, enum finding_status status, const char *have, const char *mend)
{
	const struct finding *f = judged(name);

	if (f->status != status || !strstr(f->have, have) || !strstr(f->mend, mend))
		fail_msg("%s: status %d, have '%s', cost '%s', mend '%s'", name, f->status, f->have,
			 f->cost, f->mend);
}

static void all_is_well(void **state)
{
	size_t count = findings_judge(&facts, findings);

	(void)state;
	assert_int_equal(count, 21);
	for (size_t i = 0; i < count; i++) {
		if (findings[i].status != FINDING_OK)
			fail_msg("%s: %s", findings[i].name, findings[i].have);
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(findings[i].name, findings[j].name);
	}
}

static void node_counts(void **state)
{
	(void)state;
	expect("nodes", FINDING_OK, "2 nodes with memory", "");
	nodes[1].has_memory = false;
	expect("nodes", FINDING_OK, "one node with memory: all memory is local; 1 left out", "");
	nodes[0].has_memory = false;
	expect("nodes", FINDING_MISSING, "no node with memory", "ls /sys");
}

static void cpusets(void **state)
{
	(void)state;
	nodes[1].allowed = false;
	strcpy(facts.mems_allowed, "0");
	expect("mems_allowed", FINDING_WARN, "only node 0",
	       "echo 0,1 > /sys/fs/cgroup/a.slice/cpuset.mems");
}

static void rseq_steps(void **state)
{
	char *tuned[] = {"GLIBC_TUNABLES=glibc.pthread.rseq=0", NULL};

	(void)state;
	expect("rseq", FINDING_OK, "node and CPU", "");
	facts.rseq_feature_size = 0;
	expect("rseq", FINDING_OK, "CPU only", "");
	facts.rseq_size = 0;
	expect("rseq", FINDING_WARN, "not registered", "glibc 2.35");
	facts.envp = tuned;
	expect("rseq", FINDING_WARN, "as GLIBC_TUNABLES asks", "unset GLIBC_TUNABLES");
}

static void system_calls(void **state)
{
	static const struct {
		const char *name;
		size_t offset;
	} calls[] = {{"mbind", offsetof(struct facts, mbind)},
		     {"get_mempolicy", offsetof(struct facts, get_mempolicy)},
		     {"move_pages", offsetof(struct facts, move_pages)},
		     {"populate", offsetof(struct facts, populate)}};

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		int *result = (int *)((char *)&facts + calls[i].offset);

		expect(calls[i].name, FINDING_OK, "works", "");
		*result = PROBE_SKIPPED;
		expect(calls[i].name, FINDING_OK, "not tried", "");
		*result = PROBE_KILLED;
		expect(calls[i].name, FINDING_MISSING, "kills", "seccomp");
		*result = EPERM;
		expect(calls[i].name, FINDING_MISSING, "not permitted", "SYS_NICE");
		*result = i == 3 ? EINVAL : ENOSYS;
		expect(calls[i].name, FINDING_MISSING, "fails", "boot ");
		*result = 0;
	}
}

static void huge_pages(void **state)
{
	(void)state;
	strcpy(facts.thp, "never");
	expect("thp", FINDING_WARN, "never", "echo madvise >");
	facts.thp[0] = 0;
	expect("thp", FINDING_MISSING, "no transparent", "CONFIG_TRANSPARENT_HUGEPAGE");
	facts.huge_total = 10;
	expect("hugepages", FINDING_OK, "10 reserved", "");
	facts.huge_free = 4;
	expect("hugepages", FINDING_WARN, "4 of 10 pages of the pool lie idle: 8 MiB",
	       "vm.nr_hugepages=0");
	facts.huge_total = facts.huge_free = facts.huge_kb = -1;
	expect("hugepages", FINDING_OK, "no pool", "");
}

static void balancing(void **state)
{
	(void)state;
	facts.balancing = 0;
	expect("numa_balancing", FINDING_WARN, "off", "sysctl -w kernel.numa_balancing=1");
	facts.balancing = -1;
	expect("numa_balancing", FINDING_MISSING, "not in this kernel", "CONFIG_NUMA_BALANCING");
	facts.machine.count = 1;
	expect("numa_balancing", FINDING_OK, "not in this kernel", "");
	facts.balancing = 0;
	expect("numa_balancing", FINDING_OK, "does not need it", "");
}

static void address_space(void **state)
{
	(void)state;
	facts.overcommit = 2;
	expect("overcommit", FINDING_WARN, "strict", "vm.overcommit_memory=0");
	facts.overcommit = 1;
	expect("overcommit", FINDING_OK, "always", "");
	facts.max_map_count = 1000;
	expect("max_map_count", FINDING_WARN, "1000", "vm.max_map_count=");
	facts.max_map_count = facts.overcommit = -1;
	expect("max_map_count", FINDING_OK, "not said", "");
	expect("overcommit", FINDING_OK, "not said", "");
}

static void shared_memory(void **state)
{
	(void)state;
	facts.shm_free = 64 << 10;
	expect("shm", FINDING_WARN, "64 KiB free", "remount,size=");
	facts.shm_owner = 1234;
	expect("shm", FINDING_WARN, "belongs to user 1234", "rm -r /dev/shm/numaslab-0");
	facts.shm_owner = 0;
	facts.shm_writable = false;
	expect("shm", FINDING_MISSING, "cannot be written", "remount,rw");
	facts.shm_exists = false;
	expect("shm", FINDING_MISSING, "no /dev/shm", "mount -t tmpfs");
}

static void companion(void **state)
{
	(void)state;
	facts.btf = false;
	expect("btf", FINDING_MISSING, "no readable", "CONFIG_DEBUG_INFO_BTF");
	facts.caps = 0;
	expect("capabilities", FINDING_WARN, "CAP_BPF and CAP_PERFMON, CAP_SYS_PTRACE", "sudo");
	facts.caps = 1ull << 38 | 1ull << 39;
	expect("capabilities", FINDING_WARN, "CAP_SYS_PTRACE is missing", "sudo");
	facts.caps = 1ull << 19 | 1ull << 39;
	expect("capabilities", FINDING_WARN, "CAP_BPF and CAP_PERFMON is missing", "sudo");
	facts.caps = 1ull << 19 | 1ull << 21;
	expect("capabilities", FINDING_OK, "open", "");
	facts.caps_known = false;
	expect("capabilities", FINDING_OK, "not said", "");
}

static void this_process(void **state)
{
	(void)state;
	facts.seccomp = 2;
	expect("seccomp", FINDING_WARN, "a filter", "seccomp=unconfined");
	facts.seccomp = -1;
	expect("seccomp", FINDING_OK, "not said", "");
	facts.policy = 2;
	expect("policy", FINDING_WARN, "(bind)", "numactl");
	facts.policy = -1;
	expect("policy", FINDING_OK, "not known", "");
	facts.library_found = false;
	facts.library.places = 2;
	strcpy(facts.library.tried[0], "/a/libnumaslab.so");
	strcpy(facts.library.tried[1], "/b\033/libnumaslab.so");
	expect("library", FINDING_MISSING, "/a/libnumaslab.so, /b?/libnumaslab.so", "make");
}

static void limits(void **state)
{
	(void)state;
	facts.limit_memlock.rlim_cur = 8 << 20;
	expect("rlimits", FINDING_OK, "none", "");
	facts.limit_as.rlim_cur = 1 << 30;
	expect("rlimits", FINDING_WARN, "RLIMIT_AS is 1073741824", "ulimit -v unlimited");
	facts.limit_data.rlim_cur = facts.limit_fsize.rlim_cur = 0;
	facts.limit_nofile.rlim_cur = 3;
	expect("rlimits", FINDING_WARN, "RLIMIT_DATA is 0, RLIMIT_FSIZE is 0, RLIMIT_NOFILE is 3",
	       "ulimit -v unlimited; ulimit -d unlimited; ulimit -f unlimited; ulimit -n 1024");
}

static void environment(void **state)
{
	char *good[] = {"A=b", "NUMASLAB_CHECK=1", "NUMASLAB_DIR=/\x1b[2J", NULL};
	char *bad[] = {"NUMASLAB_CHECK=3", "NUMASLAB_PLACMENT=home", NULL};
	char *preload[] = {"LD_PRELOAD=/usr/lib/libjemalloc.so.2", NULL};

	(void)state;
	facts.envp = good;
	expect("variables", FINDING_OK, "NUMASLAB_CHECK=1 NUMASLAB_DIR=/?[2J", "");
	facts.envp = bad;
	expect("variables", FINDING_WARN, "NUMASLAB_CHECK cannot be '3'",
	       "unset NUMASLAB_CHECK NUMASLAB_PLACMENT");
	expect("variables", FINDING_WARN, "did you mean NUMASLAB_PLACEMENT?", "");
	facts.envp = preload;
	expect("ld_preload", FINDING_WARN, "libjemalloc", "unset LD_PRELOAD");
	preload[0] = "LD_PRELOAD=/usr/lib/libother.so";
	expect("ld_preload", FINDING_OK, "libother", "");
}

#define TEST(name) cmocka_unit_test_setup(name, make_good)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(all_is_well),	 TEST(node_counts), TEST(cpusets),	TEST(rseq_steps),
	    TEST(system_calls),	 TEST(huge_pages),  TEST(balancing),	TEST(address_space),
	    TEST(shared_memory), TEST(companion),   TEST(this_process), TEST(limits),
	    TEST(environment),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
