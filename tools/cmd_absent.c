/* SPDX-License-Identifier: MIT */
/* Commands that this build had to leave out; they say so. */
#include "tools/cmd.h"
#include "tools/commands.h"

#ifndef HAVE_CJSON
int cmd_compare(int argc, char **argv)
{
	(void)argc;
	return cmd_fail(STATUS_UNABLE, argv[0],
			"not built in: install libcjson-dev and run 'make' again");
}
#endif
