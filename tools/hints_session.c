/* SPDX-License-Identifier: MIT */
/* Picks the tier, runs the collector, keeps the model up to date. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/cmd.h"
#include "tools/hints_internal.h"

/* Faults that were under way when the probes came or went need so long to be over. */
#define GRACE_MS 20

static const struct {
	const char *name, *unknown;
	bool exact;
	const struct collector *collector; /* NULL: not built in */
} tiers[HINTS_TIERS] = {
#ifdef HAVE_HINTS_BPF
#define EBPF &collector_ebpf
#else
#define EBPF NULL
#endif
    [HINTS_FENTRY] = {"fentry", "", true, EBPF},
    [HINTS_KPROBE] = {"kprobe", "", true, EBPF},
    [HINTS_TRACEPOINT] =
	{"tracepoint",
	 "an estimate: page faults on live slabs are taken for hint faults, first touches among "
	 "them; local means that the accessing node is the slab's home; hint faults elsewhere are "
	 "seen only where the kernel moved a page",
	 false, EBPF},
    [HINTS_PERF] =
	{"perf",
	 "an estimate: page faults on live slabs are taken for hint faults, first touches among "
	 "them; local means that the accessing node is the slab's home; nothing is known of hint "
	 "faults elsewhere, nor of migrations by process",
	 false, &collector_perf},
    [HINTS_PROC] = {"proc",
		    "the machine's counters and where pages lie are all that is known: not which "
		    "process, node, class or slab a fault belongs to",
		    false, &collector_proc},
};

const char *hints_tier_name(int tier)
{
	return tier >= 0 && tier < HINTS_TIERS ? tiers[tier].name : NULL;
}

/* --- The machine. --- */

static const char *const vm_names[VM_ROWS] = {
    [VM_FAULTS] = "numa_hint_faults",
    [VM_LOCAL] = "numa_hint_faults_local",
    [VM_MIGRATED] = "numa_pages_migrated",
    [VM_PTE_UPDATES] = "numa_pte_updates",
};

void vm_counts_read(struct vm_counts *v)
{
	char text[16384], field[64];

	memset(v, 0, sizeof *v);
	if (!read_text("", "/proc/vmstat", text, sizeof text))
		return;
	for (int i = 0; i < VM_ROWS; i++) {
		char key[64];

		snprintf(key, sizeof key, "%s ", vm_names[i]);
		if (!text_field(text, key, field, sizeof field))
			return;
		v->row[i] = strtoull(field, NULL, 10);
	}
	v->known = true;
}

bool has_capability(unsigned capability)
{
	char status[8192], field[64];

	return read_text("", "/proc/self/status", status, sizeof status) &&
	       text_field(status, "CapEff:", field, sizeof field) &&
	       strtoull(field, NULL, 16) >> capability & 1;
}

static bool read_machine(struct hints_session *s)
{
	struct hints *h = &s->model;

	if (!machine_read_sysfs(&s->machine, ""))
		return false;
	h->node = calloc(s->machine.count + 1, sizeof *h->node);
	if (!h->node)
		return false;
	for (size_t i = 0; i < s->machine.count; i++)
		h->node[i] = s->machine.nodes[i].id;
	h->node_count = s->machine.count;
	h->page_size = (uint32_t)sysconf(_SC_PAGESIZE);
	h->balancing = (int)read_number("", "/proc/sys/kernel/numa_balancing");
	return true;
}

/* --- Beginning. --- */

static int take_pids(struct hints_session *s, char *why, size_t size)
{
	for (size_t i = 0; i < s->options.pid_count; i++) {
		int pid = s->options.pids[i];

		if (kill(pid, 0) < 0 && errno == ESRCH) {
			snprintf(why, size, "no process %d", pid);
			return STATUS_NOTHING;
		}
		if (!follow_last(&s->follow, pid) && !follow_add(&s->follow, pid, 1)) {
			snprintf(why, size, "out of memory");
			return STATUS_UNABLE;
		}
	}
	s->follow.all = s->options.pid_count == 0;
	s->model.all = s->follow.all;
	if (!follow_look(&s->follow, 0)) {
		snprintf(why, size, "out of memory");
		return STATUS_UNABLE;
	}
	if (s->follow.mismatch && !s->follow.all) {
		snprintf(why, size,
			 "the process publishes in a format version that this numaslab does not "
			 "understand: use the numaslab that came with its library");
		return STATUS_FORMAT;
	}
	return 0;
}

static int start_tier(struct hints_session *s, int tier, char *why, size_t size)
{
	s->collector = tiers[tier].collector;
	if (!s->collector) {
		snprintf(
		    why, size,
		    "not built in: install clang, bpftool and libbpf-dev, and run 'make' again; "
		    "'--tier perf' and '--tier proc' do without");
		return STATUS_UNABLE;
	}
	return s->collector->start(s, (enum hints_tier)tier, why, size);
}

