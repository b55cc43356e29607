#!/bin/bash
# SPDX-License-Identifier: MIT
# Numaslab and numaslab run, each message and exit status.
# shellcheck disable=SC1091,SC2046,SC2154 # tap.sh sets status, out, err and scratch
. "${0%/*}/tap.sh"
numaslab=$(realpath "${BUILD:-build}/numaslab")
helper=$(realpath "${BUILD:-build}/tests/tools/helper")
unset LD_PRELOAD $(env | sed -n 's/^\(NUMASLAB_[A-Za-z0-9_]*\)=.*/\1/p')

# Any shared library will do where only the start is tested; it is found beside the command.
mkdir "$scratch/bin" "$scratch/lib"
cp "$numaslab" "$scratch/bin/numaslab"
echo 'int numaslab_test_library = 1;' | ${CC:-cc} -x c -shared -fPIC -o "$scratch/lib/libnumaslab.so" - || exit 1
lib=$scratch/lib/libnumaslab.so
ns=$scratch/bin/numaslab

# Runs as a user who is not root; the status 99 says that it cannot be done.
as_nobody()
{
	if [ "$(id -u)" = 0 ]; then
		setpriv --reuid=65534 --regid=65534 --clear-groups "$@"
	else
		"$@"
	fi
}

# --- the command itself
try "$ns"
expect "no argument: the commands, exit 2" 2 err '^  run +run a program'
expect "no argument is said" 2 err '^numaslab: no command given$'
try "$ns" --help
expect "--help lists the commands" 0 out '^  doctor '
try "$ns" --version
expect "--version" 0 out '^numaslab [0-9]+\.[0-9]+\.[0-9]+$'
try "$ns" docter
expect "unknown command: the nearest one" 2 err "^numaslab: no command 'docter'; did you mean 'doctor'\?$"
try "$ns" xyzzy
expect "unknown command, nothing near" 2 err "^numaslab: no command 'xyzzy'$"
try "$ns" $'\e[2Jx'
expect "unknown command with control characters" 2 err "no command '\?\[2Jx'"
try "$ns" --frob
expect "unknown option" 2 err "^numaslab: unknown option '--frob'$"
for command in $("$ns" --list-commands); do
	try "$ns" "$command" --help
	if [[ $status = 77 && $err == *'not built in'* ]]; then
		skip "$command --help and its messages" "$err"
		continue
	fi
	expect "$command --help" 0 out "^Usage: numaslab $command"
	try "$ns" help "$command"
	expect "help $command" 0 out "^Usage: numaslab $command"
	try "$ns" "$command" --version
	expect "$command --version" 0 out '^numaslab [0-9]'
	try "$ns" "$command" --hepl
	expect "$command: unknown option: the nearest one" 2 err "^numaslab $command: unknown option '--hepl'; did you mean '--help'\?$"
	try "$ns" "$command" --help=x
	expect "$command: a value that is not wanted" 2 err "'--help' takes no value"
	try "$ns" "$command" -@
	expect "$command: unknown short option" 2 err "unknown option '-@'"
done

# --- starting a program
try "$ns" run
expect "run without a command" 2 err '^numaslab run: no command given'
try "$ns" run --
expect "run -- without a command" 2 err '^numaslab run: no command given'
try "$ns" run -- sh -c 'echo "$LD_PRELOAD"'
expect "LD_PRELOAD is the library, found in ../lib" 0 out "^$lib$"
try "$ns" run -- grep -c "$lib" /proc/self/maps
expect "the program has the library mapped" 0 out '^[1-9]'
try env LD_PRELOAD=libm.so.6 "$ns" run sh -c 'echo "$LD_PRELOAD"'
expect "an existing LD_PRELOAD is kept behind it" 0 out "^$lib:libm.so.6$"
try env LD_PRELOAD="$lib" "$ns" run sh -c 'echo "$LD_PRELOAD"'
expect "the library is not named twice" 0 out "^$lib$"
try "$ns" run -- sh -c 'exit 7'
expect "exit status of the program" 7 none ''
try "$ns" run -- sh -c 'kill -TERM $$'
expect "a signal of the program" 143 none ''
try "$ns" run -- echo --help -x
expect "options behind the command are the command's" 0 out '^--help -x$'
try "$ns" run -- sh -c 'echo $$; echo $PPID'
result $([ "${out##*$'\n'}" = $$ ]; echo $?) "run becomes the program: no process in between" "$out, this is $$"

