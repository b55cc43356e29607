#!/bin/sh
# numaslab compare on four nodes: T2's two tables, exact peaks from a cgroup, residency by node.
# boots: four/6.1
# seconds: 400
# needs: actor t2 numaslab
# shellcheck source=tests/vm/checks/lib.sh
. /checks/lib.sh

grep -q ' /sys/fs/cgroup ' /proc/mounts || mount -t cgroup2 cgroup /sys/fs/cgroup
echo +memory >/sys/fs/cgroup/cgroup.subtree_control
rows() { # rows FILE SIDE KEY: the values of one key in the samples of one side
	awk -v s="\"$2\"" -v k="\"$3\":" '/"side":/ { side = index($0, s) }
		$1 == k { gsub(",", "", $2); if (side) print $2 }' "$1"
}

within() { # within FILE SIDE KEY LOW HIGH: both samples are there and in the range
	rows "$1" "$2" "$3" |
		awk -v l="$4" -v h="$5" '{ n++; if ($1 < l || $1 > h) bad = 1 } END { exit bad || n != 2 }'
}

balancing=/sys/kernel/debug/sched/numa_balancing
echo 1 >/proc/sys/kernel/numa_balancing
echo 100 >$balancing/scan_delay_ms
echo 100 >$balancing/scan_period_min_ms
echo 500 >$balancing/scan_period_max_ms
echo never >/sys/kernel/mm/transparent_hugepage/enabled
for program in numa01 numa02; do
	json=/tmp/$program.json
	numaslab compare -q --numa -r 2 --max-pairs 2 --warmup 0 --fail-over none --json=$json \
		--table=/tmp/table -- t2 $program /tmp/$program
	ok $? "$program is compared"
	sed 's/^/# /' /tmp/table
	for row in numa_hint_faults numa_pte_updates; do
		within $json before $row 500 1000000000
		ok $? "$program: $row under glibc, so this tells"
		within $json after $row 0 500
		ok $? "$program: next to no $row under numaslab, all pages of the machine counted"
	done
	grep -q '"rss_source":.*"cgroup"' $json
	ok $? "$program: the peak is the cgroup's"
	for side in before after; do
		within $json $side remote_share 0 1
		ok $? "$program: $side: the remote share is known"
	done
	[ "$(grep -c '"node_bytes"' $json)" = 6 ]
	ok $? "$program: residency by node in each sample"
done
for side in before after; do
	within /tmp/numa01.json $side rss 50331648 62914560
	ok $? "$side: two processes of 24 MiB each peak at 48 to 60 MiB together"
	rows /tmp/numa01.json $side rss | sed 's/^/# rss /'
done
[ -z "$(ls -d /sys/fs/cgroup/numaslab-compare.* 2>/dev/null)" ]
ok $? "no cgroup stays behind"
echo -memory >/sys/fs/cgroup/cgroup.subtree_control
umount /sys/fs/cgroup
exit 0
