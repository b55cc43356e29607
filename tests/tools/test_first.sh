#!/bin/bash
# SPDX-License-Identifier: MIT
# First contact: what make, the set-up, stat and top say where something is missing, not one's own, or gone.
# shellcheck disable=SC1091,SC2154 # tap.sh sets status, out, err and scratch
. "${0%/*}/tap.sh"
build=$(realpath "${BUILD:-build}")
cd "$(dirname "$0")/../.." || exit 1
unset MAKEFLAGS MAKELEVEL LD_PRELOAD NUMASLAB_DIR
cc=${CC:-cc}

# --- make: a compiler that does not find the headers of $LACK
cat >"$scratch/gcc" <<EOF
#!/bin/bash
[[ "\$*" = *-E* ]] || exec $cc "\$@"
text=\$(cat)
for header in \$LACK; do [[ \$text != "#include <\$header>"* ]] || exit 1; done
exec $cc "\$@" <<<"\$text"
EOF
# No package is installed, as far as dpkg says.
printf '#!/bin/sh\nexit 1\n' >"$scratch/dpkg-query"
printf '#!/bin/sh\nexit 1\n' >"$scratch/apt-get"
chmod 755 "$scratch/gcc" "$scratch/dpkg-query" "$scratch/apt-get"
PATH=$scratch:$PATH
for header in stdlib.h numaif.h urcu/uatomic.h; do
	try env LACK=$header make -s BUILD="$scratch/build" CC="$scratch/gcc"
	expect "make without <$header>: one line" 2 err "^Makefile:[0-9]+: \*\*\* <$header>: not found\. .*as root: apt-get install --no-install-recommends gcc make libc6-dev .*libnuma-dev"
	[ "$(wc -l <<<"$err")" = 1 ] && [ ! -e "$scratch/build" ]
	result $? "make without <$header>: nothing half-done" "$err" "$(ls "$scratch/build" 2>&1)"
done
try make -s BUILD="$scratch/build" CC="$scratch/none -m64"
expect "make without a compiler" 2 err "\*\*\* the compiler '$scratch/none': not found\. .*apt-get install"
try make -s help CC="$scratch/none"
expect "make help needs no compiler" 0 out '^demo '
try env LACK="cjson/cJSON.h ncursesw/curses.h" make -sn BUILD="$scratch/build" CC="$scratch/gcc" "$scratch/build/numaslab"
expect "make without optional headers: what is left out" 0 out 'without optional packages: .*libcjson-dev\(no-compare.*libncurses-dev\(top-without-its-screen\)'
expect "make without optional headers: the command that installs them" 0 out 'apt-get install .*libcjson-dev libncurses-dev; then make again'

# --- the set-up
try tests/setup -n build
expect "the set-up says what it would install" 1 err '^tests/setup: to install first, as root: apt-get install --no-install-recommends gcc make'
if [ "$(id -u)" = 0 ] && setpriv --reuid=65534 --regid=65534 --clear-groups test -r tests/setup; then
	chmod 711 "$scratch"
	try setpriv --reuid=65534 --regid=65534 --clear-groups env BUILD="$scratch/none" tests/setup build
	expect "the set-up of a user who is not root: one line" 1 err '^tests/setup: to install first, as root: apt-get install'
	chmod 755 "$scratch"
else
	skip "the set-up of a user who is not root: one line" "this needs root, and a tree that others may read"
fi
try env SETUP=no tests/setup build
expect "SETUP=no takes the machine as it is" 0 none ''
mkdir "$scratch/bare"
for tool in bash dirname awk id env; do ln -s "$(command -v $tool)" "$scratch/bare/$tool"; done
try env PATH="$scratch/bare" tests/setup build
expect "where there is no apt: the packages, and how to go on" 1 err '^tests/setup: no apt here; .* SETUP=no: gcc make libc6-dev'

# --- processes
numaslab=$build/numaslab
mkdir "$scratch/shared"
cp "$numaslab" "$scratch/shared/" # where another user finds it
another() { setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; }
sleep 0 &
gone=$!
wait
for command in 'stat' 'top -b -n 1 -p'; do
	name=${command%% *}
	# shellcheck disable=SC2086
	try "$numaslab" $command $gone
	expect "$name: a process that exited: what, and where to look" 3 err "^numaslab $name: no process $gone: it has exited, .*'numaslab stat' lists"
	# shellcheck disable=SC2086
	try "$numaslab" $command $$
	expect "$name: a process without the library: why, and what to do" 3 err "^numaslab $name: process $$ does not publish: .*start it with 'numaslab run'"
	if [ "$(id -u)" = 0 ] && another true 2>/dev/null; then
		# shellcheck disable=SC2086
		try another "$scratch/shared/numaslab" $command $$
		expect "$name: a process of another user: whose, and what to do" 4 err "^numaslab $name: process $$ belongs to another user, root: ask as that user or as root, as in 'sudo numaslab ${name/top/top -p} $$'$"
		mkdir -p "$scratch/secret"
		chmod 700 "$scratch/secret"
		try another env NUMASLAB_DIR="$scratch/secret" "$scratch/shared/numaslab" ${command%-p}
		expect "$name: only others' processes: what to do" 4 err "^numaslab $name: no process of yours publishes, .*'sudo numaslab $name'"
	else
		skip "$name: a process of another user: whose, and what to do" "this needs root, to become another user"
		skip "$name: only others' processes: what to do" "this needs root, to become another user"
	fi
	mkdir -p "$scratch/empty"
	# shellcheck disable=SC2086
	try env NUMASLAB_DIR="$scratch/empty" "$numaslab" ${command%-p}
	expect "$name: nothing publishes: what to do" 3 err "^numaslab $name: no process publishes in $scratch/empty, where NUMASLAB_DIR .*: start one with 'numaslab run"
done
finish
