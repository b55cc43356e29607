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
	share/man/man7/libnumaslab.7 share/bash-completion/completions/numaslab; do
	[ -s "$root$prefix/$file" ]
	result $? "installed: $file"
done
try "$root$prefix/bin/numaslab" run -- grep -cE "^[0-9a-f].*$prefix/lib/libnumaslab\.so\.[0-9.]+$" /proc/self/maps
expect "the installed run finds the installed library" 0 out '^[1-9]'
soname=$(readelf -d "$root$prefix/lib/libnumaslab.so" | sed -n 's/.*(SONAME).*\[\(.*\)\]/\1/p')
[ -n "$soname" ] && [ -e "$root$prefix/lib/$soname" ]
result $? "the soname is a link to the library" "soname: $soname"

if command -v pkg-config >/dev/null; then
	export PKG_CONFIG_PATH=$root$prefix/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$root
	printf '#include <numaslab.h>\nint main(void) { return numaslab_stats == 0; }\n' >"$scratch/api.c"
	try sh -c '${CC:-cc} "$1" -o "$2" $(pkg-config --cflags --libs numaslab)' - "$scratch/api.c" "$scratch/api"
	expect "a program builds with numaslab.pc" 0 none ''
	try env LD_LIBRARY_PATH="$root$prefix/lib" "$scratch/api"
	expect "and has the API at run time" 0 none ''
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
try complete_words numaslab run -- tru
expect "completion: the program to run" 0 out '^true$'

try make -s uninstall BUILD="$build" DESTDIR="$root" PREFIX=$prefix
expect "make uninstall" 0 none ''
left=$(find "$root" ! -type d)
[ -z "$left" ]
result $? "nothing is left" "$left"
finish
