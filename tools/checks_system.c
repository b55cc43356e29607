/* SPDX-License-Identifier: MIT */
/* What the machine and its kernel offer. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "tools/findings.h"

#define MIB (1ull << 20)

static size_t usable_nodes(const struct facts *f)
{
	size_t n = 0;

	for (size_t i = 0; i < f->machine.count; i++)
		n += !node_is_empty(&f->machine.nodes[i]);
	return n;
}

static void judge_nodes(const struct facts *f, struct finding *out)
{
	size_t usable = usable_nodes(f), left = f->machine.count - usable;

	if (!usable)
		finding_bad(out, FINDING_MISSING, "the library works, but cannot place memory",
			    "ls /sys/devices/system/node", "no node with memory is visible");
	else if (usable == 1)
		finding_ok(out, "one node with memory: all memory is local");
	else
		finding_ok(out, "%zu nodes with memory, from %s", usable, f->machine.source);
	if (left)
		snprintf(out->have + strlen(out->have), sizeof out->have - strlen(out->have),
			 "; %zu left out", left);
}

static void judge_mems_allowed(const struct facts *f, struct finding *out)
{
	char mend[512], list[256] = "";
	size_t out_of_reach = 0;

	for (size_t i = 0; i < f->machine.count; i++) {
		const struct node *n = &f->machine.nodes[i];

		out_of_reach += n->has_memory && !n->allowed;
		if (n->has_memory && strlen(list) < sizeof list - 8)
			sprintf(list + strlen(list), "%s%d", *list ? "," : "", n->id);
	}
	if (!out_of_reach) {
		finding_ok(out, "every node with memory may be used (%s)",
			   *f->mems_allowed ? f->mems_allowed : "not said by the kernel");
		return;
	}
	snprintf(mend, sizeof mend, "echo %s > /sys/fs/cgroup%s/%s", list, f->cgroup,
		 f->cpuset_file);
	finding_bad(out, FINDING_WARN, "threads on the other nodes get remote memory", mend,
		    "only node %s may be used: %zu with memory left out by a cpuset",
		    f->mems_allowed, out_of_reach);
}

static void judge_rseq(const struct facts *f, struct finding *out)
{
	const char *tuned = facts_variable(f, "GLIBC_TUNABLES");

	if (!f->rseq_size)
		finding_bad(out, FINDING_WARN, "finding the current node takes 15 ns, not 1",
			    tuned && strstr(tuned, "rseq=0")
				? "unset GLIBC_TUNABLES"
				: "use glibc 2.35 or newer on Linux 4.18 or newer",
			    "not registered by the C library%s",
			    tuned && strstr(tuned, "rseq=0") ? ", as GLIBC_TUNABLES asks" : "");
	else if (f->rseq_feature_size >= 24)
		finding_ok(out, "node and CPU (feature size %lu)", f->rseq_feature_size);
	else
		finding_ok(out, "CPU only, the node comes from a table (before Linux 6.3)");
}

/* The verdict on a call that was tried. */
static void judge_call(int result, const char *cost, const char *absent_mend, struct finding *out)
{
	static const char filtered[] =
	    "docker run --cap-add SYS_NICE ..., or a seccomp profile that allows it";

	if (!result)
		finding_ok(out, "works");
	else if (result == PROBE_SKIPPED)
		finding_ok(out, "not tried");
	else if (result == PROBE_KILLED)
		finding_bad(out, FINDING_MISSING, cost, filtered, "a filter kills the caller");
	else if (result == EPERM || result == EACCES)
		finding_bad(out, FINDING_MISSING, cost, filtered, "refused (%s)", strerror(result));
	else
		finding_bad(out, FINDING_MISSING, cost, absent_mend, "fails (%s)",
			    strerror(result));
}

#define NUMA_KERNEL "boot a kernel with CONFIG_NUMA=y"

static void judge_mbind(const struct facts *f, struct finding *out)
{
	judge_call(f->mbind, "memory goes to the node that first touches it", NUMA_KERNEL, out);
}

static void judge_get_mempolicy(const struct facts *f, struct finding *out)
{
	judge_call(f->get_mempolicy, "where a slab landed is not known: misplaced ones stay unseen",
		   NUMA_KERNEL, out);
}

static void judge_move_pages(const struct facts *f, struct finding *out)
{
	judge_call(f->move_pages, "a slab that landed on another node is not brought home",
		   "boot a kernel with CONFIG_NUMA=y and CONFIG_MIGRATION=y", out);
}

static void judge_populate(const struct facts *f, struct finding *out)
{
	judge_call(f->populate, "slabs are filled by a page fault for each page; telemetry is off",
		   "boot Linux 5.14 or newer (MADV_POPULATE_WRITE)", out);
}

static void judge_thp(const struct facts *f, struct finding *out)
{
	static const char mend[] = "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled";

	if (!*f->thp)
		finding_bad(out, FINDING_MISSING, "more TLB misses in large heaps",
			    "boot a kernel with CONFIG_TRANSPARENT_HUGEPAGE=y",
			    "no transparent huge pages");
	else if (!strcmp(f->thp, "never"))
		finding_bad(out, FINDING_WARN, "more TLB misses in large heaps", mend, "never");
	else
		finding_ok(out, "%s", f->thp);
}