# --- where the library is
cp "$lib" "$scratch/bin/libnumaslab.so"
try "$ns" run -- sh -c 'echo "$LD_PRELOAD"'
expect "beside the command comes first" 0 out "^$scratch/bin/libnumaslab.so$"
rm "$scratch/bin/libnumaslab.so"
mv "$lib" "$scratch/elsewhere.so"
try env -u HOME "$ns" run -- true
if [ "$status" = 0 ]; then
	skip "no library: exit 125, and where it was looked for" "one is installed where this build looks last"
else
	expect "no library: exit 125, and where it was looked for" 125 err "cannot find libnumaslab.so \(looked for $scratch/bin/libnumaslab.so, $scratch/bin/../lib/libnumaslab.so, .*build it with 'make'"
fi
try "$ns" run --library "$scratch/elsewhere.so" -- sh -c 'echo "$LD_PRELOAD"'
expect "--library" 0 out "^$scratch/elsewhere.so$"
try "$ns" run --library "$scratch/none.so" -- true
expect "--library that does not exist" 125 err "cannot use the library '.*none.so': No such file"
try "$ns" run --library /etc/passwd -- true
expect "--library that is no library" 125 err "'/etc/passwd' is not a shared library"
mkdir "$scratch/a b"
cp "$scratch/elsewhere.so" "$scratch/a b/"
try "$ns" run --library "$scratch/a b/elsewhere.so" -- true
expect "a path that LD_PRELOAD cannot express" 125 err 'has a space or a colon in its path'
try "$ns" run --library
expect "--library without a value" 2 err "option '--library' needs a value"
mv "$scratch/elsewhere.so" "$lib"

# --- variables
show='echo "$NUMASLAB_PLACEMENT $NUMASLAB_CHECK $NUMASLAB_OBSERVE"'
try "$ns" run --set PLACEMENT=kernel --set NUMASLAB_OBSERVE=4 --check -- sh -c "$show"
expect "--set with and without the prefix, --check" 0 out '^kernel 1 4$'
try "$ns" run --placement observe -- sh -c "$show"
expect "--placement" 0 out '^observe *$'
try env NUMASLAB_PLACEMENT=bad "$ns" run --placement home -- sh -c "$show"
expect "an option is stronger than the environment" 0 out '^home *$'
try "$ns" run --set GROUP=root -- sh -c 'echo "$NUMASLAB_GROUP"'
expect "a group's name is turned into its number" 0 out '^0$'
try env NUMASLAB_PLACEMENT= "$ns" run -- true
expect "an empty value is an unset one" 0 none ''
try "$ns" run --placement hmoe -- true
expect "--placement with a bad mode" 2 err "NUMASLAB_PLACEMENT cannot be 'hmoe': it is one of home\|observe\|kernel"
try "$ns" run --set WINDOW=1M -- true
expect "--set with a bad value" 2 err "NUMASLAB_WINDOW cannot be '1M': it is bytes .* 0 or 64M..1T"
try "$ns" run --set 'TOPOLOGY=0:1G@x' -- true
expect "--set with a malformed topology" 2 err "NUMASLAB_TOPOLOGY cannot be '0:1G@x': it is node:memory@CPUs"
try "$ns" run --set PLACMENT=home -- true
expect "--set with an unknown name" 2 err 'NUMASLAB_PLACMENT is not a variable of numaslab; did you mean NUMASLAB_PLACEMENT\?'
try "$ns" run --set CHECK -- true
expect "--set without a value" 2 err "'CHECK' is not NAME=VALUE"
try env NUMASLAB_TICK_MS=0 "$ns" run -- true
expect "a bad value in the environment" 2 err "NUMASLAB_TICK_MS cannot be '0': it is a number, 1..60000"
try env NUMASLAB_TICKS=5 NUMASLAB_CHECK=maybe "$ns" run -- true
expect "an unknown name in the environment" 2 err 'NUMASLAB_TICKS is not a variable'
expect "and every other bad one too" 2 err "NUMASLAB_CHECK cannot be 'maybe'"
expect "and what to do" 2 err '^Unset or correct it'
try env NUMASLAB_DIR=$'x\e[31m' "$ns" run -- true
expect "control characters of a value stay out" 2 err "NUMASLAB_DIR cannot be 'x\?\[31m'"
try "$ns" run --help-tunables
expect "--help-tunables: name, default, range" 0 out '^NUMASLAB_PLACEMENT +home +home\|observe\|kernel$'
expect "--help-tunables: meaning" 0 out '^    where a slab'
try "$ns" run --help-tunables=names
expect "--help-tunables=names" 0 out '^THP=auto\|never\|always$'
try "$ns" run --help-tunables=xml
expect "--help-tunables of another kind" 2 err 'is man, names or nothing'

