/* SPDX-License-Identifier: MIT */
/*
 * Every NUMASLAB_* variable, in one table.  To add one, add one line: the struct, the parser,
 * `numaslab run --help-tunables`, libnumaslab(7) and the shell completion follow from it.
 *
 * X(field, NAME, TYPE, default, min, max, words, help)
 *   TYPE    BOOL    0|1 (also no|yes, off|on, false|true)
 *           UINT    a decimal number, min..max
 *           BYTES   the same with an optional K, M, G or T (powers of 1024)
 *           POW2    BYTES, rounded down to a power of two
 *           ENUM    the index of one of `words`, separated by bars
 *           PATH    an absolute path, at most TUNABLE_STRING_MAX bytes
 *           STRING  any text of the same length
 *   A value equal to the default is always accepted (so 0 can mean "automatic" below min).
 *   An empty value is an unset variable.
 */
#ifndef NUMASLAB_TUNABLES_H
#define NUMASLAB_TUNABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* clang-format off */
#define TUNABLES(X)                                                                             \
	X(placement, PLACEMENT, ENUM, PLACEMENT_HOME, 0, 2, "home|observe|kernel",              \
	  "where a slab's pages go: home = on the node of the CPU that asked for it; "          \
	  "observe = the same, and a sample of it (NUMASLAB_OBSERVE) takes NUMA hint faults, "   \
	  "which tell who uses it from where, and is not moved; "                               \
	  "kernel = first touch, and the kernel's balancing may migrate them")                  \
	X(large, LARGE, ENUM, LARGE_TOUCH, 0, 1, "touch|home",                                  \
	  "large blocks: touch = each page on the node that first writes to it; "               \
	  "home = all pages on the node of the caller of malloc")                               \
	X(topology, TOPOLOGY, STRING, 0, 0, 0, "",                                              \
	  "a simulated machine, node:memory@CPUs;..., as in 0:1G@0;1:1G@1;dist=0:1:20 "         \
	  "(unset: the real one)")                                                              \
	X(observe, OBSERVE, UINT, 0, 0, 65536, "",                                              \
	  "in placement observe, 1 chunk of 2 MiB of slabs in N is under observation, others "  \
	  "each minute (0 = none); numaslab hints --observe asks a running program for it")     \
	X(window, WINDOW, POW2, 0, 64ull << 20, 1ull << 40, "",                                 \
	  "addresses that each node's memory may take, rounded down to a power of two "               \
	  "(0 = 1T, less where there are many nodes)")                                              \
	X(check, CHECK, BOOL, 0, 0, 1, "",                                                      \
	  "check every free: a double, inner or foreign pointer is named and aborts")           \
	X(telemetry, TELEMETRY, BOOL, 1, 0, 1, "",                                              \
	  "publish counters for numaslab top and stat")                                         \
	X(tick_ms, TICK_MS, UINT, 100, 1, 60000, "",                                            \
	  "shortest time between two entries of the history, milliseconds")                     \
	X(publish_after_ms, PUBLISH_AFTER_MS, UINT, 1000, 0, 3600000, "",                       \
	  "age at which a process starts to publish, milliseconds (short ones leave no file)")  \
	X(dir, DIR, PATH, 0, 0, 0, "",                                                          \
	  "directory of the telemetry files (unset: /dev/shm/numaslab-UID)")                    \
	X(group, GROUP, STRING, 0, 0, 0, "",                                                    \
	  "number of the group that may read the telemetry files; numaslab run takes its "      \
	  "name too (unset: the user alone)")                                                   \
	X(thp, THP, ENUM, THP_AUTO, 0, 2, "auto|never|always",                                  \
	  "transparent huge pages: auto = none for slabs, as the system says for large "    \
	  "blocks; never; always = as the system says for all")                                                              \
	X(deepbind, DEEPBIND, ENUM, DEEPBIND_WRAP, 0, 1, "wrap|keep",                           \
	  "dlopen with RTLD_DEEPBIND: wrap = the flag is dropped, so that the plugin uses "     \
	  "this malloc too; keep = left alone")                                                 \
	X(retain, RETAIN, BYTES, 64ull << 20, 0, 1ull << 40, "",                                \
	  "what a program that frees and allocates in cycles may keep beyond the floor, "         \
	  "until a second after its last cycle (0 = nothing)")
/* clang-format on */

/* In the order of the words above. */
enum tunable_placement { PLACEMENT_HOME, PLACEMENT_OBSERVE, PLACEMENT_KERNEL };
enum tunable_large { LARGE_TOUCH, LARGE_HOME };
enum tunable_thp { THP_AUTO, THP_NEVER, THP_ALWAYS };
enum tunable_deepbind { DEEPBIND_WRAP, DEEPBIND_KEEP };

#define TUNABLE_PREFIX	   "NUMASLAB_"
#define TUNABLE_STRING_MAX 255

#define TUNABLE_FIELD_BOOL(f)	bool f;
#define TUNABLE_FIELD_UINT(f)	uint64_t f;
#define TUNABLE_FIELD_BYTES(f)	uint64_t f;
#define TUNABLE_FIELD_POW2(f)	uint64_t f;
#define TUNABLE_FIELD_ENUM(f)	uint32_t f;
#define TUNABLE_FIELD_PATH(f)	char f[TUNABLE_STRING_MAX + 1];
#define TUNABLE_FIELD_STRING(f) char f[TUNABLE_STRING_MAX + 1];

/* An unset string is "". */
struct tunables {
#define X(field, name, type, ...) TUNABLE_FIELD_##type(field)
	TUNABLES(X)
#undef X
};

enum tunable_type {
	TUNABLE_BOOL,
	TUNABLE_UINT,
	TUNABLE_BYTES,
	TUNABLE_POW2,
	TUNABLE_ENUM,
	TUNABLE_PATH,
	TUNABLE_STRING,
};

enum tunable_id {
#define X(field, name, ...) TUNABLE_ID_##name,
	TUNABLES(X)
#undef X
	    TUNABLE_COUNT
};

/* One line of the table, without pointers so that it needs no relocation. */
struct tunable {
	char name[18];	 /* without the prefix */
	char words[22];	 /* ENUM only */
	uint8_t type;	 /* enum tunable_type */
	uint16_t offset; /* in struct tunables */
	uint64_t initial, min, max;
};

#pragma GCC visibility push(hidden)
extern const struct tunable tunable_table[TUNABLE_COUNT];

/* Holds the defaults from the start; written by tunables_parse() alone, read by everyone. */
extern struct tunables tunables;

/*
 * Reads the variables from envp (may be NULL) into `tunables`; secure (AT_SECURE) leaves all
 * defaults.  A bad value leaves its default, an unknown name is ignored, of two equal names the
 * first counts, nothing is printed.  Runs inside the first malloc: it allocates nothing, takes
 * no lock, uses no locale, needs no constructor, and may be called again.
 */
void tunables_parse(char *const *envp, bool secure);

/* Parses text as a value of t into out; on false out is unchanged.  As safe as tunables_parse. */
bool tunable_set(const struct tunable *t, const char *text, struct tunables *out);

/* The entry whose name (without the prefix) is the len bytes at name, or NULL. */
const struct tunable *tunable_find(const char *name, size_t len);
#pragma GCC visibility pop

#endif
