/* SPDX-License-Identifier: MIT */
/* Loads the eBPF programs of a tier, attaches them, keeps the table of processes. */
#include "tools/hints_ebpf.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "hints.skel.h"
#include "tools/cmd.h"

#define CELL_MEMORY   ((size_t)64 << 20) /* of the table that each CPU has its own of */
#define CELLS_MIN     1024u
#define CELLS_MAX     8192u
#define SAMPLE_EVERY  64u
#define SLICE_MS      200
#define CAP_PERFMON_N 38u
#define CAP_BPF_N     39u
#define CAP_SYS_ADMIN 21u

/* Which program is of which tier; optional: the tier works without. */
static const struct program {
	const char *name;
	unsigned tiers;
	bool optional;
} programs[] = {
#define AT(tier) (1u << (tier))
#define ALL	 (AT(HINTS_FENTRY) | AT(HINTS_KPROBE) | AT(HINTS_TRACEPOINT))
    {"fentry_begin", AT(HINTS_FENTRY), false},
    {"fentry_end", AT(HINTS_FENTRY), false},
    {"fentry_huge", AT(HINTS_FENTRY), true},
    {"kprobe_begin", AT(HINTS_KPROBE), false},
    {"kprobe_end", AT(HINTS_KPROBE), false},
    {"kprobe_huge", AT(HINTS_KPROBE), true},
    {"tp_fault_user", AT(HINTS_TRACEPOINT), false},
    {"tp_fault_kernel", AT(HINTS_TRACEPOINT), false},
    {"tp_migrate_7", AT(HINTS_TRACEPOINT), true},
    {"tp_migrate_8", AT(HINTS_TRACEPOINT), true},
    {"tp_move", ALL, true},
    {"tp_swap", ALL, true},
    {"tp_exec", ALL, false},
    {"tp_exit", ALL, false},
};

static char log_line[200]; /* the first complaint of libbpf; those after it follow from it */

static int keep_log(enum libbpf_print_level level, const char *format, va_list args)
{
	char line[512];

	if (level != LIBBPF_WARN || *log_line)
		return 0;
	vsnprintf(line, sizeof line, format, args);
	line[strcspn(line, "\n")] = 0;
	printable(log_line, sizeof log_line, line);
	return 0;
}

static const struct program *program_of(const char *name)
{
	for (size_t i = 0; i < sizeof programs / sizeof *programs; i++)
		if (!strcmp(programs[i].name, name))
			return &programs[i];
	return NULL;
}

/* Optional programs whose function is not there would fail the load of all. */
static bool is_wanted(const struct hints_kernel *k, const struct program *p, enum hints_tier tier)
{
	if (!p || !(p->tiers & AT(tier)))
		return false;
	if (!strcmp(p->name, "fentry_huge") || !strcmp(p->name, "kprobe_huge"))
		return k->has_huge && !k->config.has_vmf;
	if (!strncmp(p->name, "tp_migrate_", strlen("tp_migrate_")))
		return atoi(p->name + strlen("tp_migrate_")) == k->migrate_args;
	return true;
}

static int tier_is_possible(const struct hints_kernel *k, enum hints_tier tier, char *why,
			    size_t size)
{
	if (!k->has_btf) {
		snprintf(why, size,
			 "the kernel has no BTF (/sys/kernel/btf/vmlinux, "
			 "CONFIG_DEBUG_INFO_BTF=y)");
		return STATUS_UNABLE;
	}
	if (tier == HINTS_TRACEPOINT ? k->has_page_faults : k->has_faults)
		return 0;
	snprintf(why, size, "this kernel has no %s",
		 tier == HINTS_TRACEPOINT
		     ? "tracepoint page_fault_user"
		     : "functions mpol_misplaced and task_numa_fault of a known form");
	return STATUS_UNABLE;
}

static int load(struct ebpf *e, const struct hints_session *s, char *why, size_t size)
{
	struct bpf_program *program;
	size_t cells = CELL_MEMORY / sizeof(struct hints_raw) / (size_t)libbpf_num_possible_cpus();
	int error;

	e->skeleton = hints_bpf__open();
	if (!e->skeleton) {
		snprintf(why, size, "the eBPF object cannot be opened: %s", log_line);
		return STATUS_UNABLE;
	}
	e->kernel.config.all = s->follow.all;
	e->kernel.config.sample_every = SAMPLE_EVERY;
	memcpy((void *)&e->skeleton->rodata->config, &e->kernel.config, sizeof e->kernel.config);
	cells = cells < CELLS_MIN ? CELLS_MIN : cells > CELLS_MAX ? CELLS_MAX : cells;
	bpf_map__set_max_entries(e->skeleton->maps.cells, (uint32_t)cells);
	bpf_object__for_each_program(program, e->skeleton->obj)
	{
		const struct program *p = program_of(bpf_program__name(program));

		bpf_program__set_autoload(program, is_wanted(&e->kernel, p, e->tier));
	}
	error = hints_bpf__load(e->skeleton);
	if (error) {
		snprintf(why, size, "the kernel does not load the programs: %s%s%s",
			 strerror(-error), *log_line ? "; " : "", log_line);
		return error == -EPERM && !has_capability(CAP_SYS_ADMIN) ? STATUS_DENIED
									 : STATUS_UNABLE;
	}
	return 0;
}

