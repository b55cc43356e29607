#!/bin/bash
# SPDX-License-Identifier: MIT
# The models of the ring and of the mirror hold, and each mutant of it is found out.
if ! command -v spin >/dev/null; then
	echo "1..0 # SKIP spin is not installed"
	exit 0
fi
here=$(realpath "$(dirname "$0")")
model=$here/ring.pml
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1
count=0
failed=0

check() # held|found NAME FLAGS...
{
	want=$1
	name=$2
	shift 2
	count=$((count + 1))
	if spin -a "$@" "$model" >out 2>&1 && ${CC:-gcc} -O2 -w -DSAFETY -DCOLLAPSE pan.c -o pan &&
		./pan -m100000 >out 2>&1; then
		grep -q 'errors: 0' out && ! grep -q 'max search depth too small' out && got=held || got=found
	else
		got=broken
	fi
	if [ "$got" = "$want" ]; then
		echo "ok $count - $name ($(grep -o '[0-9]* states, stored' out))"
	else
		failed=1
		echo "not ok $count - $name"
		sed 's/^/# /' out
	fi
}

check held "an entry with a pin is read whole"
check held "with stuck readers overtaken, what passes the last look is whole" -DSTUCK
check found "mutant: the writer's barrier left out" -DNO_C
check found "mutant: the reader's barrier left out" -DNO_2
check found "mutant: the reader does not look again" -DNO_3
check found "mutant: the writer does not look again" -DNO_D
check found "mutant: the write barrier left out" -DNO_WMB
check found "mutant: stuck, the reader does not look at the end" -DSTUCK -DNO_5
check found "mutant: stuck, the generation is not taken away first" -DSTUCK -DNO_B
model=$here/mirror.pml
check held "the mirror is exact when all who changed a counter are done"
check found "mutant: the mirror's barrier left out" -DNO_FENCE
check found "mutant: the mirror does not look again" -DNO_LOOK
echo "1..$count"
exit $failed
