/* SPDX-License-Identifier: MIT */
#include "allocator/topology.h"
#include "allocator/sim.h"

#include <numaif.h>

struct topology topology;

static struct topology_text described; /* simulated, or filled from sysfs */
static int sim_cpus;

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Digits at *at; -1 if there are none or the number exceeds max. */
static int64_t parse_number(const char **at, const char *end, int64_t max)
{
	int64_t n = 0;

	if (*at >= end || !is_digit(**at))
		return -1;
	for (; *at < end && is_digit(**at); (*at)++) {
		n = n * 10 + (**at - '0');
		if (n > max)
			return -1;
	}
	return n;
}

static bool skip(const char **at, const char *end, char c)
{
	if (*at >= end || **at != c)
		return false;
	(*at)++;
	return true;
}

/* "a-b" or "a" at *at. */
static bool parse_range(const char **at, const char *end, int64_t max, int64_t *lo, int64_t *hi)
{
	*lo = *hi = parse_number(at, end, max);
	if (*lo >= 0 && skip(at, end, '-'))
		*hi = parse_number(at, end, max);
	return *lo >= 0 && *hi >= *lo;
}

bool topology_parse_list(const char *text, size_t n, uint64_t *mask, unsigned bits)
{
	const char *at = text, *end = text + n;
	int64_t lo, hi;

	for (unsigned i = 0; i < bits / 64; i++)
		mask[i] = 0;
	while (at < end && *at != '\n' && *at != 0) {
		if (!parse_range(&at, end, 1 << 20, &lo, &hi))
			return false;
		for (int64_t i = lo; i <= hi && i < bits; i++)
			mask[i / 64] |= (uint64_t)1 << (i % 64);
		if (!skip(&at, end, ','))
			break;
	}
	return at >= end || *at == '\n' || *at == 0;
}

static int position_of(const struct topology_text *t, int64_t number)
{
	for (unsigned i = 0; i < t->count; i++)
		if (t->number[i] == number)
			return (int)i;
	return -1;
}

static bool parse_memory(const char **at, const char *end, uint64_t *bytes)
{
	int64_t n = parse_number(at, end, (int64_t)1 << 40);
	unsigned shift = 0;

	if (n < 0)
		return false;
	if (skip(at, end, 'K'))
		shift = 10;
	else if (skip(at, end, 'M'))
		shift = 20;
	else if (skip(at, end, 'G'))
		shift = 30;
	else if (skip(at, end, 'T'))
		shift = 40;
	if (n >> (62 - shift))
		return false;
	*bytes = (uint64_t)n << shift;
	return true;
}

/* number:memory@CPUs, each of the last two optional (0:0@0 and 2:2G are a node too). */
static bool parse_node(const char **at, const char *end, struct topology_text *out)
{
	int64_t number = parse_number(at, end, OS_NODE_BITS - 1), lo, hi;
	unsigned i = out->count;

	if (number < 0 || i == NODE_MAX || position_of(out, number) >= 0)
		return false;
	out->number[i] = (int16_t)number;
	out->memory[i] = 0;
	if (skip(at, end, ':') && !parse_memory(at, end, &out->memory[i]))
		return false;
	out->count++;
	if (!skip(at, end, '@'))
		return true;
	do {
		if (!parse_range(at, end, SIM_CPUS - 1, &lo, &hi))
			return false;
		for (; lo <= hi; lo++) {
			if (out->cpu_node[lo] >= 0)
				return false;
			out->cpu_node[lo] = (int16_t)i;
		}
	} while (skip(at, end, ','));
	return true;
}

static bool parse_distances(const char **at, const char *end, struct topology_text *out)
{
	do {
		int64_t a = parse_number(at, end, OS_NODE_BITS), b, far;

		if (!skip(at, end, ':'))
			return false;
		b = parse_number(at, end, OS_NODE_BITS);
		if (!skip(at, end, ':'))
			return false;
		far = parse_number(at, end, 255);
		int i = position_of(out, a), j = position_of(out, b);
		if (i < 0 || j < 0 || i == j || far < 10)
			return false;
		out->distance[i][j] = out->distance[j][i] = (uint8_t)far;
	} while (skip(at, end, ','));
	return true;
}

static void describe_nothing(struct topology_text *out)
{
	out->count = 0;
	for (unsigned i = 0; i < SIM_CPUS; i++)
		out->cpu_node[i] = -1;
	for (unsigned i = 0; i < NODE_MAX; i++)
		for (unsigned j = 0; j < NODE_MAX; j++)
			out->distance[i][j] = i == j ? 10 : 20;
}

bool topology_parse(const char *text, struct topology_text *out)
{
	static const char word[] = "dist=";
	const char *at = text, *end = text;
	uint64_t memory = 0;

	while (*end)
		end++;
	describe_nothing(out);
	do {
		unsigned n = 0;

		while (n < 5 && at + n < end && at[n] == word[n])
			n++;
		if (n == 5) {
			at += n;
			if (!parse_distances(&at, end, out))
				return false;
		} else if (!parse_node(&at, end, out)) {
			return false;
		}
	} while (skip(&at, end, ';') && at < end);
	for (unsigned i = 0; i < out->count; i++)
		memory |= out->memory[i];
	return at == end && memory != 0;
}

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

/*
 * Distances of `from` to the online nodes, in their order.  cold: a machine with several nodes
 * only.  Without sysfs every other node is equally far.
 */
static void read_distances(unsigned from, const uint64_t *online)
{
	char path[64], text[1024];
	long n = os_read_file(node_path(path, described.number[from], "/distance"), text,
			      sizeof(text));
	const char *at = text, *end = text + (n < 0 ? 0 : n);

	for (int node = 0; node < (int)OS_NODE_BITS && at < end; node++) {
		if (!(online[node / 64] >> (node % 64) & 1))
			continue;
		int64_t far = parse_number(&at, end, 255);
		int to = position_of(&described, node);

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

	describe_nothing(&described);
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
		bool taken[NODE_MAX] = { false };

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
	uint64_t allowed[OS_NODE_WORDS] = { 0 };
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
