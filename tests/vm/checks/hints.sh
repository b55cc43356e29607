#!/bin/sh
# The companion: its counts against the kernel's, its matrix against a trace, observation.
# boots: four/6.1 four-small/6.12
# seconds: 1500
# needs: actor hints numaslab
limit=600 # it goes on as long as there are faults
# shellcheck source=tests/vm/checks/lib.sh
. /checks/lib.sh

balancing=/sys/kernel/debug/sched/numa_balancing
echo 100 >$balancing/scan_delay_ms
echo 100 >$balancing/scan_period_min_ms
echo 100 >$balancing/scan_period_max_ms
echo 1 >/proc/sys/kernel/numa_balancing

for tier in fentry kprobe; do
	echo never >/sys/kernel/mm/transparent_hugepage/enabled
	stopped=
	[ $tier = fentry ] || stopped=stopped
	expect_alive "counts $tier" under "" hints counts $tier 192 200000 $stopped
	echo always >/sys/kernel/mm/transparent_hugepage/enabled
	expect_alive "counts $tier, huge pages" under "" hints counts $tier 256 1000 huge
done

# The trace has the beginning of a huge page where we have the address.
echo never >/sys/kernel/mm/transparent_hugepage/enabled
need_numaslab "the companion" || exit 0
export NUMASLAB_PLACEMENT=kernel
for tier in fentry kprobe; do
	expect_alive "matrix $tier" under $numaslab hints matrix $tier
done
exit 0
