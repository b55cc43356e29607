#!/bin/sh
# A node without memory (0, CPU 0), an ordinary one (1), one without CPUs (2); 0 is nearer to 1 than to 2.
# boots: uneven/6.1
# seconds: 240
# needs: actor numaslab
# shellcheck source=tests/vm/checks/lib.sh
. /checks/lib.sh

actor cpu=0 new=20000,16,1024 want=100,1:"glibc on the memoryless node's CPU" || ok 1 "actor runs"
need_numaslab "uneven nodes" || exit 0

expect_alive "CPU of the memoryless node" under $numaslab actor cpu=0 new=40000,16,1024 \
	want=100,1:"a thread on the memoryless node gets the nearest memory" agree=0:"small objects" \
	fresh big=4,4000000 want=100,1:"large blocks too" \
	nodes=1,2:"only nodes with memory" counters=0:"after that"
expect_alive "ordinary node" under $numaslab actor cpu=1 new=40000,16,1024 \
	want=100,1:"a thread on the ordinary node" agree=0:"small objects" counters=0:"after that"
expect_alive "named" under $numaslab actor cpu=1 on=5000,500,2 \
	want=100,2:"the node without CPUs, when it is named" fresh on=5000,500,2,this \
	want=100,2:"and insisted on" agree=0:"named" fresh on=5000,500,-1 want=100,1:"-1 is the caller's" \
	counters=0:"after that"
expect_alive "named, no memory" under $numaslab actor cpu=1 einval=0:"a node without memory" \
	einval=3:"a node that is not there" einval=-2:"no node"
# Fill node 1: the next memory is the nearest that is left, and only then.
expect_alive "fallback" under $numaslab actor cpu=1 new=20000,500,1000 want=100,1:"before node 1 is full" \
	fill=60000,1000 fresh new=300000,900,1000 fresh new=20000,900,1000 \
	want=99,2:"the node without CPUs is the fallback" agree=0:"fallback"

# The command's tables: an empty node is named once, and in none of them.
if ! command -v numaslab >/dev/null; then
	ok 1 "the tables of numaslab stat and doctor (build/numaslab is not built)"
	exit 0
fi
LD_PRELOAD=$numaslab NUMASLAB_PUBLISH_AFTER_MS=0 $in_time actor cpu=1 new=20000,16,1024 \
	do='numaslab stat --json $ACTOR >/tmp/stat.json; numaslab stat $ACTOR >/tmp/stat.txt; numaslab doctor >/tmp/doctor.txt; true'
sed 's/^/# /' /tmp/stat.txt /tmp/doctor.txt
tr -d ' \n\t' </tmp/stat.json >/tmp/stat.flat
grep -q '"excluded_nodes":\[{"id":0,' /tmp/stat.flat
ok $? "stat --json: node 0 is in excluded_nodes"
sed -i 's/"excluded_nodes":\[[^]]*\]//' /tmp/stat.flat
grep -q '"id":1[,}]' /tmp/stat.flat && grep -q '"id":2[,}]' /tmp/stat.flat && ! grep -q '"id":0[,}]' /tmp/stat.flat
ok $? "stat --json: and in no other list, where nodes 1 and 2 are"
grep -q . /tmp/stat.txt && ! grep -Eq '^ *0 ' /tmp/stat.txt
ok $? "stat: no table line of node 0"
[ "$(grep -Eic 'node 0.*(no memory|without memory|memoryless|empty)' /tmp/doctor.txt)" = 1 ]
ok $? "doctor: says once why node 0 is left out"
exit 0
