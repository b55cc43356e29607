/* SPDX-License-Identifier: MIT */
/* The files that a comparison is read from and written to, and the terminal. */
#include <errno.h>
#include <langinfo.h>
#include <libgen.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "tools/cmd.h"
#include "tools/compare_files.h"

#define NAME "compare"

/* Reads a whole file; NULL with errno set. */
static char *read_file(const char *path)
{
	FILE *f = fopen(path, "re");
	char *text = NULL;
	size_t room = 0;
	FILE *out;
	char buf[65536];
	size_t n;

	if (!f)
		return NULL;
	out = open_memstream(&text, &room);
	while (out && (n = fread(buf, 1, sizeof buf, f)) > 0)
		fwrite(buf, 1, n, out);
	if (out)
		fclose(out);
	fclose(f);
	return text;
}

int cmp_file_load(struct cmp_document *d, const char *path, const struct cmp_document *like)
{
	char shown[PATH_MAX], *text = read_file(path);
	const char *why;

	printable(shown, sizeof shown, path);
	if (!text)
		return cmd_fail(STATUS_USAGE, NAME, "%s: %s", shown, strerror(errno));
	why = cmp_read_json(d, text, like);
	free(text);
	if (why)
		return cmd_fail(STATUS_FORMAT, NAME, "%s: %s", shown, why);
	return -1;
}

int cmp_files_check(const struct cmp_options *o)
{
	for (int i = 0; i < CMP_FORMATS; i++) {
		char copy[PATH_MAX], shown[PATH_MAX];
		const char *file = o->file[i];
		int denied;

		if (!o->wanted[i] || !file || !strcmp(file, "-"))
			continue;
		snprintf(copy, sizeof copy, "%s", file);
		denied = access(file, W_OK);
		if (denied && errno == ENOENT)
			denied = access(dirname(copy), W_OK | X_OK);
		if (denied)
			return cmd_fail(STATUS_DENIED, NAME, "%s cannot be written: %s",
					printable(shown, sizeof shown, file), strerror(errno));
	}
	return -1;
}

static struct cmp_style terminal_style(FILE *f)
{
	struct cmp_style style = {.width = 100};
	struct winsize size;

	setlocale(LC_CTYPE, "");
	style.utf8 = !strcmp(nl_langinfo(CODESET), "UTF-8");
	setlocale(LC_CTYPE, "C");
	if (isatty(fileno(f))) {
		const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");

		style.color = (!no_color || !*no_color) && term && strcmp(term, "dumb") != 0;
		if (!ioctl(fileno(f), TIOCGWINSZ, &size) && size.ws_col)
			style.width = size.ws_col;
	}
	return style;
}

int cmp_file_write(const struct cmp_document *d, const struct cmp_options *o, int format)
{
	const char *path = o->file[format];
	bool is_file = path && strcmp(path, "-") != 0;
	FILE *f = is_file ? fopen(path, "we") : stdout;
	struct cmp_style style;
	char shown[PATH_MAX];
	bool failed = !f;

	if (f && format == CMP_TABLE) {
		style = terminal_style(f);
		cmp_write_table(f, d, &style);
	} else if (f && format == CMP_MARKDOWN) {
		cmp_write_markdown(f, d);
	} else if (f && format == CMP_JSON) {
		cmp_write_json(f, d);
	} else if (f) {
		cmp_write_junit(f, d);
	}
	if (f)
		failed = fflush(f) || ferror(f);
	if (f && is_file)
		failed = fclose(f) || failed;
	if (!failed)
		return -1;
	return cmd_fail(STATUS_DENIED, NAME, "%s cannot be written: %s",
			is_file ? printable(shown, sizeof shown, path) : "standard output",
			strerror(errno));
}
