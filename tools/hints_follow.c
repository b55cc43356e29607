/* SPDX-License-Identifier: MIT */
#include "tools/hints_follow.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/cmd.h"
#include "tools/machine.h"

#define LOOK_MS 200

static void read_comm(struct followed *item)
{
	char path[64], comm[64];

	snprintf(path, sizeof path, "/proc/%d/comm", item->pid);
	if (read_text("", path, comm, sizeof comm))
		printable(item->comm, sizeof item->comm, comm);
}

struct followed *follow_add(struct follow *f, int pid, unsigned image)
{
	if (!array_fit((void **)&f->item, &f->room, f->count, sizeof *f->item))
		return NULL;
	struct followed *item = &f->item[f->count++];
	*item = (struct followed){.pid = pid, .image = image};
	read_comm(item);
	return item;
}

struct followed *follow_find(const struct follow *f, int pid, unsigned image)
{
	for (size_t i = f->count; i-- > 0;)
		if (f->item[i].pid == pid && f->item[i].image == image)
			return &f->item[i];
	return NULL;
}

struct followed *follow_last(const struct follow *f, int pid)
{
	for (size_t i = f->count; i-- > 0;)
		if (f->item[i].pid == pid)
			return &f->item[i];
	return NULL;
}

/* --- Files. --- */

static void take_file(struct follow *f, struct followed *item, const char *path)
{
	char why[READER_WHY_SIZE];
	struct reader *reader;
	enum reader_result result = reader_open(&reader, path, why);

	f->mismatch |= result == READER_VERSION;
	if (result != READER_OK) {
		if (result != READER_ABSENT)
			snprintf(item->refusal, sizeof item->refusal, "%.*s",
				 (int)sizeof item->refusal - 1, why);
		return;
	}
	*item->refusal = 0;
	/* A file that was left behind by the program before is not this one's. */
	if (!reader_is_live(reader) || !(item->path = strdup(path))) {
		reader_close(reader);
		return;
	}
	item->reader = reader;
	snprintf(item->comm, sizeof item->comm, "%s", reader_info(reader)->comm);
	reader_geometry(reader, &item->geometry);
}

static void find_file(struct follow *f, struct followed *item)
{
	struct reader_files files;

	if (reader_find_pid(&files, item->pid))
		take_file(f, item, files.path[0]);
	f->denied |= files.denied;
	reader_files_free(&files);
}

/* --- All processes: from the files to our numbers of their processes. --- */

/* Whether process pid is number `inner` of the pid namespace with that inode. */
static bool is_in_namespace(const char *pid, uint64_t namespace, int inner)
{
	char path[300], text[4096], field[256];

	snprintf(path, sizeof path, "/proc/%s/ns/pid", pid);
	ssize_t n = readlink(path, text, sizeof text - 1);
	if (n <= 0)
		return false;
	text[n] = 0;
	const char *at = strchr(text, '[');
	if (!at || strtoull(at + 1, NULL, 10) != namespace)
		return false;
	snprintf(path, sizeof path, "/proc/%s/status", pid);
	if (!read_text("", path, text, sizeof text) ||
	    !text_field(text, "NSpid:", field, sizeof field))
		return false;
	const char *last = strrchr(field, '\t');
	return atoi(last ? last + 1 : field) == inner;
}

/* Our number of a process of another pid namespace; 0: it is not to be seen. */
static int outer_pid(const struct reader_info *info)
{
	DIR *proc = opendir("/proc");
	struct dirent *e;
	int pid = 0;

	while (proc && !pid && (e = readdir(proc)))
		if (isdigit((unsigned char)e->d_name[0]) &&
		    is_in_namespace(e->d_name, info->pid_namespace, info->pid))
			pid = atoi(e->d_name);
	if (proc)
		closedir(proc);
	return pid;
}

static bool is_taken(const struct follow *f, const char *path)
{
	for (size_t i = 0; i < f->count; i++)
		if (f->item[i].path && !strcmp(f->item[i].path, path))
			return true;
	return false;
}

static bool take_process(struct follow *f, const char *path)
{
	char why[READER_WHY_SIZE];
	struct reader *reader;
	uint64_t ours = reader_pid_namespace();
	enum reader_result result = reader_open(&reader, path, why);

	f->mismatch |= result == READER_VERSION;
	if (result != READER_OK)
		return true;
	const struct reader_info *info = reader_info(reader);
	bool same = !ours || !info->pid_namespace || info->pid_namespace == ours;
	int pid = !reader_is_live(reader) ? 0 : same ? info->pid : outer_pid(info);
	reader_close(reader);
	if (pid <= 0)
		return true;
	struct followed *item = follow_last(f, pid);
	if (item && item->state != HINTS_LIVE)
		item = follow_add(f, pid, item->image + 1);
	else if (!item)
		item = follow_add(f, pid, 1);
	if (item && !item->reader)
		take_file(f, item, path);
	return item != NULL;
}