/* What is not permitted ends the search: the next tier would quietly be a worse answer. */
static int choose_tier(struct hints_session *s, char *why, size_t size)
{
	int first = s->options.tier < 0 ? 0 : s->options.tier, tier = first, status;

	for (;; tier++) {
		vm_counts_read(&s->before_start);
		status = start_tier(s, tier, why, size);
		if (status == 0)
			break;
		if (s->options.tier >= 0 || status == STATUS_DENIED || tier + 1 == HINTS_TIERS ||
		    !s->collector)
			return status;
		printable(s->model.tier_why[tier], sizeof s->model.tier_why[tier], why);
	}
	s->model.tier = (enum hints_tier)tier;
	s->model.tier_name = tiers[tier].name;
	s->model.tier_unknown = tiers[tier].unknown;
	s->model.exact = tiers[tier].exact;
	poll(NULL, 0, GRACE_MS);
	vm_counts_read(&s->after_start);
	s->model.start_ms = s->model.now_ms = reader_now_ms();
	return 0;
}

int hints_start(struct hints_session **out, const struct hints_options *o, char *why, size_t size)
{
	struct hints_session *s = calloc(1, sizeof *s);
	int status;

	*out = NULL;
	*why = 0;
	if (!s) {
		snprintf(why, size, "out of memory");
		return STATUS_UNABLE;
	}
	s->options = *o;
	s->pids = calloc(o->pid_count + 1, sizeof *s->pids);
	if (!s->pids || !read_machine(s)) {
		snprintf(why, size, "out of memory");
		hints_close(s);
		return STATUS_UNABLE;
	}
	if (o->pid_count)
		memcpy(s->pids, o->pids, o->pid_count * sizeof *s->pids);
	s->options.pids = s->pids;
	status = take_pids(s, why, size);
	if (!status)
		status = choose_tier(s, why, size);
	if (!status && o->observe)
		status = observer_start(s, why, size);
	if (status) {
		hints_close(s);
		return status;
	}
	*out = s;
	return 0;
}

/* --- Going on. --- */

static struct hints_kernel_count bounds(const struct hints_session *s, enum vm_row row,
					const struct vm_counts *low, const struct vm_counts *high)
{
	struct hints_kernel_count c = {0};

	c.known = s->before_start.known && s->after_start.known && low->known && high->known;
	if (!c.known)
		return c;
	c.low = low->row[row] - s->after_start.row[row];
	c.high = high->row[row] - s->before_start.row[row];
	if (low->row[row] < s->after_start.row[row])
		c.low = 0;
	return c;
}

static const struct hints *update(struct hints_session *s, const struct vm_counts *low)
{
	struct hints *h = &s->model;
	struct vm_counts high;

	hints_clear(h);
	if (!s->collector->read(s))
		return NULL;
	vm_counts_read(&high);
	h->faults = bounds(s, VM_FAULTS, low, &high);
	h->local = bounds(s, VM_LOCAL, low, &high);
	h->migrated = bounds(s, VM_MIGRATED, low, &high);
	h->balancing = (int)read_number("", "/proc/sys/kernel/numa_balancing");
	if (!follow_describe(&s->follow, h))
		return NULL;
	observer_describe(s);
	return hints_settle(h, reader_now_ms()) ? h : NULL;
}

const struct hints *hints_poll(struct hints_session *s, int timeout_ms)
{
	struct vm_counts low;

	if (s->stopped)
		return &s->model;
	s->collector->wait(s, timeout_ms);
	if (!s->collector->follow(s))
		return NULL;
	observer_tend(s);
	vm_counts_read(&low);
	return update(s, &low);
}

bool hints_is_over(const struct hints_session *s)
{
	return follow_is_over(&s->follow);
}

const struct hints *hints_stop(struct hints_session *s)
{
	struct vm_counts low;

	if (s->stopped)
		return &s->model;
	observer_stop(s);
	s->follow.ended = true;
	vm_counts_read(&low);
	poll(NULL, 0, GRACE_MS);
	s->collector->stop(s);
	s->stopped = true;
	if (!s->collector->follow(s))
		return NULL;
	return update(s, &low);
}

void hints_close(struct hints_session *s)
{
	if (!s)
		return;
	observer_close(s);
	if (s->state)
		s->collector->close(s);
	follow_free(&s->follow);
	if (s->machine.nodes)
		machine_free(&s->machine);
	hints_free(&s->model);
	free(s->pids);
	free(s);
}
