#!/bin/bash
# SPDX-License-Identifier: MIT
# make install and uninstall below DESTDIR: what is put where, that it works, that nothing stays.
# shellcheck disable=SC1091,SC2046,SC2154 # tap.sh sets status, out, err and scratch
. "${0%/*}/tap.sh"
build=${BUILD:-build}
unset MAKEFLAGS MAKELEVEL LD_PRELOAD $(env | sed -n 's/^\(NUMASLAB_[A-Za-z0-9_]*\)=.*/\1/p')
root=$scratch/root
prefix=/opt/heap

try make -s install BUILD="$build" DESTDIR="$root" PREFIX=$prefix
result "$status" "make install" "$err" "$out"
for file in bin/numaslab lib/libnumaslab.so include/numaslab.h lib/pkgconfig/numaslab.pc \
	share/man/man1/numaslab.1 share/man/man1/numaslab-run.1 share/man/man1/numaslab-doctor.1 \
	share/man/man7/libnumaslab.7 share/bash-completion/completions/numaslab share/doc/numaslab/examples/nodes.c; do
	[ -s "$root$prefix/$file" ]
	result $? "installed: $file"
done
try "$root$prefix/bin/numaslab" run -- grep -cE "^[0-9a-f].*$prefix/lib/libnumaslab\.so\.[0-9.]+$" /proc/self/maps
expect "the installed run finds the installed library" 0 out '^[1-9]'
soname=$(readelf -d "$root$prefix/lib/libnumaslab.so" | sed -n 's/.*(SONAME).*\[\(.*\)\]/\1/p')
[ -n "$soname" ] && [ -e "$root$prefix/lib/$soname" ]
result $? "the soname is a link to the library" "soname: $soname"

# Versions: the API has one; the functions of libc have none, or a program's malloc@GLIBC would not
# be ours.  Nothing else is visible.
readelf -W --dyn-syms "$root$prefix/lib/libnumaslab.so" | awk '$7 != "UND" && $5 != "LOCAL" { print $8 }' |
	grep -vE '^$|^Name$' | sort >"$scratch/symbols"
sort >"$scratch/wanted" <<-EOF
	$(printf '%s\n' malloc calloc realloc reallocarray free cfree posix_memalign aligned_alloc memalign \
		valloc pvalloc malloc_usable_size malloc_trim mallopt mallinfo mallinfo2 malloc_stats malloc_info \
		dlopen mprotect mlock mlock2 mbind prctl NUMASLAB_0.1)
	$(printf '%s@@NUMASLAB_0.1\n' numaslab_malloc_node numaslab_node_of numaslab_stats numaslab_set_cpu)
EOF
try diff "$scratch/wanted" "$scratch/symbols"
expect "symbols and their versions" 0 none ''
try env LD_PRELOAD="$root$prefix/lib/libnumaslab.so" LD_DEBUG=bindings LD_DEBUG_OUTPUT="$scratch/bindings" true
cat "$scratch"/bindings.* | grep -E 'to [^ ]*libnumaslab.* symbol .malloc. .GLIBC' >"$scratch/bound"
grep -q 'file .*libc\.so.* to .*libnumaslab' "$scratch/bound"
result $? "the unversioned malloc answers for malloc@GLIBC" "$(head -n 3 "$scratch/bound")"

