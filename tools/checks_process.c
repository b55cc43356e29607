/* SPDX-License-Identifier: MIT */
/* What this process and its environment allow, and the order of the whole report. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "tools/cmd.h"
#include "tools/findings.h"
#include "tools/tunables_doc.h"

/* linux/capability.h */
enum {
	CAPABILITY_SYS_PTRACE = 19,
	CAPABILITY_SYS_ADMIN = 21,
	CAPABILITY_PERFMON = 38,
	CAPABILITY_BPF = 39
};

void finding_ok(struct finding *out, const char *have, ...)
{
	va_list args;

	out->status = FINDING_OK;
	va_start(args, have);
	vsnprintf(out->have, sizeof out->have, have, args);
	va_end(args);
}

void finding_bad(struct finding *out, enum finding_status status, const char *cost,
		 const char *mend, const char *have, ...)
{
	va_list args;

	out->status = status;
	va_start(args, have);
	vsnprintf(out->have, sizeof out->have, have, args);
	va_end(args);
	if (status == FINDING_OK)
		return;
	snprintf(out->cost, sizeof out->cost, "%s", cost);
	snprintf(out->mend, sizeof out->mend, "%s", mend);
}

static void judge_library(const struct facts *f, struct finding *out)
{
	char places[400], path[400];

	library_places(&f->library, places, sizeof places);
	if (f->library_found)
		finding_ok(out, "%s", printable(path, sizeof path, f->library.path));
	else
		finding_bad(out, FINDING_MISSING, "'numaslab run' cannot start anything",
			    "make && make install", "not at %s", places);
}

static void judge_policy(const struct facts *f, struct finding *out)
{
	static const char *const names[] = {
	    "default",	      "preferred",	    "bind", "interleave", "local",
	    "preferred-many", "weighted-interleave"};

	if (f->policy < 0)
		finding_ok(out, "not known");
	else if (f->policy == 0)
		finding_ok(out, "default");
	else
		finding_bad(
		    out, FINDING_WARN, "the library follows it instead of placing memory itself",
		    "start it without numactl (a shell under numactl hands its policy on)",
		    "this task was given one (%s)", f->policy < 7 ? names[f->policy] : "unknown");
}

static bool has_cap(const struct facts *f, int cap)
{
	return f->caps >> cap & 1;
}

static void judge_capabilities(const struct facts *f, struct finding *out)
{
	bool bpf = has_cap(f, CAPABILITY_SYS_ADMIN) ||
		   (has_cap(f, CAPABILITY_BPF) && has_cap(f, CAPABILITY_PERFMON));
	bool others = has_cap(f, CAPABILITY_SYS_PTRACE);

	if (!f->caps_known)
		finding_ok(out, "not said by the kernel");
	else if (bpf && others)
		finding_ok(out, "eBPF and other users' processes are open");
	else
		finding_bad(out, FINDING_WARN,
			    bpf ? "other users' processes cannot be looked at"
				: "the library needs none; numaslab hints (eBPF) and the sight of "
				  "other users' processes do",
			    "sudo -E numaslab ...", "%s%s%s is missing",
			    bpf ? "" : "CAP_BPF and CAP_PERFMON", bpf || others ? "" : ", ",
			    others ? "" : "CAP_SYS_PTRACE");
}

static void judge_seccomp(const struct facts *f, struct finding *out)
{
	if (f->seccomp > 0)
		finding_bad(out, FINDING_WARN,
			    "the library tries no call that a filter may kill for: memory goes "
			    "to the node that first touches it",
			    "docker run --security-opt seccomp=unconfined ..., "
			    "or SystemCallFilter= in the unit",
			    f->seccomp == 1 ? "strict mode" : "a filter is in force");
	else
		finding_ok(out, f->seccomp ? "not said by the kernel" : "no filter");
}

struct limit_line {
	const char *name, *flag, *cost;
	const struct rlimit *limit;
	rlim_t enough;
};

static bool limit_is_low(const struct limit_line *l)
{
	return l->limit->rlim_cur != RLIM_INFINITY && l->limit->rlim_cur < l->enough;
}

static void append(char *buf, size_t size, const char *separator, const char *text)
{
	size_t used = strlen(buf);

	snprintf(buf + used, size - used, "%s%s", used ? separator : "", text);
}