static bool look_at_all(struct follow *f)
{
	struct reader_files files;
	bool good = reader_find_all(&files);

	f->denied |= files.denied;
	for (size_t i = 0; good && i < files.count; i++)
		if (!is_taken(f, files.path[i]))
			good = take_process(f, files.path[i]);
	reader_files_free(&files);
	return good;
}

bool follow_look(struct follow *f, uint64_t now_ms)
{
	if (now_ms && now_ms - f->looked_ms < LOOK_MS)
		return true;
	f->looked_ms = now_ms;
	if (f->all)
		return look_at_all(f);
	for (size_t i = 0; i < f->count; i++)
		if (f->item[i].state == HINTS_LIVE && !f->item[i].reader)
			find_file(f, &f->item[i]);
	return true;
}

/* --- Ends. --- */

void follow_exited(struct followed *item)
{
	item->state = HINTS_EXITED;
}

struct followed *follow_replaced(struct follow *f, struct followed *item, unsigned image)
{
	int pid = item->pid;

	item->state = HINTS_REPLACED;
	return follow_add(f, pid, image);
}

/* Ended, or waits for its parent to take notice. */
static bool is_gone(int pid)
{
	char path[64], text[1024];
	const char *at;

	if (kill(pid, 0) < 0 && errno == ESRCH)
		return true;
	snprintf(path, sizeof path, "/proc/%d/stat", pid);
	return read_text("", path, text, sizeof text) && (at = strrchr(text, ')')) &&
	       (at[2] == 'Z' || at[2] == 'X');
}

void follow_poll(struct follow *f)
{
	size_t count = f->count; /* what is added meanwhile is new */

	for (size_t i = 0; i < count; i++) {
		struct followed *item = &f->item[i];

		if (item->state != HINTS_LIVE)
			continue;
		if (is_gone(item->pid))
			follow_exited(item);
		else if (item->reader && !reader_is_live(item->reader))
			follow_replaced(f, item, item->image + 1);
	}
}

bool follow_is_over(const struct follow *f)
{
	for (size_t i = 0; i < f->count; i++)
		if (f->item[i].state == HINTS_LIVE)
			return false;
	return !f->all;
}

/* --- Into the model. --- */

const char *follow_thread_comm(struct follow *f, int pid, int tid)
{
	int key[2] = {pid, tid};
	char path[96], comm[64];
	bool fresh;

	f->threads.key_size = sizeof key;
	if (!array_fit((void **)&f->thread_comm, &f->thread_room, f->threads.count,
		       sizeof *f->thread_comm))
		return "";
	size_t at = table_get(&f->threads, key, &fresh);
	if (at == TABLE_FULL)
		return "";
	if (fresh) {
		snprintf(path, sizeof path, "/proc/%d/task/%d/comm", pid, tid);
		if (!read_text("", path, comm, sizeof comm))
			*comm = 0;
		printable(f->thread_comm[at], sizeof *f->thread_comm, comm);
	}
	return f->thread_comm[at];
}

static uint64_t heap_bytes(struct reader *reader)
{
	struct reader_snapshot s = {0};
	uint64_t bytes = 0;

	if (reader_snapshot(reader, &s) == READER_OK)
		for (unsigned i = 0; i < s.pools; i++)
			bytes += s.pool[i].node < 0 ? 0 : s.pool[i].sum.counter[COUNT_held];
	reader_snapshot_free(&s);
	return bytes;
}

static void describe(const struct followed *item, struct hints_process *p, bool ended)
{
	struct reader_observation o;

	snprintf(p->comm, sizeof p->comm, "%s", item->comm);
	p->state = item->state;
	p->publishes = item->reader != NULL;
	snprintf(p->refusal, sizeof p->refusal, "%s", item->refusal);
	if (!item->reader)
		return;
	p->placement = reader_info(item->reader)->placement;
	p->id = reader_id(reader_info(item->reader));
	if (item->state != HINTS_LIVE || ended)
		return;
	p->heap_bytes = heap_bytes(item->reader);
	reader_observed(item->reader, &o);
	p->masked = !strcmp(p->placement, "home") && o.request == 0;
	p->observation.how = o.how;
	p->observation.observed_bytes = o.observed_bytes;
}

bool follow_describe(const struct follow *f, struct hints *h)
{
	for (size_t i = 0; i < f->count; i++) {
		struct hints_process *p = hints_process_get(h, f->item[i].pid, f->item[i].image);

		if (!p)
			return false;
		describe(&f->item[i], p, f->ended);
	}
	/* Those that nobody followed: they are not under the library, or it was too short. */
	for (size_t i = 0; i < h->process_count; i++) {
		struct hints_process *p = &h->process[i];
		struct followed nameless = {.pid = p->pid};

		if (*p->comm)
			continue;
		read_comm(&nameless);
		snprintf(p->comm, sizeof p->comm, "%s", *nameless.comm ? nameless.comm : "?");
		p->placement = "";
	}
	return true;
}

void follow_free(struct follow *f)
{
	for (size_t i = 0; i < f->count; i++) {
		reader_close(f->item[i].reader);
		free(f->item[i].path);
	}
	free(f->item);
	free(f->thread_comm);
	table_free(&f->threads);
	memset(f, 0, sizeof *f);
}
