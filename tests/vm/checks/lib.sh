# Sourced by each check inside the guest.

# Pages stay where they were put; the check about balancing switches it on.
echo 0 >/proc/sys/kernel/numa_balancing
echo always >/sys/kernel/mm/transparent_hugepage/enabled
numaslab=/lib/libnumaslab.so
jemalloc=/lib/libjemalloc.so.2
mimalloc=/lib/libmimalloc.so.2
tcmalloc=/lib/libtcmalloc_minimal.so.4

ok() { # ok STATUS NAME
	if [ "$1" = 0 ]; then echo "ok - $2"; else echo "not ok - $2"; fi
	return "$1"
}

# A library that is not built, or under which nothing runs, is a failure, never a skip.
need_numaslab() { # need_numaslab NAME
	if [ ! -f $numaslab ]; then
		echo "not ok - $1 (libnumaslab.so is not built)"
		return 1
	fi
	under $numaslab actor new=1000,16,1024 && return
	echo "not ok - $1 (the simplest program does not run under libnumaslab.so, status $?)"
	return 1
}

# A command under an allocator ("" for glibc's); one that hangs is killed (status 137).
in_time="timeout -s KILL ${limit:-120}"
under() { # under LIBRARY COMMAND...
	preload=$1
	shift
	LD_PRELOAD=$preload $in_time "$@"
}

# The same, with a result of its own for a program that hung or died.
expect_alive() { # expect_alive NAME COMMAND...
	what=$1
	shift
	"$@"
	status=$?
	case $status in
	0 | 1) ;;
	137) ok 1 "$what: the program ends (it hung, or was killed)" ;;
	*) ok 1 "$what: the program ends well (status $status)" ;;
	esac
	return $status
}

free_kb() { # free_kb NODE
	awk '/MemFree/ { print $4 }' "/sys/devices/system/node/node$1/meminfo"
}

vmstat() { # vmstat NAME
	awk -v n="$1" '$1 == n { print $2 }' /proc/vmstat
}
