#!/bin/sh
# Two nodes, node 1 with 128 MiB only.
# boots: tiny/6.1
# seconds: 240
# needs: actor
# shellcheck source=tests/vm/checks/lib.sh
. /checks/lib.sh

actor node=1 new=10000,16,1024 want=100,1:"glibc on the tiny node" fill=20000,1000 \
	fresh new=100000,900,1000 fresh new=10000,900,1000 want=90,0:"glibc falls back" || ok 1 "actor runs"
need_numaslab "tiny node" || exit 0

expect_alive "tiny node" under $numaslab actor node=1 new=10000,16,1024 want=100,1:"the tiny node has room" \
	agree=0:"with room" fill=20000,1000 fresh new=100000,900,1000 fresh new=10000,900,1000 \
	want=90,0:"full: falls back to the other node" agree=0:"full" counters=0:"full" \
	free=100 trim fresh new=10000,16,1024 want=99,1:"after freeing all, the tiny node again" \
	agree=0:"again" counters=0:"again"
expect_alive "tiny node, insisted on" under $numaslab actor node=0 enomem=1:"THISNODE on the tiny node" \
	fresh on=1000,1000,1,this want=100,1:"works again after freeing" nodes=0,1:"both nodes"
expect_alive "tiny node, from node 0" under $numaslab actor node=0 new=40000,16,1024 \
	want=100,0:"node 0's thread has node 0's memory"
exit 0
