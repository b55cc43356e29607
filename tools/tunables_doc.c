/* SPDX-License-Identifier: MIT */
#include "tools/tunables_doc.h"

#include <grp.h>
#include <stdlib.h>
#include <string.h>
#include "allocator/topology_text.h"
#include "tools/cmd.h"

static const char *const helps[] = {
#define X(f, NAME, TYPE, d, lo, hi, w, help) help,
    TUNABLES(X)
#undef X
};

const char *tunable_help(enum tunable_id id)
{
	return helps[id];
}

static bool is_size(const struct tunable *t)
{
	return t->type == TUNABLE_BYTES || t->type == TUNABLE_POW2;
}

/* A size with the largest suffix that leaves it whole. */
static void number_text(const struct tunable *t, uint64_t n, char *buf, size_t size)
{
	static const char suffixes[] = " KMGT";
	size_t i = 0;

	if (!is_size(t)) {
		snprintf(buf, size, "%llu", (unsigned long long)n);
		return;
	}
	for (; n && n % 1024 == 0 && i < 4; i++)
		n /= 1024;
	snprintf(buf, size, i ? "%llu%c" : "%llu", (unsigned long long)n, suffixes[i]);
}

void tunable_default_text(enum tunable_id id, char *buf, size_t size)
{
	const struct tunable *t = &tunable_table[id];
	const char *word = t->words;

	if (t->type == TUNABLE_ENUM) {
		for (uint64_t i = 0; i < t->initial; i++)
			word += strcspn(word, "|") + 1;
		snprintf(buf, size, "%.*s", (int)strcspn(word, "|"), word);
	} else if (t->type == TUNABLE_PATH || t->type == TUNABLE_STRING) {
		snprintf(buf, size, "unset");
	} else {
		number_text(t, t->initial, buf, size);
	}
}

void tunable_range_text(enum tunable_id id, char *buf, size_t size)
{
	const struct tunable *t = &tunable_table[id];
	char low[32], high[32], special[40] = "";

	number_text(t, t->min, low, sizeof low);
	number_text(t, t->max, high, sizeof high);
	if (t->initial < t->min)
		snprintf(special, sizeof special, "%llu or ", (unsigned long long)t->initial);
	switch ((enum tunable_type)t->type) {
	case TUNABLE_BOOL:
		snprintf(buf, size, "0|1");
		break;
	case TUNABLE_ENUM:
		snprintf(buf, size, "%s", t->words);
		break;
	case TUNABLE_UINT:
	case TUNABLE_BYTES:
	case TUNABLE_POW2:
		snprintf(buf, size, "%s%s..%s", special, low, high);
		break;
	case TUNABLE_PATH:
		snprintf(buf, size, "an absolute path");
		break;
	case TUNABLE_STRING:
		snprintf(buf, size, "text");
		break;
	}
}

static enum tunable_verdict unknown_name(const char *name, char *why, size_t size)
{
	const char *names[TUNABLE_COUNT], *near;
	char shown[64];

	for (size_t i = 0; i < TUNABLE_COUNT; i++)
		names[i] = tunable_table[i].name;
	near = nearest_word(name, names, TUNABLE_COUNT);
	printable(shown, sizeof shown, name);
	if (near)
		snprintf(why, size,
			 TUNABLE_PREFIX
			 "%s is not a variable of numaslab; did you mean " TUNABLE_PREFIX "%s?",
			 shown, near);
	else
		snprintf(why, size,
			 TUNABLE_PREFIX "%s is not a variable of numaslab; "
					"'numaslab run --help-tunables' lists them",
			 shown);
	return TUNABLE_UNKNOWN;
}

static const char *kind_text(const struct tunable *t)
{
	switch ((enum tunable_type)t->type) {
	case TUNABLE_BOOL:
		return "a switch, ";
	case TUNABLE_ENUM:
		return "one of ";
	case TUNABLE_UINT:
		return "a number, ";
	case TUNABLE_BYTES:
	case TUNABLE_POW2:
		return "bytes with an optional K, M, G or T, ";
	case TUNABLE_PATH:
	case TUNABLE_STRING:
		break;
	}
	return "";
}

