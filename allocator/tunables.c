/* SPDX-License-Identifier: MIT */
/* The parser of the NUMASLAB_* table: plain loops, because it runs inside the first malloc. */
#include "allocator/tunables.h"

#define INIT_BOOL(f, d)	  .f = (d),
#define INIT_UINT(f, d)	  .f = (d),
#define INIT_BYTES(f, d)  .f = (d),
#define INIT_POW2(f, d)	  .f = (d),
#define INIT_ENUM(f, d)	  .f = (d),
#define INIT_PATH(f, d)	  .f = "",
#define INIT_STRING(f, d) .f = "",

#define X(field, name, type, initial, ...) INIT_##type(field, initial)
static const struct tunables defaults = {TUNABLES(X)};
struct tunables tunables = {TUNABLES(X)};
#undef X

const struct tunable tunable_table[TUNABLE_COUNT] = {
#define X(f, NAME, TYPE, d, lo, hi, w, help)                                                       \
	{#NAME, w, TUNABLE_##TYPE, offsetof(struct tunables, f), d, lo, hi},
    TUNABLES(X)
#undef X
};

#define X(f, NAME, TYPE, d, lo, hi, w, help)                                                       \
	_Static_assert(sizeof(#NAME) <= sizeof(((struct tunable *)0)->name) &&                     \
			   sizeof(w) <= sizeof(((struct tunable *)0)->words),                      \
		       "no room for the name or the words of " #NAME);
TUNABLES(X)
#undef X
_Static_assert(TUNABLE_COUNT <= 64, "tunables_parse keeps the names seen in one word");

/* ASCII only: the locale is not ours to ask. */
static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* The index of text in a list of words separated by bars, or -1. */
static int word_index(const char *words, const char *text)
{
	int index = 0;

	for (const char *w = words;; index++) {
		const char *t = text;

		while (*w && *w != '|' && lower(*t) == *w)
			w++, t++;
		if (!*t && (!*w || *w == '|'))
			return index;
		while (*w && *w != '|')
			w++;
		if (!*w++)
			return -1;
	}
}

/* The power of two that a suffix stands for; -1 if it is none. */
static int suffix_shift(const char *s)
{
	if (!*s)
		return 0;
	if (s[1])
		return -1;
	switch (lower(*s)) {
	case 'k':
		return 10;
	case 'm':
		return 20;
	case 'g':
		return 30;
	case 't':
		return 40;
	}
	return -1;
}

static bool number_parse(const char *text, bool suffix, uint64_t *out)
{
	uint64_t n = 0;
	const char *s = text;
	int shift;

	for (; *s >= '0' && *s <= '9'; s++)
		if (__builtin_mul_overflow(n, 10, &n) ||
		    __builtin_add_overflow(n, (uint64_t)(*s - '0'), &n))
			return false;
	if (s == text || (*s && !suffix))
		return false;
	shift = suffix_shift(s);
	if (shift < 0 || n > UINT64_MAX >> shift)
		return false;
	*out = n << shift;
	return true;
}

static bool number_set(const struct tunable *t, const char *text, uint64_t *out)
{
	uint64_t n;

	if (!number_parse(text, t->type != TUNABLE_UINT, &n))
		return false;
	if (n != t->initial && (n < t->min || n > t->max))
		return false;
	if (t->type == TUNABLE_POW2 && n)
		n = 1ull << (63 - __builtin_clzll(n));
	*out = n;
	return true;
}

static bool string_set(const struct tunable *t, const char *text, char *out)
{
	size_t len = 0;

	if (t->type == TUNABLE_PATH && *text && *text != '/')
		return false;
	while (text[len])
		if (++len > TUNABLE_STRING_MAX)
			return false;
	for (size_t i = 0; i <= len; i++)
		out[i] = text[i];
	return true;
}

bool tunable_set(const struct tunable *t, const char *text, struct tunables *out)
{
	void *field = (char *)out + t->offset;
	int index;

	switch ((enum tunable_type)t->type) {
	case TUNABLE_BOOL:
		index = word_index("0|1|no|yes|off|on|false|true", text);
		if (index >= 0)
			*(bool *)field = index & 1;
		return index >= 0;
	case TUNABLE_ENUM:
		index = word_index(t->words, text);
		if (index >= 0)
			*(uint32_t *)field = (uint32_t)index;
		return index >= 0;
	case TUNABLE_UINT:
	case TUNABLE_BYTES:
	case TUNABLE_POW2:
		return number_set(t, text, field);
	case TUNABLE_PATH:
	case TUNABLE_STRING:
		return string_set(t, text, field);
	}
	return false;
}

const struct tunable *tunable_find(const char *name, size_t len)
{
	for (const struct tunable *t = tunable_table; t < tunable_table + TUNABLE_COUNT; t++) {
		size_t i = 0;

		while (i < len && t->name[i] && t->name[i] == name[i])
			i++;
		if (i == len && !t->name[i])
			return t;
	}
	return NULL;
}

/* The part of an environment entry behind the prefix, or NULL. */
static const char *behind_prefix(const char *entry)
{
	for (const char *p = TUNABLE_PREFIX; *p; p++, entry++)
		if (*p != *entry)
			return NULL;
	return entry;
}

void tunables_parse(char *const *envp, bool secure)
{
	uint64_t seen = 0;

	tunables = defaults;
	if (!envp || secure)
		return;
	for (; *envp; envp++) {
		const char *name = behind_prefix(*envp);
		const struct tunable *t;
		size_t len = 0;

		if (!name)
			continue;
		while (name[len] && name[len] != '=')
			len++;
		t = name[len] ? tunable_find(name, len) : NULL;
		if (!t || seen & 1ull << (t - tunable_table))
			continue;
		seen |= 1ull << (t - tunable_table);
		if (name[len + 1])
			tunable_set(t, name + len + 1, &tunables);
	}
}
