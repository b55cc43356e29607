/* SPDX-License-Identifier: MIT */
#include "allocator/topology.h"
#include "allocator/sim.h"

#include <numaif.h>

struct topology topology;

static struct topology_text described; /* simulated, or filled from sysfs */
static int sim_cpus;

/* "/sys/devices/system/node/node" + number + leaf */
static const char *node_path(char path[64], int number, const char *leaf)
{
	static const char root[] = "/sys/devices/system/node/node";
	char digits[8];
	unsigned n = 0, at = 0;

	for (; root[at]; at++)
		path[at] = root[at];
	do
		digits[n++] = (char)('0' + number % 10);
	while (number /= 10);
	while (n)
		path[at++] = digits[--n];
	while (*leaf)
		path[at++] = *leaf++;
	path[at] = 0;
	return path;
}

/* The number behind `key`, as in "Node 3 MemFree:   1234 kB"; -1: there is none. */
static int64_t find_kilobytes(const char *text, size_t n, const char *key)
{
	const char *end = text + n, *at;
	size_t length = 0;

	while (key[length])
		length++;
	for (at = text; at + length < end; at++)
		if (__builtin_memcmp(at, key, length) == 0)
			break;
	for (at += length; at < end && *at == ' '; at++)
		;
	return at < end ? text_number(&at, end, INT64_MAX >> 10) : -1;
}

bool topology_memory(unsigned index, uint64_t *total, uint64_t *free)
{
	char path[64], text[512];
	long n =
	    os_read_file(node_path(path, topology.number[index], "/meminfo"), text, sizeof(text));
	int64_t all = n > 0 ? find_kilobytes(text, (size_t)n, "MemTotal:") : -1;
	int64_t unused = n > 0 ? find_kilobytes(text, (size_t)n, "MemFree:") : -1;

	*total = (uint64_t)all << 10;
	*free = (uint64_t)unused << 10;
	return all >= 0 && unused >= 0;
}

/*
 * Distances of `from` to the online nodes, in their order.  cold: a machine with several nodes
 * only.  Without sysfs every other node is equally far.
 */
static void read_distances(unsigned from, const uint64_t *online)
{
	char path[64], text[1024];
	long n =
	    os_read_file(node_path(path, described.number[from], "/distance"), text, sizeof(text));
	const char *at = text, *end = text + (n < 0 ? 0 : n);

	for (int node = 0; node < (int)OS_NODE_BITS && at < end; node++) {
		if (!(online[node / 64] >> (node % 64) & 1))
			continue;
		int64_t far = text_number(&at, end, 255);
		int to = topology_position(&described, node);

		if (far < 0)
			return;
		if (to >= 0)
			described.distance[from][to] = (uint8_t)far;
		while (at < end && *at == ' ')
			at++;
	}
}

/* Every online node is described; memory is 1 where the process may take it, else 0. */
static void describe_machine(const uint64_t *allowed)
{
	uint64_t online[OS_NODE_WORDS];
	char text[512];
	long n = os_read_file("/sys/devices/system/node/online", text, sizeof(text));

	topology_describe_nothing(&described);
	if (n <= 0 || !topology_parse_list(text, (size_t)n, online, OS_NODE_BITS))
		for (unsigned i = 0; i < OS_NODE_WORDS; i++)
			online[i] = allowed[i];
	for (int node = 0; node < (int)OS_NODE_BITS && described.count < NODE_MAX; node++) {
		if (!((online[node / 64] | allowed[node / 64]) >> (node % 64) & 1))
			continue;
		described.number[described.count] = (int16_t)node;
		described.memory[described.count] = allowed[node / 64] >> (node % 64) & 1;
		described.count++;
	}
	for (unsigned i = 0; i < described.count; i++)
		read_distances(i, online);
}

/* The index nearest to position `from`; of equals the first after it, so that load spreads. */
static unsigned nearest_index(unsigned from, const unsigned *position, const bool *taken)
{
	unsigned best = NODE_MAX, best_key = ~0u;

	for (unsigned i = 0; i < topology.count; i++) {
		unsigned to = position[i];
		unsigned ring = (to + described.count - from) % described.count;
		unsigned key = (unsigned)described.distance[from][to] * NODE_MAX + ring;

		if (!(taken && taken[i]) && key < best_key) {
			best = i;
			best_key = key;
		}
	}
	return best;
}

