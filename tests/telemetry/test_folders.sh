#!/bin/bash
# SPDX-License-Identifier: MIT
# What tests leave in /tmp and /dev/shm: nothing, also when they are killed.
# Runs itself again in a mount namespace, where both are empty.
build=$(realpath "${BUILD:-build}")
top=$(realpath "${0%/*}/../..")
cd "$top" || exit 1
suites=()
for name in layout ring map control "stress 50000 2000" "fuzz 2000"; do
	suites+=("$build/tests/telemetry/test_$name")
done

if [ "$1" != inside ]; then
	if ! unshare -m true 2>/dev/null; then
		echo "1..0 # SKIP no mount namespace"
		exit
	fi
	exec timeout -k 5 240 unshare -m "$0" inside
fi

mount --make-rprivate / && mount -t tmpfs none /tmp && mount -t tmpfs none /dev/shm ||
	{ echo "1..0 # SKIP nothing can be mounted"; exit; }
number=0
result() # STATUS NAME NOTES...
{
	number=$((number + 1))
	[ "$1" = 0 ] && echo "ok $number - $2" && return
	echo "not ok $number - $2"
	printf '%s\n' "${@:3}" | sed 's/^/# /'
}
left() { find /tmp /dev/shm -mindepth 1; }
exec {clock}<> <(:)
until_true() # COMMAND...: within 20 seconds
{
	local end=$((SECONDS + 20))
	until "$@"; do
		[ $SECONDS -lt $end ] || return 1
		read -rt 0.05 -u "$clock"
	done
	return 0
}

# The runner kills what a suite left, and looks after it no longer.
out=$(tests/run --timeout 200 --logs "$build/test-logs/inside" "${suites[@]}" 2>&1)
result $? "they pass" "$out"
files=$(left)
[ -z "$files" ]
result $? "and leave nothing" "$files"

# A user's folder, and with it what a killed process left there: the runner ends with it.
out=$(tests/run --logs "$build/test-logs/inside" \
	'mkdir -m 700 /dev/shm/numaslab-4711; touch /dev/shm/numaslab-4711/1-2-3-0; echo 1..1; echo ok 1' 2>&1)
[ -z "$(left)" ]
result $? "the runner leaves no folder of a user that was not there" "$(left)" "$out"
rm -rf /dev/shm/numaslab-4711

# Tests that cover and change these places do it in namespaces of their own.
if out=$("$build/tests/preload/contract_containers" read_only root 2>&1); then
	files=$(left)
	[ -z "$files" ] && touch /tmp/a /dev/shm/a && rm /tmp/a /dev/shm/a
	result $? "tests of a read-only and of a bare root change nothing here" "$files" "$(mount | grep -E ' /tmp | /dev/shm ')"
else
	result 1 "tests of a read-only and of a bare root" "$out"
fi

is_there() { compgen -G '/tmp/numaslab-stress-*' >/dev/null; }
is_clean() { [ -z "$(left)" ]; }
setsid "$build/tests/telemetry/test_stress" 1000000000 >/dev/null 2>&1 &
until_true is_there
result $? "one that runs has a folder"
kill -KILL -- "-$!" 2>/dev/null || kill -KILL $!
{ wait $!; } 2>/dev/null
until_true is_clean
result $? "killed with its whole group, it leaves nothing" "$(left)"
echo "1..$number"