# --- programs that cannot be run, or not be preloaded
try "$ns" run -- no-such-program-here
expect "no such command" 127 err "^numaslab run: 'no-such-program-here': no such command in PATH$"
if [ "$(id -u)" = 0 ] && as_nobody test -x "$ns"; then
	mkdir "$scratch/closed"
	chmod 700 "$scratch/closed"
	try as_nobody env PATH="$scratch/closed:$PATH" "$ns" run -- no-such-program-here
	expect "a directory of PATH that may not be entered holds nothing" 127 err 'no such command in PATH$'
else
	skip "a directory of PATH that may not be entered holds nothing" "this needs root, to become another user"
fi
try "$ns" run -- ./no/such/file
expect "no such file" 127 err "^numaslab run: './no/such/file': no such file$"
try "$ns" run -- $'\e]0;x\a'
expect "control characters of a program's name" 127 err "'\?\]0;x\?': no such command"
try "$ns" run -- /tmp/
expect "a directory" 126 err "'/tmp/' is a directory, not a program"
echo 'echo hello' >"$scratch/plain"
try "$ns" run -- "$scratch/plain"
expect "a file that is not executable" 126 err "plain' may not be executed; .*chmod \+x"
chmod 755 "$scratch/plain"
try "$ns" run -- "$scratch/plain"
expect "a script without #! runs as execvp runs it" 0 out '^hello$'
printf '#!/bin/sh\necho "$LD_PRELOAD"\n' >"$scratch/script"
printf '#!/no/such/interpreter\n' >"$scratch/lost"
printf '#! %s  -x\n' "$scratch/static" >"$scratch/static-script"
chmod 755 "$scratch/script" "$scratch/lost" "$scratch/static-script"
try "$ns" run -- "$scratch/script"
expect "a script runs with the library" 0 out "^$lib$"
try "$ns" run -- "$scratch/lost"
expect "a script whose interpreter is missing" 127 err "lost' needs '/no/such/interpreter', which does not exist"
echo 'int main(void) { return 0; }' >"$scratch/main.c"
if ${CC:-cc} -static "$scratch/main.c" -o "$scratch/static" 2>"$scratch/err"; then
	try "$ns" run -- "$scratch/static"
	expect "a static program" 126 err "static' is statically linked: no loader reads LD_PRELOAD"
	try "$ns" run -- "$scratch/static-script"
	expect "a script of a static interpreter: the interpreter is named" 126 err "'$scratch/static' is statically linked"
