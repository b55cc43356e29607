#!/bin/bash
# SPDX-License-Identifier: MIT
# What Ctrl-C leaves behind at various moments: no process, no file, no changed setting.
# shellcheck disable=SC1091,SC2154,SC2317 # tap.sh sets scratch; functions are called by name
. "${0%/*}/tap.sh"
build=$(realpath "${BUILD:-build}")
top=$(realpath "${0%/*}/../..")
shm=/dev/shm/numaslab-$(id -u)
cd "$top" || exit 1
unset MAKEFLAGS MAKELEVEL LD_PRELOAD

# until SECONDS COMMAND...: tries until it succeeds
until_true()
{
	local end=$((SECONDS + $1))
	shift
	until "$@"; do
		[ $SECONDS -lt $end ] || return 1
		read -rt 0.05 -u "$clock" # (a sleep that needs no memory)
	done
	return 0
}
exec {clock}<> <(:)
in_session() # the living of session $1
{
	ps -o stat=,pid=,args= -s "$1" | grep -v '^ *Z'
}
gone() { ! in_session "$1" >/dev/null; }
says() { grep -qsE -e "$1" "${watched:-$scratch/said}"; }

# interrupt MOMENT COMMAND...: Ctrl-C to all of the command's session, as soon as its output has
# a line that matches MOMENT; then its status is in $status, and what is left of it in $left.
interrupt()
{
	local moment=$1 session
	shift
	: >"$scratch/said"
	# A job of a script ignores SIGINT; a newcomer's does not.
	setsid env --default-signal=INT,QUIT,TERM,HUP "$@" >"$scratch/said" 2>&1 </dev/null &
	session=$!
	seen=0
	until_true 60 says "$moment" || seen=1
	kill -INT -- "-$session" 2>/dev/null
	until_true 40 gone "$session"
	left=$(in_session "$session")
	kill -KILL -- "-$session" 2>/dev/null
	{ wait "$session"; } 2>/dev/null
	status=$?
}
telemetry() { find "$shm" -type f 2>/dev/null | sort; }
new_telemetry() # of processes that are no more
{
	comm -13 <(printf '%s\n' "$before") <(telemetry) | while read -r file; do
		pid=$(basename "$file" | cut -d- -f2)
		[ -d "/proc/$pid" ] || echo "$file"
	done
}

# --- the demo
if command -v redis-server >/dev/null && command -v redis-benchmark >/dev/null; then
	mkdir "$scratch/demo"
	for moment in 'on port' 'five ticks' 'redis-server$' 'what the heap holds'; do
		before=$(telemetry)
		interrupt "$moment" env DEMO_PLAIN=1 TMPDIR="$scratch/demo" tests/demo
		files=$(find "$scratch/demo" -mindepth 1; new_telemetry)
		[[ $seen = 0 && ($status = 130 || $moment$status = what*0) && -z $left$files ]]
		result $? "demo: Ctrl-C at '$moment'" "status $status, wanted 130" "processes: $left" "files: $files" \
			"$(tail -n 3 "$scratch/said")"
	done
else
	skip "demo: Ctrl-C" "redis-server and redis-tools are not installed"
fi

# --- the building of the tests
interrupt 'building: 1 of 2' tests/building "$scratch/suite" / -- sh -c 'sleep 300; true'
[ "$seen" = 0 ] && [ "$status" = 130 ] && [ -z "$left" ]
result $? "the building of the tests says where it is; Ctrl-C" "status $status, wanted 130" "processes: $left" "$(cat "$scratch/said")"

# --- tests/run: suites with a process in a session of its own, and one that was killed while it published
cat >"$scratch/suite" <<EOF
	echo 1..2
	setsid sleep 4321.$$ &
	echo "ok 1 - \$! is away"
	[ "\$1" ] && exit
	LD_PRELOAD=$build/libnumaslab.so /usr/bin/python3 -c '
import glob, os
x = []
while not glob.glob(f"$shm/*-{os.getpid()}-*") and len(x) < 500000:
    x += [b"x" * (1000 + i % 9) for i in range(1000)]
print("publish" + "ed" if len(x) < 500000 else "silent", flush=True)
os.kill(os.getpid(), 9)'
	echo "ok 2 - \$(echo waiting)"
	sleep 4322.$$
