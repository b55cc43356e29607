/* SPDX-License-Identifier: MIT */
/* Inside a session: what hints_session.c and the collectors share. */
#ifndef NUMASLAB_HINTS_INTERNAL_H
#define NUMASLAB_HINTS_INTERNAL_H

#include "tools/hints_follow.h"
#include "tools/hints_session.h"
#include "tools/machine.h"

#define HINTS_WHY_SIZE 512

/* One way to see faults. */
struct collector {
	/* From its return on faults are counted.  0, or an exit status and why. */
	int (*start)(struct hints_session *s, enum hints_tier tier, char *why, size_t size);
	/* Waits for whatever it waits for, at most so long; a signal ends it. */
	void (*wait)(struct hints_session *s, int timeout_ms);
	/* Learns who ended, tells the kernel of those that are new. */
	bool (*follow)(struct hints_session *s);
	/* Fills the model, which was cleared. */
	bool (*read)(struct hints_session *s);
	/* Counts nothing more; what was counted can still be read. */
	void (*stop)(struct hints_session *s);
	void (*close)(struct hints_session *s);
};

enum vm_row { VM_FAULTS, VM_LOCAL, VM_MIGRATED, VM_PTE_UPDATES, VM_ROWS };

struct vm_counts {
	bool known;
	uint64_t row[VM_ROWS];
};

struct observer;

struct hints_session {
	struct hints model;
	struct hints_options options;
	int *pids;
	struct machine machine;
	struct follow follow;
	const struct collector *collector;
	void *state; /* the collector's */
	struct observer *observer;
	struct vm_counts before_start, after_start;
	bool stopped;
};

extern const struct collector collector_ebpf, collector_perf, collector_proc;

void vm_counts_read(struct vm_counts *v);

/* Whether this process has a capability in its effective set. */
bool has_capability(unsigned capability);

/* --- The observer (hints_observe.c). --- */

/* Asks each process of -p; 0, or an exit status and why. */
int observer_start(struct hints_session *s, char *why, size_t size);
/* Renews leases, takes the next sample when its turn has come, looks for acknowledgements. */
void observer_tend(struct hints_session *s);
/* Puts what it knows into the model. */
void observer_describe(struct hints_session *s);
/* Ends observation at once. */
void observer_stop(struct hints_session *s);
void observer_close(struct hints_session *s);

#endif
