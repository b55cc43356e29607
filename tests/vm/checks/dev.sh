#!/bin/sh
# boots: four/6.1 four-small/6.12
# seconds: 240
# needs: t1 hog
. /checks/lib.sh
t0() { read a b < /proc/uptime; echo "# at $a"; }
t0
hog cache 3 30000 t1 cache libc
t0
t1 literal plain
t0
t1 proper plain
t0
