#!/bin/sh
# One node: nothing to choose, nothing that may go wrong.
# boots: one/6.1
# seconds: 120
# needs: actor
# shellcheck source=tests/vm/checks/lib.sh
. /checks/lib.sh

actor cpu=1 new=10000,16,1024 want=100,0:"glibc" || ok 1 "actor runs"
need_numaslab "one node" || exit 0

expect_alive "one node" under $numaslab actor cpu=0 new=40000,16,4000 big=4,4000000 cpu=1 free=50 \
	fresh new=40000,16,4000 want=100,0:"all on the node" agree=0:"all on the node" \
	nodes=0:"one node" counters=0:"one node"
expect_alive "one node, named" under $numaslab actor cpu=0 on=1000,196,0,this want=100,0:"named" \
	einval=1:"a node that is not there"
exit 0
