/* SPDX-License-Identifier: MIT */
#include "tools/hints_kernel.h"

#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <bpf/btf.h>

#include "tools/machine.h"

#define FIRST_PID_NAMESPACE 0xEFFFFFFCu /* its inode is fixed */
#define HUGE_SHIFT	    21u

static const struct btf_type *skip(const struct btf *btf, uint32_t id)
{
	const struct btf_type *t = btf__type_by_id(btf, id);

	while (t && (btf_is_mod(t) || btf_is_typedef(t)))
		t = btf__type_by_id(btf, t->type);
	return t;
}

/* The prototype of a function; NULL: there is no such function. */
static const struct btf_type *prototype(const struct btf *btf, const char *name)
{
	int id = btf__find_by_name_kind(btf, name, BTF_KIND_FUNC);
	const struct btf_type *t = id > 0 ? btf__type_by_id(btf, (uint32_t)id) : NULL;

	t = t ? btf__type_by_id(btf, t->type) : NULL;
	return t && btf_is_func_proto(t) ? t : NULL;
}

/* Whether an argument is a pointer to that struct. */
static bool points_to(const struct btf *btf, const struct btf_type *proto, unsigned arg,
		      const char *name)
{
	const struct btf_type *t = skip(btf, btf_params(proto)[arg].type);

	t = t && btf_is_ptr(t) ? skip(btf, t->type) : NULL;
	return t && btf_is_struct(t) && !strcmp(btf__name_by_offset(btf, t->name_off), name);
}

static void read_functions(struct hints_kernel *k, const struct btf *btf)
{
	const struct btf_type *misplaced = prototype(btf, "mpol_misplaced");
	const struct btf_type *end = prototype(btf, "task_numa_fault");
	const struct btf_type *on_huge = prototype(btf, "do_huge_pmd_numa_page");

	if (misplaced && btf_vlen(misplaced) == 3 && end && btf_vlen(end) == 4) {
		k->config.has_vmf = points_to(btf, misplaced, 1, "vm_fault");
		k->has_faults = k->config.has_vmf || points_to(btf, misplaced, 1, "vm_area_struct");
	}
	k->has_huge = on_huge && btf_vlen(on_huge) == 1 && points_to(btf, on_huge, 0, "vm_fault");
}

/* How many arguments a tracepoint has; -1: there is none of that name. */
static int tracepoint_args(const struct btf *btf, const char *name)
{
	int id = btf__find_by_name_kind(btf, name, BTF_KIND_TYPEDEF);
	const struct btf_type *t = id > 0 ? skip(btf, (uint32_t)id) : NULL;

	t = t && btf_is_ptr(t) ? skip(btf, t->type) : NULL;
	return t && btf_is_func_proto(t) ? (int)btf_vlen(t) - 1 : -1;
}

static int enum_value(const struct btf *btf, const char *type, const char *name)
{
	int id = btf__find_by_name_kind(btf, type, BTF_KIND_ENUM);
	const struct btf_type *t = id > 0 ? btf__type_by_id(btf, (uint32_t)id) : NULL;

	for (unsigned i = 0; t && i < btf_vlen(t); i++)
		if (!strcmp(btf__name_by_offset(btf, btf_enum(t)[i].name_off), name))
			return btf_enum(t)[i].val;
	return -1;
}

static void read_tracepoints(struct hints_kernel *k, const struct btf *btf)
{
	int args = tracepoint_args(btf, "btf_trace_mm_migrate_pages");
	int reason = enum_value(btf, "migrate_reason", "MR_NUMA_MISPLACED");

	if ((args == 7 || args == 8) && reason >= 0) {
		k->config.reason_numa = (uint32_t)reason;
		k->migrate_args = args;
	}
	k->has_page_faults = tracepoint_args(btf, "btf_trace_page_fault_user") == 3;
}

void hints_kernel_read(struct hints_kernel *k)
{
	struct stat st;
	long long bytes = read_number("", "/sys/kernel/mm/transparent_hugepage/hpage_pmd_size");
	struct btf *btf = btf__load_vmlinux_btf();

	memset(k, 0, sizeof *k);
	k->config.huge_shift =
	    bytes > 0 ? (uint32_t)__builtin_ctzll((unsigned long long)bytes) : HUGE_SHIFT;
	if (stat("/proc/self/ns/pid", &st) == 0 && st.st_ino != FIRST_PID_NAMESPACE) {
		/* As the kernel encodes a device. */
		k->config.ns_dev = (uint64_t)major(st.st_dev) << 20 | minor(st.st_dev);
		k->config.ns_ino = st.st_ino;
	}
	if (!btf)
		return;
	k->has_btf = true;
	read_functions(k, btf);
	read_tracepoints(k, btf);
	btf__free(btf);
}
