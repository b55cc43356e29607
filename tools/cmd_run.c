/* SPDX-License-Identifier: MIT */
/* numaslab run: settles the variables, finds the library, and becomes the program. */
#include <errno.h>
#include <grp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "tools/cmd.h"
#include "tools/commands.h"
#include "tools/library.h"
#include "tools/program.h"
#include "tools/tunables_doc.h"

extern char **environ;

enum { OPT_SET = 256, OPT_PLACEMENT, OPT_CHECK, OPT_LIBRARY, OPT_TUNABLES, OPT_VERSION };

static const struct option options[] = {
    {"set", required_argument, NULL, OPT_SET},
    {"placement", required_argument, NULL, OPT_PLACEMENT},
    {"check", no_argument, NULL, OPT_CHECK},
    {"library", required_argument, NULL, OPT_LIBRARY},
    {"help-tunables", optional_argument, NULL, OPT_TUNABLES},
    {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, OPT_VERSION},
    {NULL, 0, NULL, 0},
};

static int print_help(void)
{
	puts("Usage: numaslab run [options] [--] CMD [ARG...]\n"
	     "Run CMD with libnumaslab.so as its malloc.  An LD_PRELOAD that is set is kept,\n"
	     "behind the library.\n\n"
	     "      --set NAME=VALUE   set a variable of the library, with or without NUMASLAB_\n"
	     "      --placement MODE   home, observe or kernel: the same as --set PLACEMENT=MODE\n"
	     "      --check            the same as --set CHECK=1\n"
	     "      --library FILE     preload FILE instead of the library that is found\n"
	     "      --help-tunables    show each variable, its default, range and meaning\n"
	     "      --help             show this text\n"
	     "      --version          show the version\n\n"
	     "Exit status: that of CMD, or 2 wrong usage or a bad NUMASLAB_* variable,\n"
	     "125 numaslab itself failed, 126 CMD cannot be run or cannot be preloaded,\n"
	     "127 CMD is not found.");
	return STATUS_DONE;
}

static int print_tunables(const char *form)
{
	if (!form)
		tunables_print(stdout);
	else if (!strcmp(form, "man"))
		tunables_print_man(stdout);
	else if (!strcmp(form, "names"))
		tunables_print_names(stdout);
	else
		return cmd_usage("run", "--help-tunables is man, names or nothing");
	return STATUS_DONE;
}

/* Judges NAME=VALUE and puts it into the environment; 0 or an exit status. */
static int set_tunable(const char *assignment)
{
	char why[512], name[64];
	const char *bare = assignment, *value;

	if (tunable_judge(assignment, why, sizeof why) != TUNABLE_GOOD)
		return cmd_usage("run", "%s", why);
	if (!strncmp(bare, TUNABLE_PREFIX, strlen(TUNABLE_PREFIX)))
		bare += strlen(TUNABLE_PREFIX);
	value = strchr(bare, '=') + 1;
	snprintf(name, sizeof name, TUNABLE_PREFIX "%.*s", (int)(value - 1 - bare), bare);
	if (setenv(name, value, 1))
		return cmd_fail(STATUS_RUN_ITSELF, "run", "cannot set %s: %s", name,
				strerror(errno));
	return 0;
}

static void complain(const char *why, void *data)
{
	(void)data;
	fprintf(stderr, "numaslab run: %s\n", why);
}

/* What the caller's environment holds, with the options already in it. */
static int check_environment(void)
{
	const char *group = getenv(TUNABLE_PREFIX "GROUP");
	const struct group *entry;
	char number[32];

	if (tunables_judge_all(environ, complain, NULL)) {
		fputs("Unset or correct it; 'numaslab run --help-tunables' lists the variables.\n",
		      stderr);
		return STATUS_USAGE;
	}
	if (!group || !*group || !group[strspn(group, "0123456789")])
		return 0;
	entry = getgrnam(group); /* the library cannot look names up */
	if (!entry)
		return cmd_fail(STATUS_RUN_ITSELF, "run", "cannot look up the group: %s",
				strerror(errno));
	snprintf(number, sizeof number, "%lu", (unsigned long)entry->gr_gid);
	return setenv(TUNABLE_PREFIX "GROUP", number, 1) ? STATUS_RUN_ITSELF : 0;
}

