/* SPDX-License-Identifier: MIT */
#include "tools/machine.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool read_text(const char *root, const char *path, char *buf, size_t size)
{
	char full[PATH_MAX];
	size_t used = 0;
	ssize_t n;
	int fd;

	*buf = 0;
	snprintf(full, sizeof full, "%s%s", root, path);
	fd = open(full, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return false;
	while (used < size - 1 && (n = read(fd, buf + used, size - 1 - used)) > 0)
		used += (size_t)n;
	close(fd);
	buf[used] = 0;
	while (used && buf[used - 1] == '\n')
		buf[--used] = 0;
	return true;
}

long long read_number(const char *root, const char *path)
{
	char text[64], *end;
	long long n;

	if (!read_text(root, path, text, sizeof text))
		return -1;
	n = strtoll(text, &end, 10);
	return end == text ? -1 : n;
}

const char *text_field(const char *text, const char *key, char *buf, size_t size)
{
	size_t len = strlen(key);

	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, key, len))
			continue;
		line += len;
		line += strspn(line, " \t");
		snprintf(buf, size, "%.*s", (int)strcspn(line, "\n"), line);
		return buf;
	}
	return NULL;
}

bool list_each(const char *list, int below, void (*see)(int number, void *data), void *data)
{
	while (*list) {
		char *end;
		long first = strtol(list, &end, 10), last = first;

		if (end == list || first < 0 || first >= below)
			return false;
		if (*end == '-') {
			list = end + 1;
			last = strtol(list, &end, 10);
			if (end == list || last < first || last >= below)
				return false;
		}
		for (long i = first; i <= last; i++)
			see((int)i, data);
		if (*end && *end != ',')
			return false;
		list = *end ? end + 1 : end;
	}
	return true;
}

static void allow(int number, void *data)
{
	struct machine *m = data;

	for (size_t i = 0; i < m->count; i++)
		if (m->nodes[i].id == number)
			m->nodes[i].allowed = true;
}

/* A kernel that does not say leaves every node allowed. */
static void read_allowed(struct machine *m, const char *root)
{
	char status[8192], list[512];

	if (read_text(root, "/proc/self/status", status, sizeof status) &&
	    text_field(status, "Mems_allowed_list:", list, sizeof list) &&
	    list_each(list, MACHINE_NODES, allow, m))
		return;
	for (size_t i = 0; i < m->count; i++)
		m->nodes[i].allowed = true;
}

static uint64_t kilobytes(const char *text, const char *key)
{
	const char *at = strstr(text, key);

	return at ? strtoull(at + strlen(key), NULL, 10) << 10 : 0;
}

static void read_node(struct node *n, const char *root)
{
	char path[96], text[4096];

	snprintf(path, sizeof path, "/sys/devices/system/node/node%d/meminfo", n->id);
	read_text(root, path, text, sizeof text);
	n->memory = kilobytes(text, "MemTotal:");
	n->free = kilobytes(text, "MemFree:");
	n->has_memory = n->memory > 0;
	snprintf(path, sizeof path, "/sys/devices/system/node/node%d/cpulist", n->id);
	read_text(root, path, text, sizeof text);
	n->has_cpu = *text != 0;
	if (snprintf(n->cpus, sizeof n->cpus, "%s", text) >= (int)sizeof n->cpus)
		strcpy(n->cpus + sizeof n->cpus - 4, "...");
}

/* The kernel writes one number for each online node, in the order of their numbers. */
static void read_distances(struct machine *m, const char *root)
{
	for (size_t i = 0; i < m->count; i++) {
		char path[96], text[8192], *at = text, *end;

		snprintf(path, sizeof path, "/sys/devices/system/node/node%d/distance",
			 m->nodes[i].id);
		read_text(root, path, text, sizeof text);
		for (size_t j = 0; j < m->count; j++, at = end) {
			long d = strtol(at, &end, 10);

			if (end == at || d < 0 || d > 255)
				break;
			m->distances[i * m->count + j] = (int)d;
		}
	}
}

static int node_number(const char *name)
{
	char *end;
	long id;

	if (strncmp(name, "node", 4) || name[4] < '0' || name[4] > '9')
		return -1;
	id = strtol(name + 4, &end, 10);
	return *end || id >= MACHINE_NODES ? -1 : (int)id;
}

static int by_number(const void *a, const void *b)
{
	return ((const struct node *)a)->id - ((const struct node *)b)->id;
}

static bool list_nodes(struct machine *m, const char *root)
{
	char path[PATH_MAX];
	struct dirent *entry;
	DIR *dir;

	snprintf(path, sizeof path, "%s/sys/devices/system/node", root);
	dir = opendir(path);
	while (dir && (entry = readdir(dir)) && m->count < MACHINE_NODES) {
		int id = node_number(entry->d_name);
		struct node *more;

		if (id < 0)
			continue;
		more = realloc(m->nodes, (m->count + 1) * sizeof *more);
		if (!more) {
			closedir(dir);
			return false;
		}
		m->nodes = more;
		m->nodes[m->count++] = (struct node){.id = id};
	}
	if (dir)
		closedir(dir);
	if (m->count)
		qsort(m->nodes, m->count, sizeof *m->nodes, by_number);
	return true;
}

static bool whole_machine(struct machine *m, const char *root)
{
	char text[4096];

	m->nodes = calloc(1, sizeof *m->nodes);
	if (!m->nodes)
		return false;
	m->count = 1;
	read_text(root, "/proc/meminfo", text, sizeof text);
	m->nodes->memory = kilobytes(text, "MemTotal:");
	m->nodes->free = kilobytes(text, "MemFree:");
	m->nodes->has_memory = m->nodes->has_cpu = true;
	read_text(root, "/sys/devices/system/cpu/online", m->nodes->cpus, sizeof m->nodes->cpus);
	return true;
}

bool machine_read_sysfs(struct machine *m, const char *root)
{
	*m = (struct machine){.source = "sysfs"};
	if (!list_nodes(m, root))
		goto fail;
	for (size_t i = 0; i < m->count; i++)
		read_node(&m->nodes[i], root);
	if (!m->count && !whole_machine(m, root))
		goto fail;
	m->distances = calloc(m->count * m->count, sizeof *m->distances);
	if (!m->distances)
		goto fail;
	read_distances(m, root);
	read_allowed(m, root);
	return true;
fail:
	machine_free(m);
	return false;
}

void machine_free(struct machine *m)
{
	free(m->nodes);
	free(m->distances);
	*m = (struct machine){0};
}

int machine_distance(const struct machine *m, size_t from, size_t to)
{
	return m->distances[from * m->count + to];
}

int machine_nearest(const struct machine *m, size_t from)
{
	int best = -1;

	for (size_t i = 0; i < m->count; i++) {
		if (node_is_empty(&m->nodes[i]))
			continue;
		if (best < 0 ||
		    machine_distance(m, from, i) < machine_distance(m, from, (size_t)best))
			best = (int)i;
	}
	return best;
}

void node_reason(const struct machine *m, size_t index, char *buf, size_t size)
{
	const struct node *n = &m->nodes[index];
	int home = machine_nearest(m, index);

	if (!n->has_memory && !n->has_cpu)
		snprintf(buf, size, "online, but it has neither memory nor CPUs");
	else if (!n->has_memory && home >= 0)
		snprintf(buf, size, "CPUs %s but no memory; their home is node %d", n->cpus,
			 m->nodes[home].id);
	else if (!n->has_memory)
		snprintf(buf, size, "CPUs %s but no memory", n->cpus);
	else
		snprintf(buf, size, "this process may not use its memory (mems_allowed)");
}
