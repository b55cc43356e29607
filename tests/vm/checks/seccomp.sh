#!/bin/sh
# Filters that refuse or kill placement calls; no /sys, no /dev/shm: it runs, and first touch places.
# boots: four/6.1 four-small/6.12
# seconds: 240
# needs: actor seccomp
limit=60
# shellcheck source=tests/vm/checks/lib.sh
. /checks/lib.sh

# The filters work: get_mempolicy under them fails, or kills.
for mode in errno kill; do
	seccomp $mode actor node=0 new=10,16,16 policy=bind,1 >/tmp/out 2>&1
	status=$?
	case $mode in errno) [ $status = 1 ] && grep -q 'Operation not permitted' /tmp/out ;; *) [ $status -gt 128 ] ;; esac
	ok $? "the filter '$mode' is in force, so this tells (status $status)"
done
actor node=0 new=100,16,16 filter=steady do=true 2>&1 | grep -q 'system call .* under the filter'
ok $? "the filter 'steady' is in force, so this tells"
need_numaslab "seccomp" || exit 0

bare() { # bare COMMAND...: without /sys and /dev/shm
	unshare -m sh -c 'mount -t tmpfs none /dev && mknod /dev/null c 1 3 && umount -l /sys &&
		exec "$@"' sh "$@"
}
first_touch="new=20000,16,1024 big=4,4000000"
for mode in errno kill; do
	expect_alive "$mode" $in_time seccomp $mode LD_PRELOAD=$numaslab /bin/actor cpu=2 $first_touch \
		want=99,2:"filter '$mode' before exec: by first touch" free=50 fresh new=20000,16,1024 \
		want=99,2:"filter '$mode' before exec: again" free=100 trim
	expect_alive "$mode, bare" bare $in_time seccomp $mode LD_PRELOAD=$numaslab /bin/actor cpu=2 $first_touch \
		want=99,2:"filter '$mode', no /sys, no /dev/shm: by first touch" free=100 trim
done
expect_alive "bare" bare env LD_PRELOAD=$numaslab $in_time actor cpu=2 $first_touch \
	want=99,2:"no filter, no /sys, no /dev/shm" free=100 trim
for mode in errno kill steady; do
	expect_alive "$mode in main" under $numaslab actor cpu=2 $first_touch filter=$mode \
		free=50 fresh $first_touch want=99,2:"filter '$mode' set in main: goes on, by first touch" \
		free=100 trim fresh new=20000,16,1024 want=99,2:"filter '$mode' set in main: again"
done
[ -z "$(LD_PRELOAD=$numaslab seccomp errno true 2>&1)" ]
ok $? "nothing is printed"
exit 0