if command -v pkg-config >/dev/null; then
	export PKG_CONFIG_PATH=$root$prefix/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$root
	printf '#include <numaslab.h>\nint main(void) { return numaslab_stats == 0; }\n' >"$scratch/api.c"
	try sh -c '${CC:-cc} "$1" -o "$2" $(pkg-config --cflags --libs numaslab)' - "$scratch/api.c" "$scratch/api"
	expect "a program builds with numaslab.pc" 0 none ''
	try env LD_LIBRARY_PATH="$root$prefix/lib" "$scratch/api"
	expect "and has the API at run time" 0 none ''
	nodes=$root$prefix/share/doc/numaslab/examples/nodes.c
	try sh -c '${CC:-cc} -Wall -Werror "$1" -o "$2" $(pkg-config --cflags numaslab)' - "$nodes" "$scratch/nodes"
	expect "the example builds against the installed tree" 0 none ''
	try "$scratch/nodes"
	expect "the example runs without the library" 0 out '^without libnumaslab.so: plain malloc'
	try "$root$prefix/bin/numaslab" run --set 'TOPOLOGY=0:1G@0;3:1G@1' -- "$scratch/nodes"
	expect "the same binary runs with it: its records are on their node" 0 out '^node 3: 10000 of 10000 records on it$'
	expect "and its counters are read" 0 out '^node 3: [1-9][0-9]* slabs hold [1-9][0-9]* KiB; refills: own'
	try sh -c '${CC:-cc} "$1" -o "$2" $(pkg-config --cflags --libs numaslab)' - "$nodes" "$scratch/linked"
	expect "the example builds, linked to the library" 0 none ''
	try env LD_LIBRARY_PATH="$root$prefix/lib" "$scratch/linked"
	expect "linked, it has the library without being preloaded" 0 out '^node [0-9]+: 10000 of 10000 records on it$'
	try readelf -W --version-info "$scratch/linked"
	result $(grep -q 'Name: NUMASLAB_0.1' <<<"$out"; echo $?) "linked, it asks for the version of the API" "$out"
	try pkg-config --modversion numaslab
	expect "numaslab.pc has the version of the command" 0 out "^$("$root$prefix/bin/numaslab" --version | cut -d' ' -f2)$"
else
	skip "a program builds with numaslab.pc" "pkg-config is not installed"
fi

missing=$("$root$prefix/bin/numaslab" run --help-tunables=names | sed 's/=.*//' | while read -r name; do
	grep -q "NUMASLAB_$name " "$root$prefix/share/man/man7/libnumaslab.7" || echo "$name"
done)
[ -z "$missing" ]
result $? "libnumaslab(7) has every tunable" "missing: $missing"
missing=$("$root$prefix/bin/numaslab" --list-commands | while read -r name; do
	[ -s "$root$prefix/share/man/man1/numaslab-$name.1" ] || echo "$name"
done)
[ -z "$missing" ]
result $? "each command has a manual page" "missing: $missing"
missing=$("$root$prefix/bin/numaslab" --list-commands | while read -r name; do
	grep -qx "\.B $name" "$root$prefix/share/man/man1/numaslab.1" || echo "$name"
done)
[ -z "$missing" ]
result $? "numaslab(1) lists each command" "missing: $missing"
if command -v man >/dev/null && echo .TH | man --warnings -l - >/dev/null 2>&1; then
	for page in "$root$prefix"/share/man/man*/*; do
		said=$(LC_ALL=C.UTF-8 MANWIDTH=80 man --warnings -E UTF-8 -l -Tutf8 -Z "$page" 2>&1 >/dev/null)
		[ -z "$said" ]
		result $? "${page##*/} is good roff" "$said"
	done
else
	skip "the manual pages are good roff" "man-db is not installed"
fi

# --- completion, in a bash of its own with the installed command
complete_words() # WORD... : completes the last
{
	PATH=$root$prefix/bin:$PATH bash -c '
		. "$1"; shift
		COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_TYPE=9
		compopt() { :; }
		_numaslab numaslab; printf "%s\n" "${COMPREPLY[@]}"' - \
		"$root$prefix/share/bash-completion/completions/numaslab" "$@"
}
try complete_words numaslab doc
expect "completion: a command" 0 out '^doctor$'
try complete_words numaslab doctor --j
expect "completion: an option" 0 out '^--json$'
try complete_words numaslab run --set PLA
expect "completion: a variable" 0 out '^PLACEMENT=$'
try complete_words numaslab run --set PLACEMENT = ob
expect "completion: a value" 0 out '^observe$'
try complete_words numaslab run --placement ''
expect "completion: a placement" 0 out '^kernel$'
try complete_words numaslab top --tier no
expect "completion: a tier" 0 out '^none$'
try complete_words numaslab run -- tru
expect "completion: the program to run" 0 out '^true$'

try make -s uninstall BUILD="$build" DESTDIR="$root" PREFIX=$prefix
expect "make uninstall" 0 none ''
left=$(find "$root" ! -type d)
[ -z "$left" ]
result $? "nothing is left" "$left"
finish
