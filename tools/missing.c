/* SPDX-License-Identifier: MIT */
#include "tools/missing.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/cmd.h"

/* Whether /proc lets us look into it; else errno. */
static bool may_look(int pid)
{
	char path[64];
	int fd;

	snprintf(path, sizeof path, "/proc/%d/maps", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	close(fd);
	return true;
}

static int denied_process(const char *cmd, int pid, int error, char *why, size_t size)
{
	char path[64], name[64];
	const struct passwd *user;
	struct stat st;

	snprintf(path, sizeof path, "/proc/%d", pid);
	if (geteuid() == 0 || stat(path, &st) < 0 || st.st_uid == geteuid()) {
		snprintf(why, size,
			 "process %d may not be looked into (/proc/%d/maps: %s): this "
			 "container or security policy forbids it; ask from outside of it",
			 pid, pid, strerror(error));
		return STATUS_DENIED;
	}
	user = getpwuid(st.st_uid);
	snprintf(name, sizeof name, "%u", (unsigned)st.st_uid);
	if (user)
		printable(name, sizeof name, user->pw_name);
	snprintf(why, size,
		 "process %d belongs to another user, %s: ask as that user or as root, as in "
		 "'sudo numaslab %s%s %d'",
		 pid, name, cmd, strcmp(cmd, "top") ? "" : " -p", pid);
	return STATUS_DENIED;
}

int missing_process_why(const char *cmd, int pid, char *why, size_t size)
{
	if (kill(pid, 0) < 0 && errno == ESRCH)
		snprintf(why, size,
			 "no process %d: it has exited, or its number is another one; "
			 "'numaslab stat' lists the processes that publish",
			 pid);
	else if (!may_look(pid))
		return denied_process(cmd, pid, errno, why, size);
	else
		snprintf(why, size,
			 "process %d does not publish: it is not under libnumaslab.so (start it "
			 "with 'numaslab run'), is younger than a second, or has "
			 "NUMASLAB_TELEMETRY=0",
			 pid);
	return STATUS_NOTHING;
}

int missing_all_why(const char *cmd, const struct process_set *set, char *why, size_t size)
{
	if (set->denied) {
		snprintf(why, size,
			 "no process of yours publishes, and those of other users are shown "
			 "to root alone, as in 'sudo numaslab %s'",
			 cmd);
		return STATUS_DENIED;
	}
	const char *dir = getenv("NUMASLAB_DIR");
	char shown[256];

	snprintf(
	    why, size,
	    "no process publishes%s%s%s: start one with 'numaslab run -- CMD' and give it a second",
	    dir && *dir ? " in " : "", dir && *dir ? printable(shown, sizeof shown, dir) : "",
	    dir && *dir ? ", where NUMASLAB_DIR has us look" : "");
	return STATUS_NOTHING;
}

int missing_process(const char *cmd, int pid)
{
	char why[512];
	int status = missing_process_why(cmd, pid, why, sizeof why);

	return cmd_fail(status, cmd, "%s", why);
}

int missing_all(const char *cmd, const struct process_set *set)
{
	char why[512];
	int status = missing_all_why(cmd, set, why, sizeof why);

	return cmd_fail(status, cmd, "%s", why);
}
