/* SPDX-License-Identifier: MIT */
/* The subcommands, in the order of `numaslab --help`.  A new one is a line here and its cmd_*.c. */
#ifndef NUMASLAB_COMMANDS_H
#define NUMASLAB_COMMANDS_H

#define COMMANDS(X)                                                                                \
	X(run, "run a program under libnumaslab.so")                                               \
	X(compare, "compare a program under glibc malloc and under libnumaslab.so")                \
	X(top, "watch running processes: what they hold on each node, and where it comes from")    \
	X(hints, "show which memory is used from which node, by NUMA hint faults")                 \
	X(stat, "show what running processes hold, by node and by size class")                     \
	X(doctor, "what this machine offers and lacks, and what to do about it")

/* argv[0] is the name of the subcommand; the result is the exit status of the process. */
#define X(name, help) int cmd_##name(int argc, char **argv);
COMMANDS(X)
#undef X

#endif
