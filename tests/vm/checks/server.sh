#!/bin/sh
# A real server: redis, pinned to a node, then moved to another one with its data thrown away.
# boots: four/6.1
# seconds: 300
# needs: actor redis-server redis-benchmark redis-cli
# shellcheck disable=SC2154 # serve sets NAME_own and NAME_moved
# shellcheck source=tests/vm/checks/lib.sh
. /checks/lib.sh

socket=/tmp/redis.sock
cli() { timeout -s KILL 20 redis-cli -s $socket "$@"; }
load() { timeout -s KILL 60 redis-benchmark -s $socket -q -n 30000 -r 20000 -d 700 -c 8 -P 50 -t set,lpush,hset,sadd >/dev/null; }

# Anonymous pages (the heap; stacks and libraries' data are little) of a process: all, and those not on a node.
pages() { # pages PID NODE
	awk -v own="N$2" '/anon=/ && !/ file=| stack/ {
		for (i = 1; i <= NF; i++)
			if ($i ~ /^N[0-9]+=/) {
				split($i, at, "=")
				all += at[2]
				if (at[1] != own)
					far += at[2]
			}
	} END { print all + 0, far + 0 }' "/proc/$1/numa_maps"
}
# What came since the start (linked libraries have pages of their own by then), per 10000.
remote() { # remote PID NODE ALL-AT-START FAR-AT-START
	# shellcheck disable=SC2046 # two words
	set -- $(pages "$1" "$2") "$3" "$4"
	echo "$1 pages, $2 elsewhere; at the start $3, $4 elsewhere" >&2
	echo $(($1 > $3 ? 10000 * ($2 - $4) / ($1 - $3) : 10000))
}

serve() { # serve NAME LIBRARY: sets ${NAME}_own and ${NAME}_moved, in hundredths of a per cent
	rm -f $socket
	LD_PRELOAD=$2 taskset 2 redis-server --port 0 --unixsocket $socket --save '' --daemonize no \
		--logfile /tmp/redis.log &
	pid=$!
	tries=0
	until cli ping 2>/dev/null | grep -q PONG; do
		tries=$((tries + 1))
		if [ $tries = 500 ] || ! kill -0 $pid 2>/dev/null; then
			ok 1 "redis under $1 starts"
			tail -n 5 /tmp/redis.log
			kill -KILL $pid 2>/dev/null
			return 1
		fi
	done
	echo 0 >/proc/$pid/oom_score_adj
	start1=$(pages $pid 1) start3=$(pages $pid 3)
	load
	eval "$1_own=$(remote $pid 1 $start1)"
	keys=$(cli dbsize)
	for task in /proc/$pid/task/*; do taskset -p 8 "${task##*/}" >/dev/null; done
	cli flushall >/dev/null
	load
	eval "$1_moved=$(remote $pid 3 $start3)"
	eval echo "redis under $1, on other nodes per 10000: pinned \$$1_own, moved, flushed and filled again \$$1_moved"
	[ "$(cli dbsize)" -gt 1000 ] && [ "$keys" -gt 1000 ] && kill -0 $pid
	ok $? "redis under $1 works"
	cli shutdown nosave 2>/dev/null
	wait $pid
	ok $? "redis under $1 ends well"
}

# Debian's redis is linked with jemalloc; libc's malloc comes first by preloading libc itself.
serve glibc /lib/libc.so.6
serve jemalloc /lib/libjemalloc.so.2
glibc_moved=${glibc_moved:-0}
[ "$glibc_moved" -gt 3000 ]
ok $? "glibc keeps the old node's memory, so this tells ($glibc_moved per 10000)"
need_numaslab "redis" || exit 0
serve numaslab $numaslab || exit 0
[ "$numaslab_own" -le $((glibc_own + 100)) ]
ok $? "pinned: $numaslab_own per 10000 remote, glibc $glibc_own"
# Slabs that the server's own long-lived objects keep, and what is kept for reuse, are the rest.
[ "$numaslab_moved" -le 1000 ] && [ "$numaslab_moved" -lt "$glibc_moved" ]
ok $? "moved: $numaslab_moved per 10000 remote <= 1000, glibc $glibc_moved"
exit 0
