#!/bin/sh
# T1: the refill order (targets.md), with the landing read by move_pages.
# boots: four/6.1 four-small/6.12
# seconds: 1200
# needs: actor t1 hog mutant
limit=200
# shellcheck source=tests/vm/checks/lib.sh
. /checks/lib.sh

# What libc does on a node full of page cache, so that the check is known to tell.
hog cache 3 30000 t1 cache libc
need_numaslab "T1" || exit 0
expect_alive "cache" hog cache 3 30000 env LD_PRELOAD=$numaslab $in_time t1 cache
echo 3 >/proc/sys/vm/drop_caches
if [ -f /lib/mutant.so ]; then
	expect_alive "mutant" under /lib/mutant.so t1 proper plain mutant
else
	ok 1 "a library with steps 4 and 5 swapped (build/mutant/libnumaslab.so is not built)"
fi
expect_alive "literal" under $numaslab t1 literal node
expect_alive "literal, plain malloc" under $numaslab t1 literal plain
expect_alive "proper" under $numaslab t1 proper node
expect_alive "proper, plain malloc" under $numaslab t1 proper plain
expect_alive "thisnode" under $numaslab t1 thisnode
exit 0