static enum tunable_verdict bad_value(const struct tunable *t, const char *value, char *why,
				      size_t size)
{
	char shown[80], range[64];

	printable(shown, sizeof shown, value);
	tunable_range_text((enum tunable_id)(t - tunable_table), range, sizeof range);
	if (strlen(value) > TUNABLE_STRING_MAX)
		snprintf(why, size, TUNABLE_PREFIX "%s is too long: %zu bytes, at most %d are kept",
			 t->name, strlen(value), TUNABLE_STRING_MAX);
	else
		snprintf(why, size, TUNABLE_PREFIX "%s cannot be '%s': it is %s%s", t->name, shown,
			 kind_text(t), range);
	return TUNABLE_BAD_VALUE;
}

/* What the parser of the library does not know of, because it means something only later. */
static enum tunable_verdict judge_meaning(const struct tunable *t, const char *value, char *why,
					  size_t size)
{
	static struct topology_text scratch;
	char shown[80];

	printable(shown, sizeof shown, value);
	if (t == &tunable_table[TUNABLE_ID_GROUP] && value[strspn(value, "0123456789")] &&
	    !getgrnam(value)) {
		snprintf(why, size, TUNABLE_PREFIX "GROUP cannot be '%s': there is no such group",
			 shown);
		return TUNABLE_BAD_VALUE;
	}
	if (t == &tunable_table[TUNABLE_ID_TOPOLOGY] && !topology_parse(value, &scratch)) {
		snprintf(why, size,
			 TUNABLE_PREFIX "TOPOLOGY cannot be '%s': it is node:memory@CPUs;..., "
					"as in 0:1G@0;1:1G@1-3;dist=0:1:20",
			 shown);
		return TUNABLE_BAD_VALUE;
	}
	return TUNABLE_GOOD;
}

enum tunable_verdict tunable_judge(const char *assignment, char *why, size_t size)
{
	const char *value = strchr(assignment, '='), *name = assignment;
	struct tunables scratch;
	const struct tunable *t;
	char bare[64], shown[80];

	if (!strncmp(name, TUNABLE_PREFIX, strlen(TUNABLE_PREFIX)))
		name += strlen(TUNABLE_PREFIX);
	if (!value || value == name) {
		snprintf(why, size, "'%s' is not NAME=VALUE",
			 printable(shown, sizeof shown, assignment));
		return TUNABLE_MALFORMED;
	}
	t = tunable_find(name, (size_t)(value - name));
	if (!t) {
		snprintf(bare, sizeof bare, "%.*s", (int)(value - name > 60 ? 60 : value - name),
			 name);
		return unknown_name(bare, why, size);
	}
	value++;
	if (!*value)
		return TUNABLE_GOOD;
	if (!tunable_set(t, value, &scratch))
		return bad_value(t, value, why, size);
	return judge_meaning(t, value, why, size);
}

size_t tunables_judge_all(char *const *envp, void (*bad)(const char *why, void *data), void *data)
{
	size_t count = 0;
	char why[512];

	for (; *envp; envp++) {
		if (strncmp(*envp, TUNABLE_PREFIX, strlen(TUNABLE_PREFIX)))
			continue;
		if (tunable_judge(*envp, why, sizeof why) == TUNABLE_GOOD)
			continue;
		count++;
		bad(why, data);
	}
	return count;
}

void tunables_print(FILE *out)
{
	char initial[32], range[64];

	fprintf(out, "%-27s %-8s %s\n", "Variable", "Default", "Range");
	for (int i = 0; i < TUNABLE_COUNT; i++) {
		tunable_default_text((enum tunable_id)i, initial, sizeof initial);
		tunable_range_text((enum tunable_id)i, range, sizeof range);
		fprintf(out, TUNABLE_PREFIX "%-18s %-8s %s\n    ", tunable_table[i].name, initial,
			range);
		print_wrapped(out, helps[i], 4, 4, 79);
	}
}

void tunables_print_man(FILE *out)
{
	char initial[32], range[64];

	for (int i = 0; i < TUNABLE_COUNT; i++) {
		tunable_default_text((enum tunable_id)i, initial, sizeof initial);
		tunable_range_text((enum tunable_id)i, range, sizeof range);
		fprintf(out, ".TP\n.BR " TUNABLE_PREFIX "%s \" (%s; default %s)\"\n",
			tunable_table[i].name, range, initial);
		for (const char *s = helps[i]; *s; s++)
			fputs(*s == '-' ? "\\-" : *s == '\\' ? "\\e" : (char[2]){*s, 0}, out);
		fputs(".\n", out);
	}
}

void tunables_print_names(FILE *out)
{
	for (int i = 0; i < TUNABLE_COUNT; i++)
		fprintf(out, "%s=%s\n", tunable_table[i].name, tunable_table[i].words);
}