static int find_library(struct library *lib, const char *given, struct elf_id *id)
{
	char places[3 * PATH_MAX + 16], shown[PATH_MAX];

	if (given && !realpath(given, lib->path))
		return cmd_fail(STATUS_RUN_ITSELF, "run", "cannot use the library '%s': %s",
				printable(shown, sizeof shown, given), strerror(errno));
	if (!given && !library_find(lib)) {
		library_places(lib, places, sizeof places);
		return cmd_fail(STATUS_RUN_ITSELF, "run",
				"cannot find " LIBRARY_NAME
				" (looked for %s); build it with 'make', "
				"or name it with --library FILE",
				places);
	}
	printable(shown, sizeof shown, lib->path);
	if (!elf_identify(lib->path, id))
		return cmd_fail(STATUS_RUN_ITSELF, "run", "'%s' is not a shared library", shown);
	/* The loader splits LD_PRELOAD at both, and knows no quoting. */
	if (strpbrk(lib->path, " :"))
		return cmd_fail(STATUS_RUN_ITSELF, "run",
				"'%s' has a space or a colon in its path, which LD_PRELOAD "
				"cannot express; copy it elsewhere and use --library FILE",
				shown);
	return 0;
}

/* Ours first, so that it is ours that answers; one that is there already is not named twice. */
static int set_preload(const char *path)
{
	const char *old = getenv("LD_PRELOAD");
	size_t len = strlen(path);
	char *all = NULL;
	int failed;

	if (!old || !*old) {
		failed = setenv("LD_PRELOAD", path, 1);
	} else {
		for (const char *s = old; (s = strstr(s, path)); s += len)
			if ((s == old || strchr(" :", s[-1])) && (!s[len] || strchr(" :", s[len])))
				return 0;
		failed = asprintf(&all, "%s:%s", path, old) < 0 || setenv("LD_PRELOAD", all, 1);
		free(all);
	}
	if (failed)
		return cmd_fail(STATUS_RUN_ITSELF, "run", "cannot set LD_PRELOAD: %s",
				strerror(errno));
	return 0;
}

static int examine(const char *name, const struct elf_id *library)
{
	struct program program;
	char why[1400];

	program_examine(&program, name, library);
	if (program.kind == PROGRAM_GOOD)
		return 0;
	program_explain(&program, name, why, sizeof why);
	return cmd_fail(program.kind == PROGRAM_ABSENT || program.kind == PROGRAM_NO_LOADER
			    ? STATUS_RUN_ABSENT
			    : STATUS_RUN_CANNOT,
			"run", "%s", why);
}

static int run_command(char **argv, const char *library)
{
	struct library lib;
	struct elf_id id;
	char shown[256];
	int status;

	if ((status = check_environment()) || (status = find_library(&lib, library, &id)) ||
	    (status = examine(argv[0], &id)) || (status = set_preload(lib.path)))
		return status;
	fflush(NULL);
	execvp(argv[0], argv);
	status = errno == ENOENT ? STATUS_RUN_ABSENT : STATUS_RUN_CANNOT;
	return cmd_fail(status, "run", "cannot run '%s': %s",
			printable(shown, sizeof shown, argv[0]), strerror(errno));
}

int cmd_run(int argc, char **argv)
{
	const char *library = NULL;
	char mode[320];
	int got, status = 0;

	opterr = 0;
	while (!status && (got = getopt_long(argc, argv, "+:h", options, NULL)) != -1) {
		switch (got) {
		case OPT_SET:
			status = set_tunable(optarg);
			break;
		case OPT_PLACEMENT:
			snprintf(mode, sizeof mode, "PLACEMENT=%s", optarg);
			status = set_tunable(mode);
			break;
		case OPT_CHECK:
			status = set_tunable("CHECK=1");
			break;
		case OPT_LIBRARY:
			library = optarg;
			break;
		case OPT_TUNABLES:
			return print_tunables(optarg);
		case OPT_VERSION:
			return cmd_version();
		case 'h':
			return print_help();
		default:
			status = cmd_option_error("run", argv, got, options);
		}
	}
	if (status)
		return status;
	if (optind == argc)
		return cmd_usage("run", "no command given; as in 'numaslab run -- CMD ARG'");
	return run_command(argv + optind, library);
}
