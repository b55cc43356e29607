#!/bin/sh
# A real server: redis, pinned to a node, then moved to another one with its data thrown away.
# boots: four/6.1
# seconds: 300
# needs: actor redis-server redis-benchmark redis-cli
. /checks/lib.sh

socket=/tmp/redis.sock
cli() { timeout -s KILL 20 redis-cli -s $socket "$@"; }
load() { timeout -s KILL 60 redis-benchmark -s $socket -q -n 30000 -r 20000 -d 300 -c 8 -P 50 -t set,lpush,hset,sadd >/dev/null; }

# Per cent of the server's anonymous pages (its heap; stacks and libraries' data are little) not on a node.
remote() { # remote PID NODE
	awk -v own="N$2" '/anon=/ && !/ file=| stack/ {
		for (i = 1; i <= NF; i++)
			if ($i ~ /^N[0-9]+=/) {
				split($i, at, "=")
				all += at[2]
				if (at[1] != own)
					far += at[2]
			}
	} END { printf "%d %d\n", all, all ? 10000 * far / all : 10000 }' "/proc/$1/numa_maps"
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
	load
	set -- "$1" $(remote $pid 1)
	echo "# redis under $1, pinned to node 1: $2 pages, $3 per 10000 on other nodes"
	eval "$1_own=$3"
	keys=$(cli dbsize)
	for task in /proc/$pid/task/*; do taskset -p 8 "${task##*/}" >/dev/null; done
	cli flushall >/dev/null
	load
	set -- "$1" $(remote $pid 3)
	echo "# redis under $1, moved to node 3, flushed and filled again: $2 pages, $3 per 10000 on other nodes"
	eval "$1_moved=$3"
	[ "$(cli dbsize)" -gt 1000 ] && [ "$keys" -gt 1000 ] && kill -0 $pid
	ok $? "redis under $1 works"
	cli shutdown nosave 2>/dev/null
	wait $pid
	ok $? "redis under $1 ends well"
}

# Debian's redis is linked with jemalloc; libc's malloc comes first by preloading libc itself.
serve glibc /lib/libc.so.6
serve jemalloc /lib/libjemalloc.so.2
[ "${glibc_moved:-0}" -gt 3000 ]
ok $? "glibc keeps the old node's memory, so this tells ($glibc_moved per 10000)"
need_numaslab "redis" || exit 0
serve numaslab $numaslab || exit 0
[ "$numaslab_own" -le $((glibc_own + 100)) ]
ok $? "pinned: $numaslab_own per 10000 remote, glibc $glibc_own"
[ "$numaslab_moved" -le 500 ] && [ "$numaslab_moved" -lt "$glibc_moved" ]
ok $? "moved: $numaslab_moved per 10000 remote <= 500, glibc $glibc_moved"
exit 0
