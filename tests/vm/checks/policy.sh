#!/bin/sh
# Policies and changes from outside: numactl, cpusets, taskset, migratepages.
# boots: four/6.1 four-small/6.12
# seconds: 400
# needs: actor numactl migratepages
limit=60
# shellcheck source=tests/vm/checks/lib.sh
. /checks/lib.sh

# What libc's heap does when its thread is moved: the check is known to tell.
actor node=0 new=20000,16,1024 do='taskset -p 4 $ACTOR >/dev/null' free=95 fresh new=20000,16,1024 \
	want=50,0:"glibc keeps the old node's memory" || ok 1 "actor runs"
need_numaslab "policies" || exit 0

a() { expect_alive "$@"; }
# numactl must not run under the library itself: it sets the policy, then runs the actor.
numa() { # numa NUMACTL-OPTION... -- ACTION...
	options=
	while [ "$1" != -- ]; do
		options="$options $1"
		shift
	done
	shift
	numactl $options env LD_PRELOAD=$numaslab $in_time actor "$@"
}

a membind numa --membind=2 -- node=0 new=20000,16,1024 want=100,2:"--membind=2: small objects" \
	agree=0:"--membind=2" fresh big=4,4000000 want=100,2:"--membind=2: large blocks" counters=0:"--membind=2"
a membind2 numa --membind=1,2 -- node=0 new=20000,16,1024 big=4,4000000 \
	want=100,1,2:"--membind=1,2" agree=0:"--membind=1,2"
a membind-own numa --membind=1,2 -- node=2 new=20000,16,1024 \
	want=99,2:"--membind=1,2 on node 2: its own node" agree=0:"--membind=1,2 on node 2"
a preferred numa --preferred=2 -- node=0 new=20000,16,1024 want=99,2:"--preferred=2: small objects" \
	fresh big=4,4000000 want=99,2:"--preferred=2: large blocks" agree=0:"--preferred=2"
# Pages of 4 KiB: huge ones would be dealt out by the handful.
echo never >/sys/kernel/mm/transparent_hugepage/enabled
a interleave numa --interleave=1,3 -- node=0 new=40000,16,1024 even=5,1,3:"--interleave=1,3: small objects" \
	fresh big=4,4000000 even=5,1,3:"--interleave=1,3: large blocks"
a interleave-all numa --interleave=all -- node=0 new=40000,16,1024 even=5,0,1,2,3:"--interleave=all"
echo always >/sys/kernel/mm/transparent_hugepage/enabled
a set_mempolicy under $numaslab actor node=0 new=1000,16,1024 policy=bind,3 \
	fresh big=4,4000000 want=100,3:"set_mempolicy in the program: large blocks follow"
a mbind under $numaslab actor node=0 fresh big=4,4000000 want=100,0:"before mbind" mbind=3 \
	want=99,3:"mbind by the program moves its block" free=100 \
	fresh big=4,4000000 want=100,0:"a freed block's binding is not inherited"

a taskset under $numaslab actor node=0 new=20000,16,1024 want=100,0:"before taskset" \
	do='taskset -p 4 $ACTOR >/dev/null' free=100 fresh new=20000,16,1024 \
	want=99.5,2:"moved by taskset, old objects freed: new ones are local" agree=0:"moved by taskset" \
	do='taskset -p 8 $ACTOR >/dev/null' fresh new=20000,16,1024 \
	want=99.5,3:"moved again, nothing freed" do='taskset -p 1 $ACTOR >/dev/null' free=50 \
	fresh new=20000,16,1024 want=99.5,0:"back on the first node" counters=13:"after three moves"
a migratepages under $numaslab actor node=0 new=20000,16,1024 want=100,0:"before migratepages" \
	do='migratepages $ACTOR 0 3' want=99,3:"migratepages moves the objects" \
	free=50 fresh new=20000,16,1024 free=100 fresh new=20000,16,1024 \
	want=99,0:"after migratepages new objects are on the thread's node" \
	agree=1:"after migratepages" counters=0:"after migratepages"

# cpusets that change while the program runs.
if ! mount -t cgroup2 cgroup /cg || ! echo +cpuset >/cg/cgroup.subtree_control; then
	echo "ok - cpusets # SKIP this kernel has no cpuset controller in cgroup 2"
	exit 0
fi
mkdir /cg/a
into='echo $ACTOR >/cg/a/cgroup.procs'
a cpuset-start sh -c "echo \$\$ >/cg/a/cgroup.procs; echo 1-2 >/cg/a/cpuset.mems
	LD_PRELOAD=$numaslab exec $in_time actor node=0 new=20000,16,1024 want=100,1,2:'a cpuset without the own node' \
	agree=0:'a cpuset without the own node' einval=0:'a node outside of the cpuset'"
echo 0-3 >/cg/a/cpuset.mems
# Kernel 6.1 forgets a thread's affinity when it joins: pinned again after each change.
a cpuset-narrow under $numaslab actor do="$into" node=0 new=20000,16,1024 want=100,0:"all nodes allowed" \
	do='echo 1-3 >/cg/a/cpuset.mems' node=0 fresh new=40000,16,1024 \
	want=100,1,2,3:"the own node is taken away: the program goes on" free=100 trim \
	fresh new=20000,16,1024 want=100,1,2,3:"and on" agree=1:"node taken away" \
	do='echo 0-3 >/cg/a/cpuset.mems' node=0 until=40,20000,0 \
	want=99,0:"the node is given back: local again" agree=1:"node given back" \
	node=3 free=100 fresh new=20000,16,1024 want=99,3:"and so are the other nodes" agree=1:"node 3" \
	counters=0:"after the cpusets"
a cpuset-cpus under $numaslab actor do="$into" do='echo 2-3 >/cg/a/cpuset.cpus; echo 2-3 >/cg/a/cpuset.mems' \
	new=40000,16,1024 want=100,2,3:"CPUs and nodes both narrowed" agree=0:"both narrowed" \
	do='echo 0-1 >/cg/a/cpuset.mems; echo 0-1 >/cg/a/cpuset.cpus' free=100 trim fresh new=40000,16,1024 \
	want=100,0,1:"moved to other CPUs and nodes" agree=1:"moved to other CPUs and nodes" \
	counters=0:"after the cpusets"
exit 0