/* Indexes, homes and orders from what is described. */
static void index_nodes(void)
{
	unsigned position[NODE_MAX];

	topology.count = 0;
	for (unsigned i = 0; i < described.count; i++)
		if (described.memory[i]) {
			position[topology.count] = i;
			topology.number[topology.count++] = described.number[i];
		}
	for (unsigned i = 0; i < described.count; i++)
		topology.home[described.number[i]] = (uint8_t)nearest_index(i, position, NULL);
	for (unsigned i = 0; i < topology.count; i++) {
		bool taken[NODE_MAX] = {false};

		for (unsigned at = 0; at < topology.count; at++) {
			/* The node itself first: its distance is the smallest, its ring 0. */
			unsigned next = nearest_index(position[i], position, taken);

			topology.order[i][at] = (uint8_t)next;
			taken[next] = true;
		}
	}
}

static void count_sim_cpus(void)
{
	for (unsigned cpu = 0; cpu < SIM_CPUS; cpu++)
		if (described.cpu_node[cpu] >= 0)
			sim_cpus++;
}

static void init_single(int number)
{
	topology.count = 1;
	topology.number[0] = (int16_t)number;
	topology.guarded = false;
}

/* "Seccomp:\t2" in /proc/self/status: a filter, which may kill whoever asks. */
static bool has_seccomp_filter(void)
{
	static const char key[] = "\nSeccomp:\t";
	char text[4096];
	long n = os_read_file("/proc/self/status", text, sizeof(text));

	for (long at = 0; at + (long)sizeof(key) <= n; at++) {
		unsigned i = 0;

		while (i < sizeof(key) - 1 && text[at + i] == key[i])
			i++;
		if (i == sizeof(key) - 1)
			return text[at + i] != '0';
	}
	return n <= 0; /* no /proc: do not risk it */
}

static unsigned count_nodes(const uint64_t *mask, unsigned *first)
{
	unsigned nodes = 0;

	for (unsigned node = OS_NODE_BITS; node-- > 0;)
		if (mask[node / 64] >> (node % 64) & 1) {
			*first = node;
			nodes++;
		}
	return nodes;
}

/* One node with memory in the whole machine: nothing needs to be asked. */
static bool machine_is_single(unsigned *node)
{
	uint64_t mask[OS_NODE_WORDS];
	char text[512];
	long n = os_read_file("/sys/devices/system/node/has_memory", text, sizeof(text));

	return n > 0 && topology_parse_list(text, (size_t)n, mask, OS_NODE_BITS) &&
	       count_nodes(mask, node) == 1;
}

static void init_machine(void)
{
	uint64_t allowed[OS_NODE_WORDS] = {0};
	unsigned node = 0;

	if (machine_is_single(&node)) {
		init_single((int)node);
		return;
	}
	if (has_seccomp_filter() || os_mems_allowed(allowed) < 0) {
		topology.silent = true;
		init_single(0);
		return;
	}
	if (count_nodes(allowed, &node) < 2) {
		init_single((int)node);
		return;
	}
	int policy = os_task_policy();

	topology.follow = policy > MPOL_DEFAULT && policy != MPOL_LOCAL;
	topology.guarded = true;
	describe_machine(allowed);
	index_nodes();
}

cold void topology_init(const char *text)
{
	if (!text[0] || !topology_parse(text, &described)) {
		init_machine();
		return;
	}
	topology.simulated = true;
	index_nodes();
	count_sim_cpus();
	topology.guarded = topology.count > 1;
	for (unsigned i = 0; i < described.count; i++)
		if (described.memory[i])
			sim_init_node(topology.home[described.number[i]], described.memory[i]);
}

int topology_sim_node(int cpu)
{
	if (cpu < 0 || cpu >= (int)SIM_CPUS || described.cpu_node[cpu] < 0)
		return -1;
	return described.number[described.cpu_node[cpu]];
}

int topology_sim_cpu(unsigned real_cpu)
{
	int skip_cpus = sim_cpus ? (int)real_cpu % sim_cpus : -1;

	for (int cpu = 0; skip_cpus >= 0 && cpu < (int)SIM_CPUS; cpu++)
		if (described.cpu_node[cpu] >= 0 && skip_cpus-- == 0)
			return cpu;
	return -1;
}

unsigned topology_here(void)
{
	unsigned cpu = 0, node = 0;

	if (topology.count == 1)
		return 0;
	if (os_getcpu(&cpu, &node) < 0)
		return 0;
	if (topology.simulated) {
		int there = topology_sim_node(topology_sim_cpu(cpu));

		return there < 0 ? 0 : topology.home[there];
	}
	return node < OS_NODE_BITS ? topology.home[node] : 0;
}
