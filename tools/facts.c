/* SPDX-License-Identifier: MIT */
#include "tools/facts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/rseq.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#ifndef AT_RSEQ_FEATURE_SIZE
#define AT_RSEQ_FEATURE_SIZE 27
#endif

extern const unsigned int __rseq_size __attribute__((weak));

const char *facts_variable(const struct facts *f, const char *name)
{
	size_t len = strlen(name);

	for (char *const *e = f->envp; *e; e++)
		if (!strncmp(*e, name, len) && (*e)[len] == '=')
			return *e + len + 1;
	return NULL;
}

static void gather_kernel(struct facts *f)
{
	struct utsname u;

	f->page = sysconf(_SC_PAGESIZE);
	f->uid = geteuid();
	if (!uname(&u)) {
		snprintf(f->arch, sizeof f->arch, "%s", u.machine);
		snprintf(f->release, sizeof f->release, "%s", u.release);
	}
	read_text(f->root, "/proc/sys/kernel/osrelease", f->release, sizeof f->release);
	f->balancing = read_number(f->root, "/proc/sys/kernel/numa_balancing");
	f->overcommit = read_number(f->root, "/proc/sys/vm/overcommit_memory");
	f->max_map_count = read_number(f->root, "/proc/sys/vm/max_map_count");
}

static void gather_pages(struct facts *f)
{
	char text[8192], field[64], *open, *end;

	read_text(f->root, "/sys/kernel/mm/transparent_hugepage/enabled", text, sizeof text);
	open = strchr(text, '[');
	end = open ? strchr(open, ']') : NULL;
	if (end)
		snprintf(f->thp, sizeof f->thp, "%.*s", (int)(end - open - 1), open + 1);
	f->huge_total = f->huge_free = f->huge_kb = -1;
	if (!read_text(f->root, "/proc/meminfo", text, sizeof text))
		return;
	if (text_field(text, "HugePages_Total:", field, sizeof field))
		f->huge_total = strtoll(field, NULL, 10);
	if (text_field(text, "HugePages_Free:", field, sizeof field))
		f->huge_free = strtoll(field, NULL, 10);
	if (text_field(text, "Hugepagesize:", field, sizeof field))
		f->huge_kb = strtoll(field, NULL, 10);
}

static void gather_shm(struct facts *f)
{
	const char *dir = facts_variable(f, "NUMASLAB_DIR");
	char shm[PATH_MAX];
	struct statvfs fs;
	struct stat st;

	snprintf(shm, sizeof shm, "%s/dev/shm", f->root);
	f->shm_exists = !stat(shm, &st) && S_ISDIR(st.st_mode);
	f->shm_writable = f->shm_exists && !access(shm, W_OK | X_OK);
	if (!*f->root && f->shm_exists && !statvfs(shm, &fs)) {
		f->shm_size = (uint64_t)fs.f_blocks * fs.f_frsize;
		f->shm_free = (uint64_t)fs.f_bavail * fs.f_frsize;
		f->shm_writable = f->shm_writable && !(fs.f_flag & ST_RDONLY);
	}
	if (dir && *dir)
		snprintf(f->shm_dir, sizeof f->shm_dir, "%s", dir);
	else
		snprintf(f->shm_dir, sizeof f->shm_dir, "%s/dev/shm/numaslab-%u", f->root, f->uid);
	f->shm_owner = lstat(f->shm_dir, &st) ? -1 : (int)st.st_uid;
}

/* The directory whose cpuset files govern this process: cgroup v2, or the cpuset hierarchy of v1.
 */
static void gather_cgroup(struct facts *f)
{
	char text[4096], *v1;

	read_text(f->root, "/proc/self/cgroup", text, sizeof text);
	strcpy(f->cpuset_file, "cpuset.mems");
	v1 = strstr(text, ":cpuset:");
	if (v1)
		snprintf(f->cgroup, sizeof f->cgroup, "/cpuset%.*s", (int)strcspn(v1 + 8, "\n"),
			 v1 + 8);
	else
		text_field(text, "0::", f->cgroup, sizeof f->cgroup);
	if (!strcmp(f->cgroup, "/"))
		f->cgroup[0] = 0;
}

static void gather_process(struct facts *f)
{
	char text[8192], field[64];

	f->seccomp = -1;
	if (read_text(f->root, "/proc/self/status", text, sizeof text)) {
		text_field(text, "Mems_allowed_list:", f->mems_allowed, sizeof f->mems_allowed);
		if (text_field(text, "Seccomp:", field, sizeof field))
			f->seccomp = atoi(field);
		f->caps_known = text_field(text, "CapEff:", field, sizeof field);
		if (f->caps_known)
			f->caps = strtoull(field, NULL, 16);
	}
	getrlimit(RLIMIT_AS, &f->limit_as);
	getrlimit(RLIMIT_DATA, &f->limit_data);
	getrlimit(RLIMIT_FSIZE, &f->limit_fsize);
	getrlimit(RLIMIT_MEMLOCK, &f->limit_memlock);
	getrlimit(RLIMIT_NOFILE, &f->limit_nofile);
	f->rseq_feature_size = getauxval(AT_RSEQ_FEATURE_SIZE);
	f->rseq_size = &__rseq_size ? __rseq_size : 0;
}

bool facts_gather(struct facts *f, const char *root, char *const *envp)
{
	char path[PATH_MAX];

	memset(f, 0, sizeof *f);
	f->root = root;
	f->envp = envp;
	gather_kernel(f);
	gather_pages(f);
	gather_shm(f);
	gather_cgroup(f);
	gather_process(f);
	snprintf(path, sizeof path, "%s/sys/kernel/btf/vmlinux", root);
	f->btf = !access(path, R_OK);
	f->library_found = library_find(&f->library);
	f->mbind = f->get_mempolicy = f->move_pages = f->populate = PROBE_SKIPPED;
	f->policy = -1;
	if (!*root)
		facts_probe(f);
	return (!*root && f->seccomp <= 0 && machine_read_libnuma(&f->machine)) ||
	       machine_read_sysfs(&f->machine, root);
}

void facts_free(struct facts *f)
{
	machine_free(&f->machine);
}
