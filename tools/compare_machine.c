/* SPDX-License-Identifier: MIT */
#include "tools/compare_machine.h"

#include <gnu/libc-version.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "tools/machine.h"

static int node_numbers[CMP_NODES_MAX];
static size_t node_count;
static short cpu_nodes[CMP_CPUS_MAX]; /* the node of each CPU, -1: unknown */

static void read_cpu(char *out, size_t size)
{
	FILE *f = fopen("/proc/cpuinfo", "re");
	char line[256];

	snprintf(out, size, "unknown");
	while (f && fgets(line, sizeof(line), f)) {
		char *colon = strchr(line, ':');

		if (strncmp(line, "model name", 10) != 0 || !colon)
			continue;
		line[strcspn(line, "\n")] = '\0';
		snprintf(out, size, "%s", colon + 1 + strspn(colon + 1, " \t"));
		break;
	}
	if (f)
		fclose(f);
}

/* "always [madvise] never" -> "madvise" */
static void read_chosen(const char *path, char *out, size_t size)
{
	char line[128], *open, *close;

	read_text("", path, line, sizeof(line));
	open = strchr(line, '[');
	close = strchr(line, ']');
	if (open && close > open)
		snprintf(out, size, "%.*s", (int)(close - open - 1), open + 1);
	else
		snprintf(out, size, "none");
}

static void see_cpu(int cpu, void *node)
{
	cpu_nodes[cpu] = *(short *)node;
}

static void add_node(struct cmp_machine *m, const struct node *n)
{
	char path[96], cpus[16384];
	short number = (short)n->id;

	snprintf(path, sizeof path, "/sys/devices/system/node/node%d/cpulist", n->id);
	read_text("", path, cpus, sizeof cpus);
	list_each(cpus[0] ? cpus : n->cpus, CMP_CPUS_MAX, see_cpu, &number);
	if (!n->has_memory) {
		if (m->excluded_n < CMP_NODES_MAX)
			m->excluded[m->excluded_n++] = n->id;
	} else if (m->nodes < CMP_NODES_MAX) {
		struct cmp_node *out = &m->node[m->nodes];

		out->number = node_numbers[m->nodes++] = n->id;
		out->memory = (double)n->memory;
		snprintf(out->cpus, sizeof out->cpus, "%s", n->cpus);
	}
}

static void read_nodes(struct cmp_machine *m)
{
	struct machine all;

	memset(cpu_nodes, 0xff, sizeof cpu_nodes);
	if (!machine_read_libnuma(&all) && !machine_read_sysfs(&all, ""))
		return;
	for (size_t i = 0; i < all.count; i++)
		add_node(m, &all.nodes[i]);
	machine_free(&all);
	node_count = m->nodes;
}

static int cpus_allowed(void)
{
	cpu_set_t *set = CPU_ALLOC(CMP_CPUS_MAX);
	size_t size = CPU_ALLOC_SIZE(CMP_CPUS_MAX);
	int n = 0;

	if (set && !sched_getaffinity(0, size, set))
		n = CPU_COUNT_S(size, set);
	CPU_FREE(set);
	return n;
}

void cmp_machine_read(struct cmp_machine *m)
{
	struct utsname name;
	time_t now = time(NULL);
	char line[64];

	memset(m, 0, sizeof(*m));
	uname(&name);
	snprintf(m->kernel, sizeof(m->kernel), "%s %s", name.sysname, name.release);
	snprintf(m->arch, sizeof(m->arch), "%s", name.machine);
	snprintf(m->libc, sizeof(m->libc), "glibc %s", gnu_get_libc_version());
	strftime(m->started, sizeof(m->started), "%Y-%m-%dT%H:%M:%SZ", gmtime(&now));
	read_cpu(m->cpu, sizeof(m->cpu));
	read_chosen("/sys/kernel/mm/transparent_hugepage/enabled", m->thp, sizeof(m->thp));
	read_text("", "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", m->governor,
		  sizeof(m->governor));
	m->cpus_online = (int)sysconf(_SC_NPROCESSORS_ONLN);
	m->cpus_allowed = cpus_allowed();
	m->memory = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
	read_text("", "/proc/loadavg", line, sizeof(line));
	m->load = strtod(line, NULL);
	read_text("", "/proc/sys/kernel/numa_balancing", line, sizeof(line));
	m->numa_balancing = line[0] ? atoi(line) : -1;
	read_nodes(m);
}

int cmp_node_index(int node)
{
	for (size_t i = 0; i < node_count; i++)
		if (node_numbers[i] == node)
			return (int)i;
	return -1;
}

int cmp_node_of_cpu(int cpu)
{
	return cpu < 0 || cpu >= CMP_CPUS_MAX ? -1 : cpu_nodes[cpu];
}

void cmp_vmstat_parse(const char *text, double *v)
{
	for (int m = CMP_VMSTAT_FIRST; m <= CMP_VMSTAT_LAST; m++)
		v[m] = NAN;
	while (text && *text) {
		size_t len = strcspn(text, " \n");
		int m = text[len] == ' ' ? cmp_metric_find(text, len) : -1;

		/* Only whole names count: short names are ours, not the kernel's. */
		if (m >= CMP_VMSTAT_FIRST && m <= CMP_VMSTAT_LAST &&
		    strlen(cmp_metrics[m].name) == len)
			v[m] = strtod(text + len, NULL);
		text = strchr(text, '\n');
		text += text != NULL;
	}
}

void cmp_vmstat_read(double *v)
{
	static char text[16384];

	read_text("", "/proc/vmstat", text, sizeof text);
	cmp_vmstat_parse(text, v);
}
