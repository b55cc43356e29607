#!/bin/sh
# A running process under observation, by the file that another process writes, and released again.
# boots: four/6.1 four-small/6.12
# seconds: 1200
# needs: actor watched
limit=600
# shellcheck source=tests/vm/checks/lib.sh
. /checks/lib.sh

tracing=/sys/kernel/tracing
balancing=/sys/kernel/debug/sched/numa_balancing
echo 100 >$balancing/scan_delay_ms
echo 100 >$balancing/scan_period_min_ms
echo 500 >$balancing/scan_period_max_ms
echo never >/sys/kernel/mm/transparent_hugepage/enabled
echo 8192 >$tracing/buffer_size_kb
# A check before this one in the same guest may have left a probe that is in use.
echo 0 >$tracing/events/enable
echo 'p:hint mpol_misplaced addr=$arg3:x64' >$tracing/kprobe_events
echo 1 >$tracing/events/kprobes/hint/enable || ok 1 "hint faults can be traced"
need_numaslab "observation" || exit 0

of() { awk -v n="$1" '$1 == n { print $2 }' /tmp/watched 2>/dev/null; }
is() { # is NAME VALUE TEST VALUE: a comparison of numbers that must both be there
	[ -n "$2" ] && [ -n "$4" ] && test "$2" "$3" "$4"
	ok $? "$1 (${2:-none} $3 ${4:-none})"
}

migrated=$(vmstat numa_pages_migrated)
echo 1 >/proc/sys/kernel/numa_balancing
NUMASLAB_PUBLISH_AFTER_MS=0 under $numaslab watched /tmp/watched
ok $? "the program ends well"
echo 0 >/proc/sys/kernel/numa_balancing
sed 's/^/# /' /tmp/watched
heap=$(of heap_pages)

is "home: no hint fault on the heap's pages" "$(of home_faults)" -eq 0
is "home: the kernel knows of no page under observation" "$(of home_pages)" -eq 0

is "asked for all: acknowledged" "$(of on_acknowledged)" -eq 1
is "asked for all: hint faults on the heap's pages" "$(of on_faults)" -gt $((heap / 8))
is "asked for all: the kernel has nine tenths of the pages under observation" "$(of on_pages)" -gt $((heap * 9 / 10))
is "asked for all: and no more than the header says" "$(of on_pages)" -le "$(of on_promised)"
case $(uname -r) in
6.1.*) is "asked for all: by BIND, as this kernel takes nothing else" "$(of on_how)" -eq 2 ;;
*) is "asked for all: by PREFERRED_MANY" "$(of on_how)" -eq 1 ;;
esac

is "asked for 1 in 4: acknowledged" "$(of sample_acknowledged)" -eq 1
is "asked for 1 in 4: less than half of the pages" "$(of sample_pages)" -lt $((heap / 2))
is "asked for 1 in 4: some of them" "$(of sample_pages)" -gt $((heap / 20))
is "asked for 1 in 4: no more than the header says" "$(of sample_pages)" -le "$(of sample_promised)"
is "asked for 1 in 4: hint faults on the heap's pages" "$(of sample_faults)" -gt $((heap / 40))

is "taken back: said so" "$(of off_acknowledged)" -eq 1
is "taken back: the kernel knows of no page" "$(of off_pages)" -eq 0
is "taken back: no hint fault any more" "$(of off_faults)" -eq 0

is "who asked is gone: it was acknowledged" "$(of lease_acknowledged)" -eq 1
is "who asked is gone: the lease ends" "$(of lease_ended)" -eq 1
is "who asked is gone: the kernel knows of no page" "$(of lease_pages)" -eq 0

is "fork: it was observed" "$(of fork_acknowledged)" -eq 1
case $(uname -r) in
6.1.*) is "fork: BIND ends before it" "$(of child_first)" -eq 0 ;;
esac
is "fork: the child, whom nobody asked, ends it" "$(of child_pages)" -eq 0
is "fork: the child ends well" "$(of child_ended)" -eq 1

is "no heap page has changed node" "$(of changed_node)" -eq 0
echo "# the whole machine migrated $(($(vmstat numa_pages_migrated) - migrated)) pages meanwhile"
exit 0
