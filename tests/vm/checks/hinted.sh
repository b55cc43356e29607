#!/bin/sh
# The companion beside a process in placement home: masked, observed, killed.
# boots: four/6.1 four-small/6.12
# seconds: 2500
# needs: actor hinted numaslab
limit=1300
# shellcheck source=tests/vm/checks/lib.sh
. /checks/lib.sh

balancing=/sys/kernel/debug/sched/numa_balancing
echo 100 >$balancing/scan_delay_ms
echo 100 >$balancing/scan_period_min_ms
echo 100 >$balancing/scan_period_max_ms
echo never >/sys/kernel/mm/transparent_hugepage/enabled
echo 1 >/proc/sys/kernel/numa_balancing
need_numaslab "the companion" || exit 0
export NUMASLAB_PUBLISH_AFTER_MS=0

# A pass of the kernel must leave the threads time to go over all of their pages.
echo 1000 >$balancing/scan_period_min_ms
echo 1000 >$balancing/scan_period_max_ms
expect_alive "masked" under $numaslab hinted masked
expect_alive "observe" under $numaslab hinted observe 4
echo 100 >$balancing/scan_period_min_ms
echo 100 >$balancing/scan_period_max_ms
expect_alive "killed" under $numaslab hinted killed
expect_alive "silent" under $numaslab hinted silent
exit 0