static void judge_hugepages(const struct facts *f, struct finding *out)
{
	unsigned long long aside;

	if (f->huge_total < 0 || f->huge_kb < 0) {
		finding_ok(out, "no pool in this kernel; none is needed");
		return;
	}
	aside = (unsigned long long)f->huge_free * (unsigned long long)f->huge_kb << 10;
	if (f->huge_free > 0)
		finding_bad(out, FINDING_WARN, "no malloc can use memory that lies in the pool",
			    "sysctl -w vm.nr_hugepages=0",
			    "%lld of %lld pages of the pool lie idle: %llu MiB", f->huge_free,
			    f->huge_total, aside / MIB);
	else
		finding_ok(out, "%lld reserved pages, none idle", f->huge_total);
}

static void judge_balancing(const struct facts *f, struct finding *out)
{
	if (f->balancing < 0)
		finding_bad(out, usable_nodes(f) > 1 ? FINDING_MISSING : FINDING_OK,
			    "placements observe and kernel have nothing to work with",
			    "boot a kernel with CONFIG_NUMA_BALANCING=y", "not in this kernel");
	else if (f->balancing == 0 && usable_nodes(f) > 1)
		finding_bad(out, FINDING_WARN,
			    "placements observe and kernel see no hint faults (home does not "
			    "need them)",
			    "sysctl -w kernel.numa_balancing=1", "off");
	else
		finding_ok(out, f->balancing ? "on (%lld)" : "off, and one node does not need it",
			   f->balancing);
}

static void judge_overcommit(const struct facts *f, struct finding *out)
{
	if (f->overcommit == 2)
		finding_bad(out, FINDING_WARN,
			    "memory is charged when it is reserved: malloc fails earlier, and "
			    "giving memory back costs a remap",
			    "sysctl -w vm.overcommit_memory=0", "strict (2)");
	else if (f->overcommit < 0)
		finding_ok(out, "not said by the kernel");
	else
		finding_ok(out, f->overcommit ? "always (1)" : "heuristic (0)");
}

static void judge_max_map_count(const struct facts *f, struct finding *out)
{
	if (f->max_map_count >= 0 && f->max_map_count < 65530)
		finding_bad(out, FINDING_WARN,
			    "a program with many large blocks runs out of mappings",
			    "sysctl -w vm.max_map_count=262144", "%lld", f->max_map_count);
	else if (f->max_map_count < 0)
		finding_ok(out, "not said by the kernel");
	else
		finding_ok(out, "%lld", f->max_map_count);
}

static void judge_shm(const struct facts *f, struct finding *out)
{
	static const char cost[] = "telemetry is off: nothing for the monitor to read";
	char mend[512];

	snprintf(mend, sizeof mend, "rm -r %s, or set NUMASLAB_DIR", f->shm_dir);
	if (!f->shm_exists)
		finding_bad(out, FINDING_MISSING, cost,
			    "mount -t tmpfs -o mode=1777 tmpfs /dev/shm (on an existing directory)",
			    "no /dev/shm");
	else if (!f->shm_writable)
		finding_bad(out, FINDING_MISSING, cost, "mount -o remount,rw,mode=1777 /dev/shm",
			    "/dev/shm cannot be written");
	else if (f->shm_owner >= 0 && (unsigned)f->shm_owner != f->uid)
		finding_bad(out, FINDING_WARN, cost, mend, "%s belongs to user %d", f->shm_dir,
			    f->shm_owner);
	else if (!*f->root && f->shm_free < 8 * MIB)
		finding_bad(out, FINDING_WARN, cost,
			    "mount -o remount,size=256M /dev/shm (docker run --shm-size=256m)",
			    "%llu KiB free of %llu KiB", (unsigned long long)f->shm_free >> 10,
			    (unsigned long long)f->shm_size >> 10);
	else if (*f->root)
		finding_ok(out, "there");
	else
		finding_ok(out, "%llu MiB free", (unsigned long long)(f->shm_free / MIB));
}

static void judge_btf(const struct facts *f, struct finding *out)
{
	if (f->btf)
		finding_ok(out, "/sys/kernel/btf/vmlinux");
	else
		finding_bad(out, FINDING_MISSING,
			    "numaslab hints falls back to estimates from page faults",
			    "boot a kernel with CONFIG_DEBUG_INFO_BTF=y",
			    "no readable /sys/kernel/btf/vmlinux");
}

const struct check system_checks[] = {
    {"nodes", judge_nodes},
    {"mems_allowed", judge_mems_allowed},
    {"rseq", judge_rseq},
    {"mbind", judge_mbind},
    {"get_mempolicy", judge_get_mempolicy},
    {"move_pages", judge_move_pages},
    {"populate", judge_populate},
    {"thp", judge_thp},
    {"hugepages", judge_hugepages},
    {"numa_balancing", judge_balancing},
    {"overcommit", judge_overcommit},
    {"max_map_count", judge_max_map_count},
    {"shm", judge_shm},
    {"btf", judge_btf},
};
const size_t system_check_count = sizeof system_checks / sizeof *system_checks;