static int attach(struct ebpf *e, char *why, size_t size)
{
	struct bpf_program *program;

	bpf_object__for_each_program(program, e->skeleton->obj)
	{
		const struct program *p = program_of(bpf_program__name(program));
		struct bpf_link *link;

		if (!is_wanted(&e->kernel, p, e->tier))
			continue;
		link = bpf_program__attach(program);
		if (link) {
			e->link[e->link_count++] = link;
		} else if (!p->optional) {
			int error = errno;

			snprintf(why, size, "the kernel does not attach %s: %s",
				 bpf_program__section_name(program), strerror(error));
			return (error == EPERM || error == EACCES) && !has_capability(CAP_SYS_ADMIN)
				   ? STATUS_DENIED
				   : STATUS_UNABLE;
		}
	}
	return 0;
}

static void detach(struct ebpf *e)
{
	while (e->link_count)
		bpf_link__destroy(e->link[--e->link_count]);
}

static void ebpf_free(struct ebpf *e)
{
	detach(e);
	ring_buffer__free(e->ring);
	hints_bpf__destroy(e->skeleton);
	late_free(&e->late);
	free(e);
}

/* --- Processes. --- */

static bool tell_kernel(struct ebpf *e, struct followed *item)
{
	uint32_t tgid = (uint32_t)item->pid;
	struct hints_watched watch = {.image = item->image};
	struct hints_target target = {.geometry = item->geometry, .image = item->image};

	if (!item->known) {
		item->known = true;
		if (bpf_map__update_elem(e->skeleton->maps.watched, &tgid, sizeof tgid, &watch,
					 sizeof watch, BPF_NOEXIST) &&
		    errno != EEXIST)
			return false;
	}
	if (item->has_map || !item->reader || !item->geometry.span)
		return true;
	for (unsigned i = 0; i < sizeof target.node / sizeof *target.node; i++)
		target.node[i] = (int16_t)reader_pool_node(item->reader, i);
	item->has_map = bpf_map__update_elem(e->skeleton->maps.targets, &tgid, sizeof tgid, &target,
					     sizeof target, BPF_ANY) == 0;
	return true;
}

/* What exec and exit told the programs. */
static bool learn(struct hints_session *s, struct ebpf *e, size_t at)
{
	struct followed *item = &s->follow.item[at];
	uint32_t tgid = (uint32_t)item->pid;
	struct hints_watched watch;

	if (!item->known || item->state != HINTS_LIVE ||
	    bpf_map__lookup_elem(e->skeleton->maps.watched, &tgid, sizeof tgid, &watch,
				 sizeof watch, 0))
		return true;
	if (watch.image != item->image) {
		item = follow_replaced(&s->follow, item, watch.image);
		if (!item)
			return false;
		item->known = true;
	}
	if (watch.exited) {
		follow_exited(item);
		if (s->follow.all) /* its number is free for another */
			bpf_map__delete_elem(e->skeleton->maps.watched, &tgid, sizeof tgid, 0);
	}
	return true;
}

static bool ebpf_follow(struct hints_session *s)
{
	struct ebpf *e = s->state;
	size_t count = s->follow.count;

	for (size_t i = 0; i < count; i++)
		if (!learn(s, e, i))
			return false;
	if (!follow_look(&s->follow, reader_now_ms()))
		return false;
	for (size_t i = 0; i < s->follow.count; i++)
		if (s->follow.item[i].state == HINTS_LIVE)
			tell_kernel(e, &s->follow.item[i]);
	return true;
}

/* --- The session's side. --- */

static int ebpf_refused(char *why, size_t size)
{
	if (has_capability(CAP_SYS_ADMIN) ||
	    (has_capability(CAP_BPF_N) && has_capability(CAP_PERFMON_N)))
		return 0;
	snprintf(why, size,
		 "eBPF needs the capabilities CAP_BPF and CAP_PERFMON: run 'sudo numaslab hints', "
		 "or once 'sudo setcap cap_bpf,cap_perfmon+ep $(command -v numaslab)'; "
		 "'--tier perf' does without, for your own processes");
	return STATUS_DENIED;
}

