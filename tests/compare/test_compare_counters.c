/* SPDX-License-Identifier: MIT */
/* numaslab's own counters in compare: from a file that the real writer publishes in this process.
 */
#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/telemetry/fake.h"
#include "tests/telemetry/tap.h"
#include "tools/compare_counters.h"
#include "tools/compare_metrics.h"

static double v[CMP_M_COUNT];

static void forget(void)
{
	for (int m = 0; m < CMP_M_COUNT; m++)
		v[m] = NAN;
}

static void empty(const char *dir)
{
	char path[600];
	struct dirent *e;
	DIR *d = opendir(dir);

	while (d && (e = readdir(d))) {
		snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
		if (e->d_name[0] != '.')
			unlink(path);
	}
	if (d)
		closedir(d);
	rmdir(dir);
}

int main(void)
{
	char dir[] = "/dev/shm/numaslab-compare-XXXXXX";
	struct cmp_counters *c = cmp_counters_begin();
	double full, used = (double)class_size(5) * 700, held;

	if (access("/dev/shm", W_OK) || !mkdtemp(dir)) {
		puts("1..0 # SKIP /dev/shm cannot be written");
		return 0;
	}
	forget();
	cmp_counters_see(c, getpid());
	cmp_counters_end(c, v);
	ok(isnan(v[CMP_M_FRAGMENTATION]) && isnan(v[CMP_M_LADDER_OWN]), "no file, no figures");

	fake_init(2, dir);
	telemetry_tick(10);
	c = cmp_counters_begin();
	cmp_counters_see(c, getpid());
	cmp_counters_see(c, 1 << 30); /* a process that is gone */
	fake_slab_born(0, 5, 400);
	struct slab *second = fake_slab_born(1, 5, 300);
	held = 2.0 * (double)class_slab_units(5) * UNIT_SIZE;
	fake_add(1, 5, COUNT_own, 7);
	fake_add(0, 5, COUNT_any_new, 2);
	fake_add(2, 0, COUNT_held, 1 << 30); /* large blocks are no slabs */
	cmp_counters_sample(c);
	full = 1 - used / held;
	/* After the peak: less is held, and its fragmentation is another one; refills go on. */
	fake_slab_dies(second, false);
	fake_add(1, 5, COUNT_own, 5);
	fake_add(1, 5, COUNT_node_partial, 3);
	cmp_counters_sample(c);
	forget();
	cmp_counters_end(c, v);
	if (!ok(fabs(v[CMP_M_FRAGMENTATION] - full) < 1e-9, "fragmentation when most was held"))
		printf("# got %g, want %g\n", v[CMP_M_FRAGMENTATION], full);
	ok_equal((long long)v[CMP_M_LADDER_OWN], 12, "own, at the end");
	ok_equal((long long)v[CMP_M_LADDER_NODE_PARTIAL], 3, "node_partial");
	ok_equal((long long)v[CMP_M_LADDER_NODE_NEW], 2, "node_new, of both nodes");
	ok_equal((long long)v[CMP_M_LADDER_ANY_PARTIAL], 0, "any_partial");
	ok_equal((long long)v[CMP_M_LADDER_ANY_NEW], 2, "any_new");
	empty(dir);
	printf("1..%d\n", tap_count);
	return tap_failures != 0;
}
