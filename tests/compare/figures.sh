#!/bin/sh
# SPDX-License-Identifier: MIT
# What a release is held to, without a clock: figures.sh BUILD prints "instructions N", those inside the
# allocator of one call of each operation, and T3's lines with the bytes held.  The allocator is the
# preloaded one, else libc's; what counts is not itself counted under it.
lib=${LD_PRELOAD%%:*}
unset LD_PRELOAD
"$1/tests/bench/count" --quick --samples 11 ${lib:+--lib "$lib"} |
	awk 'NR > 1 { sum += $2 } END { if (sum) print "instructions", sum }'
export LD_PRELOAD="$lib"
exec "$1/tests/bench/t3" b 20000
