#!/bin/sh
# T2: no hint faults on the heap's own pages, and what observing and the kernel's own placement do.
# boots: four/6.1 four-small/6.12
# seconds: 1200
# needs: actor t2 danger
# shellcheck source=tests/vm/checks/lib.sh
. /checks/lib.sh

tracing=/sys/kernel/tracing
balancing=/sys/kernel/debug/sched/numa_balancing
echo 100 >$balancing/scan_delay_ms
echo 100 >$balancing/scan_period_min_ms
echo 500 >$balancing/scan_period_max_ms
# Pages of 4 KiB, so that faults can be compared.
echo never >/sys/kernel/mm/transparent_hugepage/enabled
echo 8192 >$tracing/buffer_size_kb
# A check before this one in the same guest may have left a probe that is in use.
echo 0 >$tracing/events/enable
echo 'p:hint mpol_misplaced addr=$arg3:x64' >$tracing/kprobe_events
echo 1 >$tracing/events/kprobes/hint/enable || ok 1 "hint faults can be traced"

run() { # run NAME LIBRARY PROGRAM ARGUMENT: their figures go to /tmp/NAME
	echo 1 >/proc/sys/kernel/numa_balancing
	echo 0 >$tracing/tracing_on
	echo >$tracing/trace
	echo 1 >$tracing/tracing_on
	rm -f "/tmp/$1"
	under "$2" "$3" "$4" "/tmp/$1"
	status=$?
	[ $status = 0 ] || echo "# $1: $3 $4 ended with status $status"
	[ "$(of "$1" 'done')" = 1 ]
}
of() { awk -v n="$2" '$1 == n { print $2 }' "/tmp/$1" 2>/dev/null; }
is() { # is NAME VALUE TEST VALUE: a comparison of numbers that must both be there
	[ -n "$2" ] && [ -n "$4" ] && test "$2" "$3" "$4"
	ok $? "$1 (${2:-none} $3 ${4:-none})"
}
table() { # table PROGRAM BEFORE AFTER
	echo "# | $1 | glibc | numaslab |"
	for row in $(awk '$1 != "done" { print $1 }' "/tmp/$2"); do
		echo "# | $row | $(of "$2" "$row") | $(of "$3" "$row") |"
	done
}

for program in numa01 numa02; do
	run $program.glibc "" t2 $program
	is "$program: glibc's pages take hint faults, so this tells" "$(of $program.glibc heap_hint_faults)" -gt 500
done
run crossed.glibc "" t2 crossed
is "crossed: under glibc the kernel migrates, so this tells" "$(of crossed.glibc changed_node)" -gt 500
for how in fork bystander purge; do
	run raw.$how "" danger raw-$how
	[ "$(of raw.$how alive)" != 1 ]
	ok $? "a raw binding on a full node kills somebody: $how, so this tells"
done

need_numaslab "T2" || exit 0

for program in numa01 numa02; do
	run $program.home $numaslab t2 $program
	ok $? "$program: home: the program ends"
	table $program $program.glibc $program.home
	is "$program: home: no hint fault on the heap's pages" "$(of $program.home heap_hint_faults)" -eq 0
	for row in numa_hint_faults numa_pte_updates; do
		# The whole machine's count: stacks, libraries' data and other processes are in it.
		is "$program: home: $row at most 2 % of glibc's and 300" \
			"$(of $program.home $row)" -le $(($(of $program.glibc $row) / 50 + 300))
	done
	is "$program: home: remote pages per touching thread (per mille) as glibc's at most" \
		"$(of $program.home remote_permille)" -le "$(of $program.glibc remote_permille)"
done

export NUMASLAB_PLACEMENT=observe NUMASLAB_OBSERVE=1 T2_FAULTS=2000
run crossed.observe $numaslab t2 crossed
ok $? "crossed: observe: the program ends"
table crossed crossed.glibc crossed.observe
is "crossed: observe: hint faults on the heap's pages are seen" "$(of crossed.observe heap_hint_faults)" -gt 500
is "crossed: observe: no heap page changes node" "$(of crossed.observe changed_node)" -eq 0
for how in fork purge bystander; do
	run observe.$how $numaslab danger $how
	is "observe: full node and $how: everybody lives" "$(of observe.$how alive)" -eq 1
	is "observe: full node and $how: nobody is killed" "$(of observe.$how oom_kills)" -eq 0
	is "observe: full node and $how: it was observed" "$(of observe.$how faults)" -gt 100
done

export NUMASLAB_PLACEMENT=kernel
unset NUMASLAB_OBSERVE
export T2_FAULTS=4000
run crossed.kernel $numaslab t2 crossed
ok $? "crossed: kernel: the program ends"
table crossed crossed.glibc crossed.kernel
is "crossed: kernel: hint faults on the heap's pages" "$(of crossed.kernel heap_hint_faults)" -gt 500
is "crossed: kernel: the kernel migrates" "$(of crossed.kernel changed_node)" -gt 500
is "crossed: kernel: node_of is right again for new objects (per mille wrong)" \
	"$(of crossed.kernel disagree_permille)" -le 10
exit 0