static void judge_rlimits(const struct facts *f, struct finding *out)
{
	const struct limit_line lines[] = {
	    {"RLIMIT_AS", "v", "malloc fails when it is reached", &f->limit_as, RLIM_INFINITY},
	    {"RLIMIT_DATA", "d", "malloc fails when it is reached", &f->limit_data, RLIM_INFINITY},
	    {"RLIMIT_FSIZE", "f", "telemetry is off", &f->limit_fsize, 64u << 20},
	    {"RLIMIT_NOFILE", "n", "telemetry may be off", &f->limit_nofile, 16},
	};
	char have[400] = "", cost[400] = "", mend[200] = "", piece[160];

	for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
		if (!limit_is_low(&lines[i]))
			continue;
		snprintf(piece, sizeof piece, "%s is %llu", lines[i].name,
			 (unsigned long long)lines[i].limit->rlim_cur);
		append(have, sizeof have, ", ", piece);
		append(cost, sizeof cost, "; ", lines[i].cost);
		snprintf(piece, sizeof piece, "ulimit -%s %s", lines[i].flag,
			 *lines[i].flag == 'n' ? "1024" : "unlimited");
		append(mend, sizeof mend, "; ", piece);
	}
	if (*have)
		finding_bad(out, FINDING_WARN, cost, mend, "%s", have);
	else
		finding_ok(out, "none");
}

struct variables {
	char bad[512], names[512], mend[256];
};

static void collect_bad(const char *why, void *data)
{
	struct variables *v = data;
	char name[80];

	append(v->bad, sizeof v->bad, "; ", why);
	snprintf(name, sizeof name, "%.*s", (int)strcspn(why, " "), why);
	append(v->mend, sizeof v->mend, " ", name);
}

static void judge_variables(const struct facts *f, struct finding *out)
{
	struct variables v = {"", "", ""};
	char mend[300], shown[300];

	for (char *const *e = f->envp; *e; e++)
		if (!strncmp(*e, TUNABLE_PREFIX, strlen(TUNABLE_PREFIX)))
			append(v.names, sizeof v.names, " ", printable(shown, sizeof shown, *e));
	if (tunables_judge_all(f->envp, collect_bad, &v)) {
		snprintf(mend, sizeof mend, "unset %s", v.mend);
		finding_bad(out, FINDING_WARN,
			    "the library uses the default, and 'numaslab run' refuses to start",
			    mend, "%s", v.bad);
	} else if (*v.names) {
		finding_ok(out, "%s", v.names);
	} else {
		finding_ok(out, "none is set");
	}
}

static void judge_preload(const struct facts *f, struct finding *out)
{
	static const char *const others[] = {"jemalloc", "mimalloc", "tcmalloc", "tbbmalloc",
					     "snmalloc", "rpmalloc", "hoard",	 "libmemkind"};
	const char *preload = facts_variable(f, "LD_PRELOAD");
	char shown[400];

	if (!preload || !*preload) {
		finding_ok(out, "empty");
		return;
	}
	printable(shown, sizeof shown, preload);
	for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
		if (!strstr(preload, others[i]))
			continue;
		finding_bad(out, FINDING_WARN,
			    "two allocators in one process: the first named is the malloc",
			    "unset LD_PRELOAD", "%s", shown);
		return;
	}
	finding_ok(out, "%s", shown);
}

const struct check process_checks[] = {
    {"library", judge_library},	   {"policy", judge_policy},   {"capabilities", judge_capabilities},
    {"seccomp", judge_seccomp},	   {"rlimits", judge_rlimits}, {"variables", judge_variables},
    {"ld_preload", judge_preload},
};
const size_t process_check_count = sizeof process_checks / sizeof *process_checks;

static size_t judge_all(const struct check *checks, size_t count, const struct facts *f,
			struct finding *out)
{
	for (size_t i = 0; i < count; i++) {
		memset(&out[i], 0, sizeof out[i]);
		out[i].name = checks[i].name;
		checks[i].judge(f, &out[i]);
	}
	return count;
}

size_t findings_judge(const struct facts *f, struct finding out[FINDINGS_MAX])
{
	size_t n = judge_all(system_checks, system_check_count, f, out);

	return n + judge_all(process_checks, process_check_count, f, out + n);
}
