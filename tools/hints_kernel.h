/* SPDX-License-Identifier: MIT */
/*
 * What differs between kernels, in one place.  Found out from the kernel's type information (BTF),
 * never from its version.
 *
 *	mpol_misplaced(page, vma, addr)			5.15 - 6.8
 *	mpol_misplaced(folio, vmf, addr)		6.9 -
 *	    The third argument is the address in all of them.  With vmf there is the exact address
 *	    of a fault on a huge page too; before, do_huge_pmd_numa_page(vmf) is looked at for it.
 *	vm_fault.real_address				since 5.18; before, vm_fault.address is
 *exact page->flags					a number; since 6.18 a struct of one
 *	mm_migrate_pages(..., mode, reason)		7 arguments, since 6.7 8: the reason is last
 *	MR_NUMA_MISPLACED				moves when a reason is added before it
 *	task_numa_fault(last, node, pages, flags)	the same in all; not called, since 6.7, when
 *	    the page table changed while the page was being moved: that fault has no end
 */
#ifndef NUMASLAB_HINTS_KERNEL_H
#define NUMASLAB_HINTS_KERNEL_H

#include <stdbool.h>

#include "tools/hints_bpf.h"

struct hints_kernel {
	bool has_btf;
	bool has_faults;      /* mpol_misplaced and task_numa_fault, with the arguments above */
	bool has_huge;	      /* do_huge_pmd_numa_page */
	int migrate_args;     /* of the tracepoint mm_migrate_pages, 7 or 8; 0: of another form */
	bool has_page_faults; /* tracepoints of page faults with addresses (x86) */
	struct hints_config config;
};

/* Nothing of it may be there; that is no error. */
void hints_kernel_read(struct hints_kernel *k);

#endif
