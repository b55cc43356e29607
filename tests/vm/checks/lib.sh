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

# The library or a program that is not built is a failure, never a skip.
need_numaslab() { # need_numaslab NAME
	[ -f $numaslab ] && return
	echo "not ok - $1 (libnumaslab.so is not built)"
	return 1
}

# A program that a killing signal may reach, under an allocator ("" for glibc's).
under() { # under LIBRARY COMMAND...
	preload=$1
	shift
	LD_PRELOAD=$preload "$@"
}

# The same, with a result of its own for a program that died.
expect_alive() { # expect_alive NAME COMMAND...
	what=$1
	shift
	"$@"
	status=$?
	[ $status -le 1 ] || ok 1 "$what: the program ends (status $status)"
	return $status
}

free_kb() { # free_kb NODE
	awk '/MemFree/ { print $4 }' "/sys/devices/system/node/node$1/meminfo"
}

vmstat() { # vmstat NAME
	awk -v n="$1" '$1 == n { print $2 }' /proc/vmstat
}
