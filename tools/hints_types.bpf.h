/* SPDX-License-Identifier: (MIT OR GPL-2.0) */
/* What the eBPF programs know of the kernel's types, and what differs in them between kernels. */
#ifndef NUMASLAB_HINTS_TYPES_BPF_H
#define NUMASLAB_HINTS_TYPES_BPF_H

#include <linux/bpf.h>
#include <linux/ptrace.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "tools/hints_bpf.h"

/* --- The little of the kernel's types that is used, found by name at load time. --- */

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct mm_struct;
struct file;
struct vm_area_struct {
	unsigned long vm_start, vm_end, vm_flags;
	struct mm_struct *vm_mm;
	struct file *vm_file;
};
struct vm_fault {
	struct vm_area_struct *vma;
	unsigned long address, real_address;
};
struct signal_struct {
	struct {
		int counter;
	} live;
};
struct task_struct {
	struct mm_struct *mm;
	struct signal_struct *signal;
};
struct page {
	unsigned long flags;
};
struct page___memdesc { /* since 6.18 */
	struct {
		unsigned long f;
	} flags;
};
struct pt_regs___x86 {
	unsigned long sp, ip;
};
struct pt_regs___arm {
	unsigned long sp, pc;
};
#pragma clang attribute pop

#define VM_GROWSDOWN 0x100ul

/* Flags of task_numa_fault, the same in 5.15 to 7.1. */
#define TNF_MIGRATED	 0x01
#define TNF_FAULT_LOCAL	 0x08
#define TNF_MIGRATE_FAIL 0x10

/* --- The present task, the memory area of a fault. --- */

static __always_inline void stack_and_ip(uint64_t *sp, uint64_t *ip)
{
	struct pt_regs *regs = (void *)bpf_task_pt_regs(bpf_get_current_task_btf());
	struct pt_regs___x86 *x86 = (void *)regs;
	struct pt_regs___arm *arm = (void *)regs;

	if (bpf_core_field_exists(x86->ip)) {
		*sp = BPF_CORE_READ(x86, sp);
		*ip = BPF_CORE_READ(x86, ip);
	} else if (bpf_core_field_exists(arm->pc)) {
		*sp = BPF_CORE_READ(arm, sp);
		*ip = BPF_CORE_READ(arm, pc);
	}
}

static __always_inline __u16 kind_of_area(struct vm_area_struct *vma, __u64 sp)
{
	if (BPF_CORE_READ(vma, vm_flags) & VM_GROWSDOWN)
		return RAW_STACK;
	if (BPF_CORE_READ(vma, vm_file))
		return RAW_FILE;
	return sp >= BPF_CORE_READ(vma, vm_start) && sp < BPF_CORE_READ(vma, vm_end) ? RAW_STACK
										     : RAW_OTHER;
}

/* --- On which node a page lies. --- */

/*
 * Its node's number is the uppermost bits of page->flags (SPARSEMEM_VMEMMAP), how many of them is
 * a matter of the kernel's configuration.  Pages that stay where they are tell: each width whose
 * number contradicts what task_numa_fault says is out.  Bit w: w bits are still possible.
 */
__u32 node_widths = 0x7fe;

static __always_inline __u64 flags_of_page(void *page)
{
	struct page *plain = page;
	struct page___memdesc *memdesc = page;

	if (bpf_core_field_exists(memdesc->flags.f))
		return BPF_CORE_READ(memdesc, flags.f);
	return bpf_core_field_exists(plain->flags) ? BPF_CORE_READ(plain, flags) : 0;
}

static __always_inline void learn_width(__u64 flags, __u32 node)
{
	__u32 widths = node_widths;

	for (int w = 1; flags && w <= 10; w++)
		if (flags >> (64 - w) != node)
			widths &= ~(1u << w);
	if (widths != node_widths)
		node_widths = widths; /* one that gets lost is learnt again */
}

/* -1: widths that are still possible give different answers. */
static __always_inline __s16 node_of_flags(__u64 flags)
{
	__s16 node = -1;

	for (int w = 1; flags && w <= 10; w++) {
		if (!(node_widths & 1u << w))
			continue;
		__s16 n = (__s16)(flags >> (64 - w));
		if (node >= 0 && node != n)
			return -1;
		node = n;
	}
	return node;
}

#endif
