/* SPDX-License-Identifier: MIT */
/*
 * The tier without eBPF: perf's software page faults with addresses, looked up in the files of the
 * processes.  With privileges one event to each CPU, for all processes; without, one to each thread
 * of one's own.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "tools/cmd.h"
#include "tools/hints_late.h"

#define CPU_PAGES    256u /* of a ring; less where so much may not be locked */
#define THREAD_PAGES 64u
#define EVENTS_MAX   4096u
#define SLICE_MS     50
#define CPUS_MAX     4096
#define FORMAT_LOST  (1u << 4) /* PERF_FORMAT_LOST, which older headers have not */

struct perf_ring {
	int fd, tid; /* tid -1: of a CPU */
	struct perf_event_mmap_page *page;
	size_t size;   /* of the data */
	uint64_t lost; /* as it said last */
};

struct perf {
	bool by_thread;
	bool keeps_losses; /* an event can be asked what it lost: the kernel is not before 6.0 */
	struct perf_ring *ring;
	struct pollfd *poll;
	size_t count, room, poll_room;
	struct raw_table cells, slabs, threads;
	int16_t node[CPUS_MAX];
	uint64_t lost;	    /* records that a ring had no room for */
	uint64_t unwatched; /* threads that no event was to be had for */
	bool no_memory;
};

/* --- Events. --- */

