/* SPDX-License-Identifier: MIT */
/*
 * Asks processes for observation: the control file beside each one's telemetry file, which the
 * process maps and reads in its slow paths.  A lease bounds what can go wrong: if we die, it ends
 * by itself.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "telemetry/ring.h"
#include "tools/cmd.h"
#include "tools/hints_internal.h"
#include "tools/hints_table.h"
#include "tools/reader_internal.h"

#define LEASE_MS    20000u /* renewed long before its end */
#define RENEW_MS    5000u
#define SILENT_MS   5000u
#define EMPTY_MS    2000u   /* for which a sample without memory is kept */
#define PASSES	    2u	    /* of the kernel's scan, over each sample */
#define SEED_MAX_MS 120000u /* a sample that the kernel does not scan is given up */

struct asked {
	int pid;
	unsigned image;
	struct ring_control *control; /* NULL: not open yet */
	uint32_t seed, seeds;
	uint64_t request_ms, renewed_ms, acknowledged_ms; /* of this seed; 0: not yet */
	bool acknowledged;				  /* one was */
	long long first_pass;				  /* of the scan when it was acknowledged */
	uint64_t system_ticks;				  /* of the process, when we began */
};

struct observer {
	size_t count, room;
	struct asked *asked;
	struct vm_counts before;
};

/* --- The control file. --- */

static struct ring_control *control_map(const char *path, int *error)
{
	char name[4096];
	struct stat st;
	void *at = MAP_FAILED;

	snprintf(name, sizeof name, "%s.control", path);
	int fd = open(name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	*error = errno;
	if (fd < 0)
		return NULL;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
	    st.st_size >= (off_t)sizeof(struct ring_control))
		at = mmap(NULL, sizeof(struct ring_control), PROT_READ | PROT_WRITE, MAP_SHARED, fd,
			  0);
	else
		*error = EINVAL;
	close(fd);
	return at == MAP_FAILED ? NULL : at;
}

struct wish {
	struct ring_control *control;
	uint64_t request, lease_ms;
	bool renewal; /* the lease alone */
};

/* Lease 0, the request, the lease: a reader that sees the lease sees the request. */
static void wish_store(struct reader *unused, void *data)
{
	const struct wish *w = data;

	(void)unused;
	if (!w->renewal) {
		ring_store(&w->control->lease_ms, 0);
		cmm_smp_wmb();
		ring_store(&w->control->request, w->request);
		cmm_smp_wmb();
	}
	ring_store(&w->control->lease_ms, w->lease_ms);
}

/* Its user may cut the file at any time: then nothing is asked. */
static void control_set(struct ring_control *c, uint64_t request, uint64_t lease_ms, bool renewal)
{
	struct wish w = {c, request, lease_ms, renewal};

	reader_guarded(wish_store, NULL, &w);
}

/* --- What /proc tells of a process. --- */

/* How often the kernel's scan has been over all of its memory; -1: not known. */
static long long scan_passes(int pid)
{
	char path[64], text[16384], field[64];
	const char *colon;

	snprintf(path, sizeof path, "/proc/%d/sched", pid);
	if (!read_text("", path, text, sizeof text) ||
	    !text_field(text, "mm->numa_scan_seq", field, sizeof field) ||
	    !(colon = strchr(field, ':')))
		return -1;
	return atoll(colon + 1);
}

