# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# TAP for the shell suites of tests/tools: a scratch directory, runs, and what they must say.
tap_count=0
tap_failed=0
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
chmod 755 "$scratch" # tests run as another user enter it

result() # 0|1 NAME [NOTE...]
{
	tap_count=$((tap_count + 1))
	if [ "$1" = 0 ]; then
		echo "ok $tap_count - $2"
		return
	fi
	tap_failed=1
	echo "not ok $tap_count - $2"
	shift 2
	printf '%s\n' "$@" | cat -v | sed 's/^/# /'
}

skip() # NAME REASON
{
	tap_count=$((tap_count + 1))
	echo "ok $tap_count - $1 # SKIP $2"
}

# Runs a command; its output, errors and status are in $out, $err and $status.
try()
{
	"$@" >"$scratch/out" 2>"$scratch/err"
	status=$?
	out=$(cat "$scratch/out")
	err=$(cat "$scratch/err")
}

# expect NAME STATUS out|err|none PATTERN: the last try ended so, and the stream has a line that
# matches (extended regular expression); the other stream is empty.  none: both are empty.
expect()
{
	local bad=0 said other
	case $3 in
	out) said=$out other=$err ;;
	err) said=$err other=$out ;;
	none) said='' other=$out$err ;;
	esac
	[ "$status" = "$2" ] || bad=1
	[ -z "$other" ] || bad=1
	[ "$3" = none ] || printf '%s\n' "$said" | grep -qE -e "$4" || bad=1
	result $bad "$1" "status $status, wanted $2; $3 wanted: $4" "out: $out" "err: $err"
}

finish()
{
	echo "1..$tap_count"
	exit $tap_failed
}
