/* SPDX-License-Identifier: MIT */
#include "allocator/topology_text.h"

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Digits at *at; -1 if there are none or the number exceeds max. */
int64_t text_number(const char **at, const char *end, int64_t max)
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
	*lo = *hi = text_number(at, end, max);
	if (*lo >= 0 && skip(at, end, '-'))
		*hi = text_number(at, end, max);
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

int topology_position(const struct topology_text *t, int64_t number)
{
	for (unsigned i = 0; i < t->count; i++)
		if (t->number[i] == number)
			return (int)i;
	return -1;
}

static bool parse_memory(const char **at, const char *end, uint64_t *bytes)
{
	int64_t n = text_number(at, end, (int64_t)1 << 40);
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
	int64_t number = text_number(at, end, NODE_NUMBERS - 1), lo, hi;
	unsigned i = out->count;

	if (number < 0 || i == NODE_MAX || topology_position(out, number) >= 0)
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
		int64_t a = text_number(at, end, NODE_NUMBERS), b, far;

		if (!skip(at, end, ':'))
			return false;
		b = text_number(at, end, NODE_NUMBERS);
		if (!skip(at, end, ':'))
			return false;
		far = text_number(at, end, 255);
		int i = topology_position(out, a), j = topology_position(out, b);
		if (i < 0 || j < 0 || i == j || far < 10)
			return false;
		out->distance[i][j] = out->distance[j][i] = (uint8_t)far;
	} while (skip(at, end, ','));
	return true;
}

void topology_describe_nothing(struct topology_text *out)
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
	topology_describe_nothing(out);
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