static int perf_open(struct perf *p, int tid, int cpu)
{
	struct perf_event_attr attr = {
	    .type = PERF_TYPE_SOFTWARE,
	    .size = sizeof attr,
	    .config = PERF_COUNT_SW_PAGE_FAULTS,
	    .sample_period = 1,
	    .sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR |
			   PERF_SAMPLE_CPU,
	    .exclude_kernel = p->by_thread,
	    .exclude_hv = 1,
	    .comm = 1,
	    .comm_exec = 1,
	    .watermark = 1,
	    .use_clockid = 1,
	    .clockid = CLOCK_MONOTONIC,
	    .read_format = p->keeps_losses ? FORMAT_LOST : 0,
	};

	attr.wakeup_watermark = 4096;
	int fd = (int)syscall(SYS_perf_event_open, &attr, tid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd >= 0 || errno != EINVAL || !p->keeps_losses || p->count)
		return fd;
	p->keeps_losses = false;
	attr.read_format = 0;
	return (int)syscall(SYS_perf_event_open, &attr, tid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

/* A loss is recorded with what comes next and finds room: what was lost last is asked for. */
static void count_lost(struct perf *p, struct perf_ring *r)
{
	uint64_t word[2]; /* how many came, and were lost */

	if (!p->keeps_losses || read(r->fd, word, sizeof word) != (ssize_t)sizeof word)
		return;
	p->lost += word[1] - r->lost;
	r->lost = word[1];
}

/* The largest ring that may be locked, from so many pages down. */
static void *ring_map(int fd, size_t pages, size_t *size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *at = MAP_FAILED;

	for (; pages > 0 && at == MAP_FAILED; pages /= 2) {
		*size = pages * page;
		at = mmap(NULL, page + *size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	}
	return at;
}

/* 0, or errno. */
static int ring_add(struct perf *p, int tid, int cpu)
{
	struct perf_ring *r;

	if (p->count >= EVENTS_MAX)
		return EMFILE;
	if (!array_fit((void **)&p->ring, &p->room, p->count, sizeof *p->ring) ||
	    !array_fit((void **)&p->poll, &p->poll_room, p->count, sizeof *p->poll))
		return ENOMEM;
	r = &p->ring[p->count];
	r->fd = perf_open(p, tid, cpu);
	if (r->fd < 0)
		return errno;
	r->tid = tid;
	r->lost = 0;
	r->page = ring_map(r->fd, p->by_thread ? THREAD_PAGES : CPU_PAGES, &r->size);
	if (r->page == MAP_FAILED) {
		int error = errno;

		close(r->fd);
		return error;
	}
	p->poll[p->count++] = (struct pollfd){.fd = r->fd, .events = POLLIN};
	return 0;
}

static void ring_drop(struct perf *p, size_t i)
{
	count_lost(p, &p->ring[i]);
	munmap(p->ring[i].page, (size_t)sysconf(_SC_PAGESIZE) + p->ring[i].size);
	close(p->ring[i].fd);
	p->ring[i] = p->ring[--p->count];
	p->poll[i] = p->poll[p->count];
}

static bool has_thread(const struct perf *p, int tid)
{
	for (size_t i = 0; i < p->count; i++)
		if (p->ring[i].tid == tid)
			return true;
	return false;
}

/* Threads that are new; 0, or errno of the first. */
static int add_threads(struct perf *p, int pid)
{
	char path[64];
	struct dirent *e;
	int error = 0;

	snprintf(path, sizeof path, "/proc/%d/task", pid);
	DIR *dir = opendir(path);
	p->unwatched = 0;
	while (dir && (e = readdir(dir))) {
		int tid = atoi(e->d_name);
		int got = tid > 0 && !has_thread(p, tid) ? ring_add(p, tid, -1) : 0;

		p->unwatched += got != 0 && got != ESRCH;
		if (got && got != ESRCH && !error)
			error = got;
	}
	if (dir)
		closedir(dir);
	return error;
}

static int add_cpus(struct perf *p)
{
	int error = ENODEV;

	for (int cpu = 0; cpu < CPUS_MAX && (p->count || error == ENODEV); cpu++) {
		if (p->node[cpu] < 0)
			continue;
		error = ring_add(p, -1, cpu);
		if (error && error != ENODEV)
			return error;
	}
	return p->count ? 0 : error;
}

/* --- Records. --- */

struct sample_record {
	struct perf_event_header header;
	uint64_t ip;
	uint32_t pid, tid;
	uint64_t time, address;
	uint32_t cpu, reserved;
};

static bool add(struct raw_table *t, const void *key, const struct hints_raw *n)
{
	struct hints_raw *row = raw_row(t, key);

	if (row)
		raw_add(row, n);
	return row != NULL;
}

/* A fault on a slab in use, by one of those that we follow. */
static void see_fault(struct hints_session *s, const struct sample_record *r)
{
	struct perf *p = s->state;
	const struct followed *item = follow_last(&s->follow, (int)r->pid);
	struct hints_raw n = {.faults = 1, .pages = 1};

	if (!item || item->state != HINTS_LIVE || !item->geometry.span ||
	    r->address - item->geometry.base >= item->geometry.span)
		return;
	struct hints_slab_key slab = {
	    .tgid = r->pid,
	    .image = item->image,
	    .unit = (uint32_t)((r->address - item->geometry.base) >> DECODE_UNIT_SHIFT),
	    .class = DECODE_CLASS_NONE,
	    .home = HINTS_NODE_UNKNOWN,
	    .from = r->cpu < CPUS_MAX && p->node[r->cpu] > 0 ? (uint16_t)p->node[r->cpu] : 0,
	    .kind = RAW_UNREAD};
	late_look_up(&s->follow, &slab);
	if (slab.kind != RAW_SLAB && slab.kind != RAW_DAMAGED)
		return;
	if (slab.kind == RAW_DAMAGED)
		n.unjoined = 1;
	else if (slab.home == slab.from)
		n.local = 1;
	else
		n.remote = 1;
	struct hints_cell_key cell = {slab.tgid, slab.image, slab.class,
				      slab.from, slab.home,  (uint16_t)slab.kind};
	struct hints_thread_key thread = {slab.tgid,  slab.image, r->tid,
					  slab.class, slab.from,  RAW_SLAB};
	p->no_memory |= !add(&p->cells, &cell, &n) || !add(&p->slabs, &slab, &n) ||
			!add(&p->threads, &thread, &n);
}

static void see_exec(struct hints_session *s, int pid)
{
	struct followed *item = follow_last(&s->follow, pid);

	if (item && item->state == HINTS_LIVE)
		follow_replaced(&s->follow, item, item->image + 1);
}

static void see_record(struct hints_session *s, const struct perf_event_header *h)
{
	struct perf *p = s->state;
	const uint64_t *word = (const uint64_t *)(h + 1);

	if (h->type == PERF_RECORD_SAMPLE && h->size >= sizeof(struct sample_record))
		see_fault(s, (const struct sample_record *)h);
	else if (h->type == PERF_RECORD_LOST && h->size >= sizeof *h + 16 && !p->keeps_losses)
		p->lost += word[1];
	else if (h->type == PERF_RECORD_COMM && h->misc & PERF_RECORD_MISC_COMM_EXEC)
		see_exec(s, (int)(uint32_t)word[0]);
}

/* Copies a record out, since it may go around the ring's end. */
static void drain(struct hints_session *s, struct perf_ring *r)
{
	const char *data = (const char *)r->page + sysconf(_SC_PAGESIZE);
	uint64_t head = __atomic_load_n(&r->page->data_head, __ATOMIC_ACQUIRE);
	uint64_t tail = r->page->data_tail;
	_Alignas(8) char record[512];

	while (tail < head) {
		struct perf_event_header h;
		size_t at = tail % r->size;

		memcpy(&h, data + at,
		       sizeof h); /* records are aligned to 8, as the header is long */
		if (h.size < sizeof h)
			break;
		size_t size = h.size < sizeof record ? h.size : sizeof record;
		size_t first = size < r->size - at ? size : r->size - at;
		memcpy(record, data + at, first);
		memcpy(record + first, data, size - first);
		see_record(s, (const struct perf_event_header *)record);
		tail += h.size;
	}
	__atomic_store_n(&r->page->data_tail, head, __ATOMIC_RELEASE);
}

static void drain_all(struct hints_session *s)
{
	struct perf *p = s->state;

	for (size_t i = 0; i < p->count; i++)
		drain(s, &p->ring[i]);
}

/* --- The session's side. --- */

struct cpu_job {
	struct perf *p;
	int node;
};

static void note_cpu(int cpu, void *data)
{
	struct cpu_job *job = data;

	job->p->node[cpu] = (int16_t)job->node;
}

/* From the kernel's own lists: those of the machine may have been cut. */
static void read_cpus(struct hints_session *s, struct perf *p)
{
	char path[96], list[4096];

	memset(p->node, -1, sizeof p->node);
	for (size_t i = 0; i < s->machine.count; i++) {
		struct cpu_job job = {p, s->machine.nodes[i].id};

		snprintf(path, sizeof path, "/sys/devices/system/node/node%d/cpulist", job.node);
		if (read_text("", path, list, sizeof list) && *list)
			list_each(list, CPUS_MAX, note_cpu, &job);
	}
	if (p->node[0] < 0 && s->machine.count <= 1) /* no NUMA in the kernel */
		for (int cpu = 0; cpu < sysconf(_SC_NPROCESSORS_CONF); cpu++)
			p->node[cpu] = 0;
}

static void perf_close(struct hints_session *s)
{
	struct perf *p = s->state;

	while (p->count)
		ring_drop(p, p->count - 1);
	free(p->ring);
	free(p->poll);
	raw_free(&p->cells);
	raw_free(&p->slabs);
	raw_free(&p->threads);
	free(p);
	s->state = NULL;
}

/* 0, or errno. */
static int open_events(struct hints_session *s, struct perf *p)
{
	int error = add_cpus(p);

	if ((error != EACCES && error != EPERM) || s->follow.all)
		return error;
	p->by_thread = true;
	error = 0;
	for (size_t i = 0; i < s->follow.count && !error; i++)
		error = add_threads(p, s->follow.item[i].pid);
	return p->count ? 0 : error ? error : ESRCH;
}

static int perf_start(struct hints_session *s, enum hints_tier tier, char *why, size_t size)
{
	struct perf *p = calloc(1, sizeof *p);
	int error = ENOMEM;

	(void)tier;
	s->state = p;
	if (p) {
		p->keeps_losses = true;
		p->cells.keys.key_size = sizeof(struct hints_cell_key);
		p->slabs.keys.key_size = sizeof(struct hints_slab_key);
		p->threads.keys.key_size = sizeof(struct hints_thread_key);
		read_cpus(s, p);
		error = open_events(s, p);
		if (!error)
			return 0;
		perf_close(s);
	}
	if (error == EACCES || error == EPERM) {
		snprintf(why, size,
			 "perf events of %s need CAP_PERFMON, or root (kernel.perf_event_paranoid "
			 "is %lld): run 'sudo numaslab hints --tier perf%s'",
			 s->follow.all ? "all processes" : "this process",
			 read_number("", "/proc/sys/kernel/perf_event_paranoid"),
			 s->follow.all ? "', or name your own processes with '-p" : "");
		return STATUS_DENIED;
	}
	snprintf(why, size, "the kernel has no software page fault events: %s", strerror(error));
	return STATUS_UNABLE;
}

static void perf_wait(struct hints_session *s, int timeout_ms)
{
	struct perf *p = s->state;
	uint64_t end = reader_now_ms() + (uint64_t)timeout_ms, now;

	/* In slices: the sooner an address is looked up, the surer what lies there. */
	while ((now = reader_now_ms()) < end) {
		int slice = end - now < SLICE_MS ? (int)(end - now) : SLICE_MS;

		if (poll(p->poll, p->count, slice) < 0)
			break;
		drain_all(s);
		for (size_t i = p->count; p->by_thread && i-- > 0;)
			if (p->poll[i].revents & (POLLHUP | POLLERR))
				ring_drop(p, i);
	}
}

static bool perf_follow(struct hints_session *s)
{
	struct perf *p = s->state;

	drain_all(s);
	follow_poll(&s->follow);
	for (size_t i = 0; p->by_thread && i < s->follow.count; i++)
		if (s->follow.item[i].state == HINTS_LIVE)
			add_threads(p, s->follow.item[i].pid);
	return follow_look(&s->follow, s->stopped ? 1 : reader_now_ms());
}

static bool perf_read(struct hints_session *s)
{
	struct perf *p = s->state;
	bool good = !p->no_memory;

	for (size_t i = 0; good && i < p->cells.keys.count; i++)
		good = rows_cell(s, table_key(&p->cells.keys, i), &p->cells.row[i]);
	for (size_t i = 0; good && i < p->slabs.keys.count; i++)
		good = rows_slab(s, table_key(&p->slabs.keys, i), &p->slabs.row[i], true);
	for (size_t i = 0; good && i < p->threads.keys.count; i++)
		good = rows_thread(s, table_key(&p->threads.keys, i), &p->threads.row[i], NULL);
	for (size_t i = 0; i < p->count; i++)
		count_lost(p, &p->ring[i]);
	s->model.drops.events = p->lost + p->unwatched;
	return good;
}

static void perf_stop(struct hints_session *s)
{
	struct perf *p = s->state;

	for (size_t i = 0; i < p->count; i++)
		ioctl(p->ring[i].fd, PERF_EVENT_IOC_DISABLE, 0);
	drain_all(s);
}

const struct collector collector_perf = {
    .start = perf_start,
    .wait = perf_wait,
    .follow = perf_follow,
    .read = perf_read,
    .stop = perf_stop,
    .close = perf_close,
};