/* Field 15 of its stat, behind the name, which may have any characters. */
static uint64_t system_ticks(int pid)
{
	char path[64], text[1024];
	const char *at;
	unsigned long long ticks = 0;

	snprintf(path, sizeof path, "/proc/%d/stat", pid);
	if (!read_text("", path, text, sizeof text) || !(at = strrchr(text, ')')))
		return 0;
	sscanf(at + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %llu", &ticks);
	return ticks;
}

/* --- Asking. --- */

static uint64_t request_of(const struct hints_session *s, const struct asked *a)
{
	return (uint64_t)s->options.observe << 32 | a->seed;
}

static void ask(struct hints_session *s, struct asked *a, uint64_t now)
{
	control_set(a->control, request_of(s, a), now + LEASE_MS, false);
	a->request_ms = a->renewed_ms = now;
	a->acknowledged_ms = 0;
	a->seeds++;
}

static int refused(int pid, int error, char *why, size_t size)
{
	if (error == ENOENT)
		snprintf(why, size,
			 "process %d has no control file: its library is older than this "
			 "numaslab, or there was no room for it",
			 pid);
	else
		snprintf(why, size, "the control file of process %d: %s; run as its user, or root",
			 pid, strerror(error));
	return error == EACCES || error == EPERM ? STATUS_DENIED : STATUS_UNABLE;
}

/* Takes up a process that publishes; 0, or an exit status and why. */
static int take_up(struct hints_session *s, const struct followed *item, char *why, size_t size)
{
	struct observer *o = s->observer;
	struct asked a = {.pid = item->pid, .image = item->image, .first_pass = -1};
	int error;

	a.control = control_map(item->path, &error);
	if (!a.control)
		return refused(item->pid, error, why, size);
	if (!array_fit((void **)&o->asked, &o->room, o->count, sizeof *o->asked)) {
		munmap(a.control, sizeof *a.control);
		snprintf(why, size, "out of memory");
		return STATUS_UNABLE;
	}
	/* Not the seed of the session before: that sample has been seen. */
	a.seed = (uint32_t)reader_now_ms();
	a.system_ticks = system_ticks(item->pid);
	ask(s, &a, reader_now_ms());
	o->asked[o->count++] = a;
	return 0;
}

static struct asked *asked_of(const struct observer *o, int pid, unsigned image)
{
	for (size_t i = 0; i < o->count; i++)
		if (o->asked[i].pid == pid && o->asked[i].image == image)
			return &o->asked[i];
	return NULL;
}

int observer_start(struct hints_session *s, char *why, size_t size)
{
	s->observer = calloc(1, sizeof *s->observer);
	if (!s->observer) {
		snprintf(why, size, "out of memory");
		return STATUS_UNABLE;
	}
	vm_counts_read(&s->observer->before);
	for (size_t i = 0; i < s->follow.count; i++) {
		const struct followed *item = &s->follow.item[i];
		int status;

		if (!item->reader) {
			snprintf(why, size,
				 "process %d does not publish, so it cannot be asked: it is not "
				 "under libnumaslab.so, is younger than a second, or has "
				 "NUMASLAB_TELEMETRY=0",
				 item->pid);
			return s->follow.denied ? STATUS_DENIED : STATUS_NOTHING;
		}
		status = take_up(s, item, why, size);
		if (status)
			return status;
	}
	return 0;
}

/* Scanned often enough; or there is nothing in it; or the kernel does not come by. */
static bool sample_is_done(const struct asked *a, const struct reader_observation *seen,
			   uint64_t now)
{
	uint64_t age = now - a->acknowledged_ms;

	if (!a->acknowledged_ms)
		return false;
	if (age > SEED_MAX_MS || (age > EMPTY_MS && seen->observed_bytes == 0))
		return true;
	/* The pass that was under way when the sample was laid open does not count. */
	return a->first_pass >= 0 && scan_passes(a->pid) >= a->first_pass + (long long)PASSES + 1;
}

static void tend_one(struct hints_session *s, struct asked *a, uint64_t now)
{
	const struct followed *item = follow_find(&s->follow, a->pid, a->image);
	struct reader_observation seen;

	if (!a->control || !item || item->state != HINTS_LIVE)
		return;
	reader_observed(item->reader, &seen);
	if (!a->acknowledged_ms && seen.request == request_of(s, a)) {
		a->acknowledged_ms = now;
		a->acknowledged = true;
		a->first_pass = scan_passes(a->pid);
	}
	if (s->options.observe > 1 && sample_is_done(a, &seen, now)) {
		a->seed++;
		ask(s, a, now);
	} else if (now - a->renewed_ms >= RENEW_MS) {
		control_set(a->control, 0, now + LEASE_MS, true);
		a->renewed_ms = now;
	}
}

void observer_tend(struct hints_session *s)
{
	struct observer *o = s->observer;
	char why[HINTS_WHY_SIZE];

	if (!o || s->stopped)
		return;
	for (size_t i = 0; i < s->follow.count; i++) {
		const struct followed *item = &s->follow.item[i];

		if (item->reader && item->state == HINTS_LIVE &&
		    !asked_of(o, item->pid, item->image))
			take_up(s, item, why, sizeof why);
	}
	for (size_t i = 0; i < o->count; i++)
		tend_one(s, &o->asked[i], reader_now_ms());
}

void observer_describe(struct hints_session *s)
{
	struct observer *o = s->observer;
	uint64_t tick_ms = 1000 / (uint64_t)sysconf(_SC_CLK_TCK), now = reader_now_ms();
	struct vm_counts v;

	if (!o)
		return;
	vm_counts_read(&v);
	for (size_t i = 0; i < o->count; i++) {
		const struct asked *a = &o->asked[i];
		struct hints_process *p = hints_process_get(&s->model, a->pid, a->image);
		uint64_t ticks = system_ticks(a->pid);
		long long pass = scan_passes(a->pid);

		if (!p)
			continue;
		struct hints_observation *to = &p->observation;
		to->asked = true;
		to->sample = s->options.observe;
		to->seeds = a->seeds;
		to->passes = a->acknowledged_ms && pass > a->first_pass && a->first_pass >= 0
				 ? (uint32_t)(pass - a->first_pass - 1)
				 : 0;
		to->acknowledged = a->acknowledged;
		to->silent = !a->acknowledged && now - a->request_ms > SILENT_MS;
		to->pte_updates = v.row[VM_PTE_UPDATES] - o->before.row[VM_PTE_UPDATES];
		to->hint_faults = v.row[VM_FAULTS] - o->before.row[VM_FAULTS];
		if (ticks > a->system_ticks)
			to->system_ms = (ticks - a->system_ticks) * tick_ms;
	}
}

void observer_stop(struct hints_session *s)
{
	for (size_t i = 0; s->observer && i < s->observer->count; i++)
		if (s->observer->asked[i].control)
			control_set(s->observer->asked[i].control, 0, 0, false);
}

void observer_close(struct hints_session *s)
{
	struct observer *o = s->observer;

	if (!o)
		return;
	observer_stop(s);
	for (size_t i = 0; i < o->count; i++)
		if (o->asked[i].control)
			munmap(o->asked[i].control, sizeof *o->asked[i].control);
	free(o->asked);
	free(o);
	s->observer = NULL;
}
