/* SPDX-License-Identifier: MIT */
/*
 * helper seccomp errno|kill CALL... -- CMD...   runs CMD under a filter that refuses the calls
 * helper setcap FILE                            gives FILE the capability net_raw
 * helper elf FILE CLASS MACHINE                 changes what an ELF header says
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

static int fail(const char *what)
{
	fprintf(stderr, "helper: %s: %s\n", what, strerror(errno));
	return 120;
}

static int call_number(const char *name)
{
	static const struct {
		const char *name;
		int number;
	} calls[] = {{"mbind", SYS_mbind},
		     {"get_mempolicy", SYS_get_mempolicy},
		     {"move_pages", SYS_move_pages},
		     {"madvise", SYS_madvise}};

	for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
		if (!strcmp(calls[i].name, name))
			return calls[i].number;
	fprintf(stderr, "helper: unknown call %s\n", name);
	exit(120);
}

static int under_seccomp(char **argv)
{
	struct sock_filter code[32];
	struct sock_fprog program = {0, code};
	uint32_t verdict =
	    strcmp(argv[0], "kill") ? SECCOMP_RET_ERRNO | EPERM : SECCOMP_RET_KILL_PROCESS;

	code[program.len++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
							   offsetof(struct seccomp_data, nr));
	for (argv++; *argv && strcmp(*argv, "--") && program.len < 28; argv++) {
		code[program.len++] = (struct sock_filter)BPF_JUMP(
		    BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)call_number(*argv), 0, 1);
		code[program.len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, verdict);
	}
	code[program.len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	if (!*argv || !argv[1])
		return 120;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		return fail("seccomp");
	execvp(argv[1], argv + 1);
	return fail(argv[1]);
}

static int give_capability(const char *file)
{
	struct vfs_cap_data data = {.magic_etc = VFS_CAP_REVISION_2 | VFS_CAP_FLAGS_EFFECTIVE,
				    .data[0].permitted = 1u << CAP_NET_RAW};

	if (setxattr(file, "security.capability", &data, sizeof data, 0))
		return fail(file);
	return 0;
}

static int change_elf(const char *file, int elf_class, int machine)
{
	int fd = open(file, O_WRONLY | O_CLOEXEC);
	uint8_t c = (uint8_t)elf_class;
	uint16_t m = (uint16_t)machine;

	if (fd < 0 || pwrite(fd, &c, 1, 4) != 1 || pwrite(fd, &m, 2, 18) != 2)
		return fail(file);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc > 4 && !strcmp(argv[1], "seccomp"))
		return under_seccomp(argv + 2);
	if (argc == 3 && !strcmp(argv[1], "setcap"))
		return give_capability(argv[2]);
	if (argc == 5 && !strcmp(argv[1], "elf"))
		return change_elf(argv[2], atoi(argv[3]), atoi(argv[4]));
	return 120;
}
