/* SPDX-License-Identifier: MIT */
/* The command: finds the subcommand in the table and calls it. */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "tools/cmd.h"
#include "tools/commands.h"

static const struct command {
	const char *name, *help;
	int (*run)(int argc, char **argv);
} commands[] = {
#define X(name, help) {#name, help, cmd_##name},
    COMMANDS(X)
#undef X
};

#define COMMAND_COUNT (sizeof commands / sizeof *commands)

static void print_help(FILE *out)
{
	fputs("Usage: numaslab COMMAND [options]\n"
	      "A malloc that keeps memory on the node whose CPU asked for it, and its tools.\n\n"
	      "Commands:\n",
	      out);
	for (size_t i = 0; i < COMMAND_COUNT; i++)
		fprintf(out, "  %-10s %s\n", commands[i].name, commands[i].help);
	fputs("\n'numaslab COMMAND --help' tells more about one; 'numaslab run --help-tunables'\n"
	      "lists the variables that the library reads.\n"
	      "      --help     show this text\n"
	      "      --version  show the version\n"
	      "\nExit status: 0 done, 2 wrong usage, 3 nothing to show, 4 not permitted,\n"
	      "5 format version not understood, 77 the machine cannot do this.\n",
	      out);
}

static const struct command *command_find(const char *name)
{
	for (size_t i = 0; i < COMMAND_COUNT; i++)
		if (!strcmp(name, commands[i].name))
			return &commands[i];
	return NULL;
}

static int unknown_command(const char *name)
{
	const char *names[COMMAND_COUNT], *near;
	char shown[64];

	for (size_t i = 0; i < COMMAND_COUNT; i++)
		names[i] = commands[i].name;
	printable(shown, sizeof shown, name);
	if (*name == '-')
		return cmd_usage(NULL, "unknown option '%s'", shown);
	near = nearest_word(name, names, COMMAND_COUNT);
	if (near)
		return cmd_usage(NULL, "no command '%s'; did you mean '%s'?", shown, near);
	return cmd_usage(NULL, "no command '%s'", shown);
}

/* A report that did not arrive is not done.  A pipe whose reader left knows. */
static int written(int status)
{
	errno = 0;
	if ((fflush(stdout) == 0 && !ferror(stdout)) || status != STATUS_DONE)
		return status;
	return errno == EPIPE ? STATUS_UNABLE
			      : cmd_fail(STATUS_UNABLE, NULL, "standard output: %s",
					 errno ? strerror(errno) : "not all was written");
}

int main(int argc, char **argv)
{
	const struct command *command;
	char *help[] = {NULL, "--help", NULL};
	bool wants_help;

	if (argc < 2) {
		fputs("numaslab: no command given\n\n", stderr);
		print_help(stderr);
		return STATUS_USAGE;
	}
	wants_help =
	    !strcmp(argv[1], "help") || !strcmp(argv[1], "--help") || !strcmp(argv[1], "-h");
	if (wants_help && argc == 2) {
		print_help(stdout);
		return written(STATUS_DONE);
	}
	if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V"))
		return cmd_version();
	if (!strcmp(argv[1], "--list-commands")) { /* for the shell completion */
		for (size_t i = 0; i < COMMAND_COUNT; i++)
			puts(commands[i].name);
		return STATUS_DONE;
	}
	command = command_find(argv[wants_help ? 2 : 1]);
	if (!command)
		return unknown_command(argv[wants_help ? 2 : 1]);
	if (wants_help) {
		help[0] = argv[2];
		return written(command->run(2, help));
	}
	if (argc == 3 && !strcmp(argv[2], "--version"))
		return cmd_version();
	return written(command->run(argc - 1, argv + 1));
}