EOF
strays() { pgrep -f "sleep 432[12].$$"; }
before=$(telemetry)
log=$scratch/logs/bash-${scratch//\//-}-suite
log=${log/--/-}.log
watched=$log interrupt waiting tests/run --logs "$scratch/logs" "bash $scratch/suite"
files=$(new_telemetry)
[ "$seen" = 0 ] && [ "$status" = 130 ] && [ -z "$left$files$(strays)" ] && grep -q '^published' "$log"
result $? "tests/run: Ctrl-C" "status $status, wanted 130" "processes: $left $(strays)" "files: $files" \
	"$(tail -n 3 "$scratch/said" "$log")"
try timeout -k 5 60 tests/run --logs "$scratch/logs" "bash $scratch/suite quick"
[ -z "$(strays)" ] && grep -q '^1 passed, 1 failed' <<<"$out"
result $? "tests/run: what a suite leaves is ended with it" "processes: $(strays)" "$out"
try timeout -k 5 60 script -qec "tests/run --logs $scratch/logs 'echo 1..1; sleep 4; echo ok 1 - x'" /dev/null
grep -q 'suites, [0-9]* s\] echo .*: [0-9]* s: 1\.\.1' <<<"$out"
result $? "tests/run on a terminal says where it is" "$out"

# --- strict overcommit of the whole machine
strict() { [ "$(</proc/sys/vm/overcommit_memory)" = 2 ]; }
lenient() { ! strict; }
refused=$build/tests/preload/contract_refused
if [ ! -w /proc/sys/vm/overcommit_memory ] || strict || [ ! -x "$refused" ]; then
	skip "strict overcommit ends with its test" "it may not be set here"
else
	for signal in INT KILL; do
		old=$(cat /proc/sys/vm/overcommit_{memory,ratio,kbytes})
		setsid env --default-signal=INT "$refused" overcommit_exhaust >"$scratch/said" 2>&1 </dev/null &
		session=$!
		until_true 30 strict
		seen=$?
		kill -$signal -- "-$session"
		until_true 30 lenient
		{ wait "$session"; } 2>/dev/null
		[ "$seen" = 0 ] && [ "$(cat /proc/sys/vm/overcommit_{memory,ratio,kbytes})" = "$old" ]
		result $? "strict overcommit ends with its test (SIG$signal)" "seen: $seen" "$(cat "$scratch/said")"
	done
fi

# --- the guests
kernel=$(find .cache/vm -name 'vmlinuz-*' 2>/dev/null | head -n 1)
if ! command -v qemu-system-x86_64 >/dev/null || [ -z "$kernel" ] || ! flock -n .cache/vm/lock true; then
	skip "guests: Ctrl-C" "no qemu or no kernel yet, or others use them"
else
	mkdir "$scratch/vm"
	interrupt 'booting' env TMPDIR="$scratch/vm" tests/vm/run -f 'one/6.1 '
	files=$(find "$scratch/vm" -mindepth 1)
	guests() { pgrep -f "qemu.*$scratch/vm"; }
	until_true 20 eval '! guests >/dev/null'
	[ "$seen" = 0 ] && [ "$status" != 0 ] && [ -z "$left$files$(guests)" ]
	result $? "guests: Ctrl-C" "status $status" "processes: $left $(guests)" "files: $files" "$(tail -n 3 "$scratch/said")"
fi

# --- set-up: apt-get is a fake, which says how far it is and then waits
mkdir "$scratch/fake"
cat >"$scratch/fake/apt-get" <<EOF
#!/bin/bash
case "\$*" in *" -s "*|*update*) exit 0 ;; esac
trap 'echo ended >>$scratch/apt; exit 1' TERM
echo "\$PHASE:1:25.0:Retrieving file 3 of 12" >&3
sleep "\$APT_TAKES" &
wait \$!
echo whole >>$scratch/apt
EOF
printf '#!/bin/sh\nexit 0\n' >"$scratch/fake/dpkg-query"
chmod 755 "$scratch/fake"/*
setup() # PHASE SECONDS MOMENT
{
	rm -f "$scratch/apt"
	interrupt "$3" env PATH="$scratch/fake:$PATH" PHASE="$1" APT_TAKES="$2" BUILD="$scratch/log" \
		SETUP_POLICY="$scratch/policy" tests/setup lint
	until_true 5 test -s "$scratch/apt"
}
if [ "$(id -u)" = 0 ]; then
	setup dlstatus 999 'downloading, 25 %: file 3'
	[ "$seen" = 0 ] && [ "$status" = 130 ] && [ ! -e "$scratch/policy" ] && [ "$(cat "$scratch/apt")" = ended ]
	result $? "set-up: Ctrl-C ends a download" "status $status" "$(cat "$scratch/said" "$scratch/apt")"
	setup pmstatus 2 'installing, 25 %'
	[ "$seen" = 0 ] && [ "$status" = 130 ] && [ ! -e "$scratch/policy" ] && [ "$(cat "$scratch/apt")" = whole ]
	result $? "set-up: Ctrl-C waits for packages that are being unpacked" "status $status" "$(cat "$scratch/said" "$scratch/apt")"
else
	skip "set-up: Ctrl-C" "only root installs"
fi
finish