static int on_sample(void *data, void *event, size_t size);

static int ebpf_start(struct hints_session *s, enum hints_tier tier, char *why, size_t size)
{
	struct ebpf *e = calloc(1, sizeof *e);
	int status = e ? ebpf_refused(why, size) : STATUS_UNABLE;

	if (!e) {
		snprintf(why, size, "out of memory");
		return status;
	}
	*log_line = 0;
	libbpf_set_print(keep_log);
	e->tier = tier;
	late_init(&e->late);
	if (!status) {
		hints_kernel_read(&e->kernel);
		status = tier_is_possible(&e->kernel, tier, why, size);
	}
	if (!status)
		status = load(e, s, why, size);
	if (!status) {
		e->ring =
		    ring_buffer__new(bpf_map__fd(e->skeleton->maps.samples), on_sample, s, NULL);
		s->state = e;
		for (size_t i = 0; i < s->follow.count; i++)
			tell_kernel(e, &s->follow.item[i]);
		status = attach(e, why, size);
	}
	if (status) {
		s->state = NULL;
		ebpf_free(e);
	}
	return status;
}

static enum hints_kind kind_of(uint32_t raw)
{
	return raw >= RAW_FREE ? HINTS_SLAB : (enum hints_kind)raw;
}

static int on_sample(void *data, void *event, size_t size)
{
	const struct hints_event *e = event;
	struct hints_session *s = data;

	if (size < sizeof *e)
		return 0;
	struct followed *item = follow_find(&s->follow, (int)e->tgid, e->image ? e->image : 1);
	struct hints_process *p = hints_process_get(&s->model, (int)e->tgid, e->image);
	struct hints_sample sample = {
	    .time_ms = e->time_ns / 1000000,
	    .address = e->address,
	    .ip = e->ip,
	    .tid = (int)e->tid,
	    .from = e->from,
	    .kind = kind_of(e->kind),
	    .pages = e->pages,
	    .block_size = item && item->reader && e->class != DECODE_CLASS_NONE
			      ? reader_class_size(item->reader, e->class)
			      : 0,
	};
	if (p)
		hints_sample_add(p, &sample);
	return 0;
}

/* New processes are told to the kernel soon, so that few of their faults come too early. */
static void ebpf_wait(struct hints_session *s, int timeout_ms)
{
	struct ebpf *e = s->state;
	uint64_t end = reader_now_ms() + (uint64_t)timeout_ms, now;

	while ((now = reader_now_ms()) < end) {
		int slice = end - now < SLICE_MS ? (int)(end - now) : SLICE_MS;

		if (poll(NULL, 0, slice) < 0)
			break;
		if (e->ring)
			ring_buffer__consume(e->ring);
		if (!ebpf_follow(s))
			break;
	}
}

static void ebpf_stop(struct hints_session *s)
{
	struct ebpf *e = s->state;

	detach(e);
	if (e->ring)
		ring_buffer__consume(e->ring);
}

static void ebpf_close(struct hints_session *s)
{
	ebpf_free(s->state);
	s->state = NULL;
}

void ebpf_maps(const struct ebpf *e, struct ebpf_maps *m)
{
	*m = (struct ebpf_maps){
	    .cells = bpf_map__fd(e->skeleton->maps.cells),
	    .slabs = bpf_map__fd(e->skeleton->maps.slabs),
	    .threads = bpf_map__fd(e->skeleton->maps.threads),
	    .pending = bpf_map__fd(e->skeleton->maps.pending),
	    .stats = bpf_map__fd(e->skeleton->maps.stats),
	};
}

uint64_t ebpf_missed(const struct ebpf *e)
{
	struct bpf_program *program;
	uint64_t missed = 0;

	bpf_object__for_each_program(program, e->skeleton->obj)
	{
		struct bpf_prog_info info = {0};
		uint32_t length = sizeof info;
		int fd = bpf_program__fd(program);

		if (fd >= 0 && strstr(bpf_program__name(program), "_begin") &&
		    bpf_obj_get_info_by_fd(fd, &info, &length) == 0)
			missed += info.recursion_misses;
	}
	return missed;
}

const struct collector collector_ebpf = {
    .start = ebpf_start,
    .wait = ebpf_wait,
    .follow = ebpf_follow,
    .read = ebpf_read,
    .stop = ebpf_stop,
    .close = ebpf_close,
};
