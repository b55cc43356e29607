/* SPDX-License-Identifier: MIT */
/* numaslab compare: what is measured, and from which figure on a change counts as a regression. */
#ifndef NUMASLAB_TOOLS_COMPARE_METRICS_H
#define NUMASLAB_TOOLS_COMPARE_METRICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* id, name, short name, unit, help.  The names are those of JSON schema 1 and of --fail-over. */
#define CMP_METRICS(X)                                                                             \
	X(TIME, "time", "real", SECONDS, "wall time")                                              \
	X(SYS, "sys", "system", SECONDS, "system time of the whole tree")                          \
	X(USER, "user", "user", SECONDS, "user time of the whole tree")                            \
	X(CPU, "cpu", "processor", SECONDS, "user and system time together")                       \
	X(RSS, "rss", "peak_rss", BYTES, "peak memory of the whole tree")                          \
	X(MINFLT, "minor_faults", "minflt", COUNT, "page faults without I/O, whole tree")          \
	X(MAJFLT, "major_faults", "majflt", COUNT, "page faults with I/O, whole tree")             \
	X(VCSW, "voluntary_switches", "vcsw", COUNT, "times the command waited")                   \
	X(ICSW, "involuntary_switches", "icsw", COUNT, "times the command was preempted")          \
	X(HIT, "numa_hit", "hit", COUNT, "pages had on the node wanted, machine-wide")             \
	X(LOCAL, "numa_local", "local", COUNT, "pages had on the asking CPU's node")               \
	X(MISS, "numa_miss", "miss", COUNT, "pages had here though another node was wanted")       \
	X(FOREIGN, "numa_foreign", "foreign", COUNT, "pages wanted here, had elsewhere")           \
	X(HINT, "numa_hint_faults", "hint_faults", COUNT, "NUMA hint faults")                      \
	X(HINTLOCAL, "numa_hint_faults_local", "hint_faults_local", COUNT, "local hint faults")    \
	X(PTE, "numa_pte_updates", "pte_updates", COUNT, "pages made to fault by NUMA balancing")  \
	X(MIGRATED, "numa_pages_migrated", "pages_migrated", COUNT, "pages moved by balancing")    \
	X(PGFAULT, "pgfault", "pgfaults", COUNT, "page faults, machine-wide")                      \
	X(PGMAJFAULT, "pgmajfault", "pgmajfaults", COUNT, "faults with I/O, machine-wide")         \
	X(REMOTE, "remote_share", "remote", SHARE, "heap on nodes that run none of the threads")   \
	X(FRAGMENTATION, "fragmentation", "frag", SHARE, "numaslab's own, when it held most")      \
	X(LADDER_OWN, "ladder_own", "own", COUNT, "numaslab's refills from own slabs")             \
	X(LADDER_NODE_PARTIAL, "ladder_node_partial", "node_partial", COUNT, "from the node's")    \
	X(LADDER_NODE_NEW, "ladder_node_new", "node_new", COUNT, "from new slabs on the node")     \
	X(LADDER_ANY_PARTIAL, "ladder_any_partial", "any_partial", COUNT, "from other nodes'")     \
	X(LADDER_ANY_NEW, "ladder_any_new", "any_new", COUNT, "from new slabs on other nodes")     \
	X(FIGURE, "metric", "figure", FIGURE, "the command's own figure (--metric)")               \
	X(FIGURE2, "metric2", "figure2", FIGURE, "its second one (--metric again)")                \
	X(FIGURE3, "metric3", "figure3", FIGURE, "its third one")                                  \
	X(FIGURE4, "metric4", "figure4", FIGURE, "its fourth one")

enum cmp_metric_id {
#define X(id, name, alias, unit, help) CMP_M_##id,
	CMP_METRICS(X)
#undef X
	    CMP_M_COUNT
};

/* The rows that come from /proc/vmstat, in the order of the table above. */
#define CMP_VMSTAT_FIRST CMP_M_HIT
#define CMP_VMSTAT_LAST	 CMP_M_PGMAJFAULT

/* The command's own figures: CMP_M_FIGURE and those after it. */
#define CMP_FIGURES (CMP_M_COUNT - CMP_M_FIGURE)

enum cmp_unit { CMP_SECONDS, CMP_BYTES, CMP_COUNT, CMP_SHARE, CMP_FIGURE };

struct cmp_metric {
	const char *name, *alias, *help;
	enum cmp_unit unit;
};

extern const struct cmp_metric cmp_metrics[CMP_M_COUNT];

enum cmp_scale { CMP_RELATIVE, CMP_ABSOLUTE };

/* A regression is a change for the worse of more than `limit`: a share of the value before
 * (CMP_RELATIVE, 0.05 is 5 %) or so many units (CMP_ABSOLUTE). */
struct cmp_threshold {
	bool judged;
	enum cmp_scale scale;
	double limit;
};

/* Index of the metric with this name or short name, or -1. */
int cmp_metric_find(const char *name, size_t len);

/* Parses "time=5%,rss=64M,hint_faults=0" ("none": nothing is judged) into all[CMP_M_COUNT].
 * Returns NULL, or what is wrong (valid until the next call). */
const char *cmp_threshold_parse(const char *text, struct cmp_threshold *all);

/* One value in its unit, as people read it: "1.234", "12.5 MiB", "1131164", "3.1 %". */
const char *cmp_value_text(char *buf, size_t size, enum cmp_unit unit, double value);
/* A threshold: "5%", "64 MiB", "0". */
const char *cmp_threshold_text(char *buf, size_t size, enum cmp_unit unit,
			       const struct cmp_threshold *t);
/* A relative change as a signed percentage: "+3.26%", "-100%", "new" where it was 0 before. */
const char *cmp_change_text(char *buf, size_t size, double change);

#endif