else
	skip "a static program" "no static C library"
fi
if ${CC:-cc} -static-pie "$scratch/main.c" -o "$scratch/static-pie" 2>"$scratch/err"; then
	try "$ns" run -- "$scratch/static-pie"
	expect "a static position-independent program" 126 err 'is statically linked'
else
	skip "a static position-independent program" "no static-pie start files"
fi
${CC:-cc} "$scratch/main.c" -o "$scratch/dynamic" || exit 1
loader=$(readelf -l "$scratch/dynamic" | sed -n 's/.*interpreter: \(.*\)\]/\1/p')
try "$ns" run -- "$loader" /bin/sh -c 'echo "$LD_PRELOAD"'
expect "the loader started by itself is not a static program" 0 out "^$lib$"
cp "$scratch/dynamic" "$scratch/narrow"
"$helper" elf "$scratch/narrow" 1 3
try "$ns" run -- "$scratch/narrow"
expect "a 32-bit program" 126 err "narrow' is a 32-bit program and libnumaslab.so is 64-bit"
head -c 100 "$scratch/dynamic" >"$scratch/cut"
chmod 755 "$scratch/cut"
try "$ns" run -- "$scratch/cut"
expect "a program file that is cut" 126 err "cut' is a damaged program file"
cp "$scratch/dynamic" "$scratch/riscv"
"$helper" elf "$scratch/riscv" 2 243
try "$ns" run -- "$scratch/riscv"
expect "a program for another processor" 126 err "riscv' is a program for another processor \(riscv\)"
cp "$scratch/dynamic" "$scratch/musl"
for to in /lib/ld-musl-x86_64.so.1 /lib/no-such-loader.so.9; do
	${CC:-cc} "$scratch/main.c" -Wl,--dynamic-linker=$to -o "$scratch/musl" || exit 1
	try "$ns" run -- "$scratch/musl"
	case $to in
	*musl*) expect "a program of another C library" 126 err "uses another C library \(its loader is $to\)" ;;
	*) expect "a program whose loader is missing" 127 err "needs '$to', which does not exist" ;;
	esac
done

# --- raised privileges, for a user who is not root
cp "$scratch/dynamic" "$scratch/setuid"
cp "$scratch/dynamic" "$scratch/capable"
chmod 4755 "$scratch/setuid"
if [ "$(id -u)" != 0 ] || ! as_nobody true 2>/dev/null || ! as_nobody test -x "$ns"; then
	skip "a set-user-ID program" "this needs root, to become another user"
	skip "a set-group-ID program" "this needs root, to become another user"
	skip "a program with file capabilities" "this needs root, to become another user"
	skip "a set-user-ID program under no_new_privs" "this needs root, to become another user"
else
	try as_nobody "$ns" run -- "$scratch/setuid"
	expect "a set-user-ID program" 126 err "setuid' is set-user-ID or set-group-ID: the loader ignores LD_PRELOAD"
	try as_nobody setpriv --no-new-privs "$ns" run -- "$scratch/setuid"
	expect "a set-user-ID program under no_new_privs gains nothing: it runs" 0 none ''
	chmod 2755 "$scratch/setuid"
	try as_nobody "$ns" run -- "$scratch/setuid"
	expect "a set-group-ID program" 126 err 'is set-user-ID or set-group-ID'
	if "$helper" setcap "$scratch/capable" 2>/dev/null; then
		try as_nobody "$ns" run -- "$scratch/capable"
		expect "a program with file capabilities" 126 err "capable' has file capabilities"
		try "$ns" run -- "$scratch/capable"
		expect "file capabilities do not matter to root" 0 none ''
	else
		skip "a program with file capabilities" "this filesystem keeps no extended attributes"
	fi
fi
chmod 4755 "$scratch/setuid"
try "$ns" run -- "$scratch/setuid"
expect "one's own set-user-ID program is nothing special" 0 none ''
finish
