// SPDX-License-Identifier: (MIT OR GPL-2.0)
/*
 * The companion's eyes.  mpol_misplaced(page or folio, vma or vmf, address) is called once for each
 * NUMA hint fault, right after the kernel counted it; task_numa_fault(last_cpupid, node, pages,
 * flags) tells, in the same task, how it ended.  The two are joined here, the address is looked up
 * in the slab map of the process, and counts are added up: nothing goes to user space by event
 * but samples.  What differs between kernels is found out by hints_kernel.c, and comes as config.
 */
#include "tools/hints_count.bpf.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* --- fentry and kprobe. --- */

/* The exact address, where the kernel passes on only that of the huge page. */
static __always_inline __u64 address_of(void *where, __u64 address, __u32 tid)
{
	struct vm_fault *vmf = where;

	if (config.has_vmf)
		return bpf_core_field_exists(vmf->real_address) ? BPF_CORE_READ(vmf, real_address)
								: address;
	__u64 *seen = bpf_map_lookup_elem(&huge, &tid);
	return seen && *seen >> config.huge_shift == address >> config.huge_shift &&
		       !(address & ((1ull << config.huge_shift) - 1))
		   ? *seen
		   : address;
}

static __always_inline int huge_begins(struct vm_fault *vmf)
{
	struct who w = {};
	__u64 address;

	if (!who_is_it(&w))
		return 0;
	address = bpf_core_field_exists(vmf->real_address) ? BPF_CORE_READ(vmf, real_address)
							   : BPF_CORE_READ(vmf, address);
	bpf_map_update_elem(&huge, &w.tid, &address, BPF_ANY);
	return 0;
}

static __always_inline int fault_begins(void *page, void *where, __u64 address)
{
	struct outcome lost = {.faults = 1, .unjoined = 1, .pages = 1};
	struct hints_pending p = {};
	struct who w = {};
	__u64 sp = 0;

	if (!who_is_it(&w))
		return 0;
	struct hints_stats *s = stats_of_cpu();
	if (s)
		s->begun++;
	struct hints_pending *before = bpf_map_lookup_elem(&pending, &w.tid);
	if (before) { /* it has no end: the kernel gave up on that page */
		p = *before;
		count(&p, &lost);
		__builtin_memset(&p, 0, sizeof p);
	}
	struct vm_fault *vmf = where;
	struct vm_area_struct *vma = config.has_vmf ? BPF_CORE_READ(vmf, vma) : where;
	struct task_struct *task = (void *)bpf_get_current_task();
	stack_and_ip(&sp, &p.ip);
	p.tid = w.tid;
	p.address = address_of(where, address, w.tid);
	p.page_flags = flags_of_page(page);
	p.cell.tgid = w.tgid;
	p.cell.image = w.image;
	p.cell.class = DECODE_CLASS_NONE;
	p.cell.home = -1;
	p.cell.from = (__u16)bpf_get_numa_node_id();
	/* Memory of another process (ptrace, a debugger's reading) is not to be looked up in ours.
	 */
	if (BPF_CORE_READ(vma, vm_mm) != BPF_CORE_READ(task, mm))
		p.cell.kind = RAW_OTHER;
	else if (!key_of_heap(&w, p.address, &p))
		p.cell.kind = kind_of_area(vma, sp);
	bpf_map_update_elem(&pending, &w.tid, &p, BPF_ANY);
	return 0;
}

static __always_inline int fault_ends(int node, int pages, int flags)
{
	struct outcome n = {.faults = 1};
	struct hints_pending p;
	struct who w = {};

	if (!numbers_of_task(&w))
		return 0;
	struct hints_pending *begun = bpf_map_lookup_elem(&pending, &w.tid);
	if (!begun)
		return 0;
	p = *begun;
	bpf_map_delete_elem(&pending, &w.tid);
	n.pages = (__u32)pages;
	if (flags & TNF_FAULT_LOCAL)
		n.local = 1;
	else
		n.remote = 1;
	if (flags & TNF_MIGRATE_FAIL)
		n.failed = 1;
	if (flags & TNF_MIGRATED)
		n.migrated = n.pages;
	else
		learn_width(p.page_flags, (__u32)node);
	if (p.cell.kind != RAW_SLAB)
		p.cell.home = flags & TNF_MIGRATED ? node_of_flags(p.page_flags) : (__s16)node;
	count(&p, &n);
	return 0;
}

SEC("fentry/mpol_misplaced")
int BPF_PROG(fentry_begin, void *page, void *where, unsigned long address)
{
	return fault_begins(page, where, address);
}

SEC("fentry/task_numa_fault")
int BPF_PROG(fentry_end, int last, int node, int pages, int flags)
{
	return fault_ends(node, pages, flags);
}

SEC("fentry/do_huge_pmd_numa_page")
int BPF_PROG(fentry_huge, struct vm_fault *vmf)
{
	return huge_begins(vmf);
}

SEC("kprobe/mpol_misplaced")
int BPF_KPROBE(kprobe_begin, void *page, void *where, unsigned long address)
{
	return fault_begins(page, where, address);
}

