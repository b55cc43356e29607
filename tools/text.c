/* SPDX-License-Identifier: MIT */
/* Text for people: nearest words, safe characters, wrapped lines, complaints. */
#include "tools/cmd.h"

#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

#define WORD_MAX 48

static void vcomplain(const char *cmd, const char *format, va_list args)
{
	fprintf(stderr, "numaslab%s%s: ", cmd ? " " : "", cmd ? cmd : "");
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
}

int cmd_usage(const char *cmd, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vcomplain(cmd, format, args);
	va_end(args);
	fprintf(stderr, "Try 'numaslab%s%s --help'.\n", cmd ? " " : "", cmd ? cmd : "");
	return STATUS_USAGE;
}

int cmd_fail(int status, const char *cmd, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vcomplain(cmd, format, args);
	va_end(args);
	return status;
}

int cmd_version(void)
{
	puts("numaslab " NUMASLAB_VERSION);
	return STATUS_DONE;
}

static int unknown_long_option(const char *cmd, const char *given, const struct option *options)
{
	const char *names[64], *near;
	char name[WORD_MAX], shown[128];
	size_t count = 0, len = strcspn(given, "=");

	for (; options->name && count < 64; options++)
		names[count++] = options->name;
	snprintf(name, sizeof name, "%.*s", (int)(len > 100 ? 100 : len) - 2, given + 2);
	near = nearest_word(name, names, count);
	printable(shown, sizeof shown, given);
	shown[strcspn(shown, "=")] = 0;
	if (near)
		return cmd_usage(cmd, "unknown option '%s'; did you mean '--%s'?", shown, near);
	return cmd_usage(cmd, "unknown option '%s'", shown);
}

int cmd_option_error(const char *cmd, char **argv, int got, const struct option *options)
{
	const char *given = argv[optind - 1];
	char shown[128];

	printable(shown, sizeof shown, given);
	if (got == ':')
		return cmd_usage(cmd, "option '%s' needs a value", shown);
	if (strncmp(given, "--", 2))
		return cmd_usage(cmd, "unknown option '-%c'",
				 optopt > ' ' && optopt < 127 ? optopt : '?');
	shown[strcspn(shown, "=")] = 0;
	if (optopt)
		return cmd_usage(cmd, "option '%s' takes no value", shown);
	return unknown_long_option(cmd, given, options);
}

static size_t least(size_t a, size_t b, size_t c)
{
	return a < b ? (a < c ? a : c) : (b < c ? b : c);
}

/* Optimal string alignment: insertions, deletions, changes and swaps of neighbours cost 1. */
static size_t edit_distance(const char *a, const char *b)
{
	size_t rows[3][WORD_MAX + 1], na = strlen(a), nb = strlen(b);
	size_t *before = rows[0], *last = rows[1], *now = rows[2];

	if (na > WORD_MAX || nb > WORD_MAX)
		return WORD_MAX;
	for (size_t j = 0; j <= nb; j++)
		last[j] = j;
	for (size_t i = 1; i <= na; i++) {
		size_t *spare = before;

		now[0] = i;
		for (size_t j = 1; j <= nb; j++) {
			now[j] = least(last[j] + 1, now[j - 1] + 1,
				       last[j - 1] + !!strncasecmp(a + i - 1, b + j - 1, 1));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
			    before[j - 2] + 1 < now[j])
				now[j] = before[j - 2] + 1;
		}
		before = last;
		last = now;
		now = spare;
	}
	return last[nb];
}

const char *nearest_word(const char *to, const char *const *words, size_t count)
{
	const char *best = NULL;
	size_t best_distance = 0, len = strlen(to);

	for (size_t i = 0; i < count; i++) {
		size_t d = edit_distance(to, words[i]);

		/* The beginning of a word is near it, however much is missing. */
		if (len >= 2 && !strncasecmp(to, words[i], len))
			d = 1;
		if (d <= 1 + len / 4 && d < len && (!best || d < best_distance)) {
			best = words[i];
			best_distance = d;
		}
	}
	return best;
}

/* The length of the UTF-8 sequence at s, if it is a printable one; else 0. */
static size_t utf8_length(const unsigned char *s)
{
	size_t n = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;

	if (s[0] < 0xc2 || s[0] > 0xf4)
		return 0;
	for (size_t i = 1; i < n; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	if (s[0] == 0xc2 && s[1] < 0xa0) /* C1 controls */
		return 0;
	if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
	    (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
		return 0;
	/* Marks that turn the direction of the text: U+200E, U+200F, U+202A-202E, U+2066-2069. */
	if (s[0] == 0xe2 &&
	    ((s[1] == 0x80 && (s[2] == 0x8e || s[2] == 0x8f || s[2] >= 0xa8) && s[2] <= 0xae) ||
	     (s[1] == 0x81 && s[2] >= 0xa6 && s[2] <= 0xa9)))
		return 0;
	return n;
}

char *printable(char *buf, size_t size, const char *s)
{
	const unsigned char *in = (const unsigned char *)s;
	size_t used = 0;

	while (*in) {
		size_t n = *in >= 0x20 && *in < 0x7f ? 1 : *in >= 0x80 ? utf8_length(in) : 0;
		bool good = n > 0;

		if (!n)
			n = 1;
		if (used + n >= size)
			break;
		if (good)
			memcpy(buf + used, in, n);
		else
			buf[used] = '?';
		used += n;
		in += n;
	}
	buf[used] = 0;
	return buf;
}

void print_wrapped(FILE *out, const char *text, int column, int indent, int width)
{
	bool first = true;

	while (*text) {
		int len = (int)strcspn(text, " ");

		if (!first && column + 1 + len > width) {
			fprintf(out, "\n%*s", indent, "");
			column = indent;
		} else if (!first) {
			fputc(' ', out);
			column++;
		}
		fwrite(text, 1, (size_t)len, out);
		column += len;
		first = false;
		text += len;
		text += strspn(text, " ");
	}
	fputc('\n', out);
}