SEC("kprobe/task_numa_fault")
int BPF_KPROBE(kprobe_end, int last, int node, int pages, int flags)
{
	return fault_ends(node, pages, flags);
}

SEC("kprobe/do_huge_pmd_numa_page")
int BPF_KPROBE(kprobe_huge, struct vm_fault *vmf)
{
	return huge_begins(vmf);
}

/* --- Tracepoints: an estimate. --- */

#define FAULT_PRESENT 1ul /* of the error code: the entry was there, so it is no hint fault */

/*
 * A fault on a slab in use is taken for a hint fault: the library populates a slab's memory before
 * it is used.  One elsewhere is remembered in case that the kernel moves a page for it.
 */
static __always_inline int page_fault(__u64 address, __u64 ip, __u64 code)
{
	struct outcome n = {.faults = 1, .pages = 1};
	struct hints_pending p = {};
	struct who w = {};

	if (code & FAULT_PRESENT || !who_is_it(&w))
		return 0;
	p.tid = w.tid;
	p.address = address;
	p.ip = ip;
	p.cell.tgid = w.tgid;
	p.cell.image = w.image;
	p.cell.class = DECODE_CLASS_NONE;
	p.cell.home = -1;
	p.cell.from = (__u16)bpf_get_numa_node_id();
	if (!key_of_heap(&w, address, &p))
		p.cell.kind = RAW_OTHER;
	p.counted =
	    p.cell.kind == RAW_SLAB || p.cell.kind == RAW_UNREAD || p.cell.kind == RAW_DAMAGED;
	bpf_map_update_elem(&pending, &w.tid, &p, BPF_ANY);
	if (!p.counted)
		return 0;
	struct hints_stats *s = stats_of_cpu();
	if (s)
		s->begun++;
	if (p.cell.home == (__s16)p.cell.from)
		n.local = 1;
	else if (p.cell.home >= 0)
		n.remote = 1;
	else
		n.unjoined = 1;
	count(&p, &n);
	return 0;
}

SEC("raw_tp/page_fault_user")
int tp_fault_user(struct bpf_raw_tracepoint_args *ctx)
{
	struct pt_regs___x86 *regs = (void *)ctx->args[1];
	__u64 ip = bpf_core_field_exists(regs->ip) ? BPF_CORE_READ(regs, ip) : 0;

	return page_fault(ctx->args[0], ip, ctx->args[2]);
}

SEC("raw_tp/page_fault_kernel") /* a system call's access to the program's memory */
int tp_fault_kernel(struct bpf_raw_tracepoint_args *ctx)
{
	return page_fault(ctx->args[0], 0, ctx->args[2]);
}

static __always_inline int pages_moved(__u64 moved, __u64 reason)
{
	struct outcome n = {};
	struct hints_pending p;
	struct who w = {};

	if ((__u32)reason != config.reason_numa || !who_is_it(&w))
		return 0;
	struct hints_pending *begun = bpf_map_lookup_elem(&pending, &w.tid);
	if (!begun)
		return 0;
	p = *begun;
	bpf_map_delete_elem(&pending, &w.tid);
	n.migrated = moved;
	n.failed = !n.migrated;
	if (!p.counted) { /* a fault that moved a page is a hint fault, wherever it was */
		n.faults = 1;
		n.pages = n.migrated;
		n.unjoined = 1;
	}
	count(&p, &n);
	return 0;
}

SEC("raw_tp/mm_migrate_pages")
int tp_migrate_7(struct bpf_raw_tracepoint_args *ctx)
{
	return pages_moved(ctx->args[0], ctx->args[6]);
}

SEC("raw_tp/mm_migrate_pages")
int tp_migrate_8(struct bpf_raw_tracepoint_args *ctx)
{
	return pages_moved(ctx->args[0], ctx->args[7]);
}

/* --- In each of these tiers. --- */

static __always_inline int task_moves(void)
{
	struct hints_stats *s = stats_of_cpu();
	struct who w = {};

	if (s && who_is_it(&w))
		s->moves++;
	return 0;
}

SEC("raw_tp/sched_move_numa")
int tp_move(void *ctx)
{
	return task_moves();
}

SEC("raw_tp/sched_swap_numa")
int tp_swap(void *ctx)
{
	return task_moves();
}

/* Another program has the same number from here on: its slab map is not the old one's. */
SEC("raw_tp/sched_process_exec")
int tp_exec(void *ctx)
{
	struct who w = {};

	if (!numbers_of_task(&w))
		return 0;
	struct hints_watched *watch = bpf_map_lookup_elem(&watched, &w.tgid);
	if (watch) {
		__sync_fetch_and_add(&watch->image, 1);
		bpf_map_delete_elem(&targets, &w.tgid);
	}
	return 0;
}

SEC("raw_tp/sched_process_exit")
int tp_exit(void *ctx)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	struct who w = {};

	if (!numbers_of_task(&w))
		return 0;
	bpf_map_delete_elem(&huge, &w.tid);
	struct hints_watched *watch = bpf_map_lookup_elem(&watched, &w.tgid);
	if (watch && BPF_CORE_READ(task, signal, live.counter) == 0) {
		watch->exited = 1;
		bpf_map_delete_elem(&targets, &w.tgid);
	}
	return 0;
}
