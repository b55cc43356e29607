#!/bin/bash
# SPDX-License-Identifier: MIT
# What doctor prints, here, on fake machines and under filters.
# shellcheck disable=SC1091,SC2046,SC2154 # tap.sh sets status, out, err and scratch
. "${0%/*}/tap.sh"
numaslab=$(realpath "${BUILD:-build}/numaslab")
helper=$(realpath "${BUILD:-build}/tests/tools/helper")
unset LD_PRELOAD $(env | sed -n 's/^\(NUMASLAB_[A-Za-z0-9_]*\)=.*/\1/p')
nodes=sys/devices/system/node

put() # FILE TEXT
{
	mkdir -p "$(dirname "$scratch/$1")" && printf '%b\n' "$2" >"$scratch/$1"
}

node() # ROOT ID KIB CPUS DISTANCES
{
	put "$1/$nodes/node$2/meminfo" "Node $2 MemTotal: $3 kB\nNode $2 MemFree: $(($3 / 2)) kB"
	put "$1/$nodes/node$2/cpulist" "$4"
	put "$1/$nodes/node$2/distance" "$5"
}

# json EXPRESSION: of the document d in $out, as Python sees it
json()
{
	printf '%s' "$out" | python3 -c 'import json, sys
d = json.load(sys.stdin)
c = {x["name"]: x for x in d["checks"]}
sys.exit(not eval(sys.argv[1]))' "$1" 2>"$scratch/json-err"
}

expect_json() # NAME EXPRESSION, of the last try
{
	if ! command -v python3 >/dev/null; then
		skip "$1" "python3 reads the JSON, and is not installed"
	elif [[ $err == *'not built in'* ]]; then
		skip "$1" "built without cJSON"
	else
		json "$2"
		result $? "$1" "$2 is false" "$out" "$err" "$(cat "$scratch/json-err")"
	fi
}

# --- this machine
try "$numaslab" doctor
expect "a report of this machine, exit 0" 0 out '^[0-9]+ checked: [0-9]+ ok, [0-9]+ warn, [0-9]+ missing$'
result $([[ $out != *$'\e'* ]]; echo $?) "no colour where it is no terminal" "$out"
if command -v script >/dev/null; then
	try env -u NO_COLOR script -qec "$numaslab doctor" /dev/null
	result $([[ $out == *$'\e[32mok'* ]]; echo $?) "colour on a terminal" "$out"
	try env NO_COLOR=1 script -qec "$numaslab doctor" /dev/null
	result $([[ $status = 0 && $out != *$'\e'* ]]; echo $?) "none with NO_COLOR" "$out"
else
	skip "colour on a terminal" "script(1) is not installed"
fi
try "$numaslab" doctor --json
expect_json "--json: schema 1 with all its keys" 'd["schema"] == 1 and set(d) == {"schema", "version", "kernel", "arch", "page_bytes", "source", "nodes", "excluded_nodes", "checks", "summary"}'
expect_json "--json: each check has a status; cost and mend just where it is not ok" 'all(x["status"] in ("ok", "warn", "missing") and (x["status"] == "ok") == (x["cost"] == "") == (x["mend"] == "") for x in d["checks"])'
expect_json "--json: the summary counts the checks" 'all(d["summary"][s] == sum(x["status"] == s for x in d["checks"]) for s in ("ok", "warn", "missing"))'
online=$(cat /sys/devices/system/node/has_memory 2>/dev/null || echo 0)
expect_json "--json: the nodes with memory are those of /sys ($online)" '[n["id"] for n in d["nodes"]] == [i for r in "'"$online"'".split(",") for i in range(int(r.split("-")[0]), int(r.split("-")[-1]) + 1)]'
if [[ $out == *'"libnuma"'* ]]; then
	nodes_of='[(n["id"], n["memory_bytes"], n["cpus"], n["distances"]) for n in d["nodes"]]'
	seen=$(printf '%s' "$out" | python3 -c "import json, sys; d = json.load(sys.stdin); print($nodes_of)")
	try "$numaslab" doctor --json --root /
	expect_json "libnuma and /sys agree on this machine" "d['source'] == 'sysfs' and $nodes_of == $seen"
else
	skip "libnuma and /sys agree on this machine" "libnuma is not built in, or sees no NUMA interface here"
fi
try "$numaslab" doctor here
expect "an argument is refused" 2 err "takes no argument, but was given 'here'"
try "$numaslab" doctor --root /no/such/place
expect "a root that is not there" 2 err "cannot look at '/no/such/place': No such file"
if [ -e /dev/full ]; then
	"$numaslab" doctor >/dev/full 2>"$scratch/err"
	status=$? out='' err=$(cat "$scratch/err")
	expect "a report that cannot be written" 77 err 'cannot write the report'
fi

# --- nodes 0 and 7, all on 7
node gap 0 0 '' '10 20'
node gap 7 16777216 0-31 '20 10'
try "$numaslab" doctor --root "$scratch/gap"
expect "gap: node 7 is a row" 0 out '^ +7 +16384 MiB +8192 MiB +0-31 +10$'
expect "gap: node 0 is named once, with the reason" 0 out '^Left out: node 0 \(online, but it has neither memory nor CPUs\)$'
result $([ "$(grep -cE '(^| )(node )?0( |$).*MiB' <<<"$out")" = 0 ]; echo $?) "gap: node 0 is no row" "$out"
try "$numaslab" doctor --json --root "$scratch/gap"
expect_json "gap: JSON" '[n["id"] for n in d["nodes"]] == [7] and d["nodes"][0]["distances"] == [10] and [n["id"] for n in d["excluded_nodes"]] == [0]'
expect_json "gap: numbers are bytes" 'd["nodes"][0]["memory_bytes"] == 16 << 30 and d["nodes"][0]["free_bytes"] == 8 << 30'
expect_json "another root: no system call is tried" 'c["mbind"]["have"] == "not tried"'

# --- node 0 without memory, node 2 without a CPU
node mixed 0 0 0 '10 20 30'
node mixed 1 1048576 1 '20 10 40'
node mixed 2 2097152 '' '30 40 10'
try "$numaslab" doctor --root "$scratch/mixed"
expect "memoryless: its home is named" 0 out '^Left out: node 0 \(CPUs 0 but no memory; their home is node 1\)$'
expect "CPU-less: a row with no CPUs, and distances" 0 out '^ +2 +2048 MiB +1024 MiB +none +40 +10$'
try "$numaslab" doctor --json --root "$scratch/mixed"
expect_json "memoryless and CPU-less: JSON" '[n["id"] for n in d["nodes"]] == [1, 2] and d["nodes"][1]["cpus"] == "" and d["excluded_nodes"][0]["cpus"] == "0"'

# --- a cpuset, and all that a kernel can lack
cp -r "$scratch/mixed" "$scratch/poor"
put poor/proc/self/status 'Mems_allowed_list:\t1\nSeccomp:\t2\nCapEff:\t0'
put poor/proc/self/cgroup '0::/jail'
put poor/proc/sys/vm/overcommit_memory 2
put poor/proc/sys/vm/max_map_count 100
put poor/proc/sys/kernel/numa_balancing 0
put poor/proc/sys/kernel/osrelease '5.4.0-\033[31mred'
put poor/sys/kernel/mm/transparent_hugepage/enabled 'always madvise [never]'
put poor/proc/meminfo 'HugePages_Total: 8\nHugePages_Free: 8\nHugepagesize: 2048 kB'
try "$numaslab" doctor --root "$scratch/poor"
expect "cpuset: the node is left out" 0 out '^Left out: node 2 \(this process may not use its memory \(mems_allowed\)\)$'
expect "cpuset: the command that mends it" 0 out '^ +mend: echo 1,2 > /sys/fs/cgroup/jail/cpuset.mems$'
expect "overcommit" 0 out '^warn +overcommit +strict \(2\)$'
expect "overcommit: the command" 0 out '^ +mend: sysctl -w vm.overcommit_memory=0$'
expect "max_map_count" 0 out '^warn +max_map_count +100$'
expect "thp" 0 out '^warn +thp +never$'
expect "hugepages" 0 out '^warn +hugepages +8 of 8 pages of the pool lie idle: 16 MiB$'
expect "seccomp" 0 out '^warn +seccomp +a filter is in force$'
expect "capabilities" 0 out '^warn +capabilities +CAP_BPF and CAP_PERFMON, CAP_SYS_PTRACE is missing$'
expect "shm" 0 out '^missing +shm +no /dev/shm$'
expect "btf" 0 out '^missing +btf '
result $([[ $out != *$'\e'* && $out == *'5.4.0-?[31mred'* ]]; echo $?) "control characters of a file stay out" "$out"
try "$numaslab" doctor --json --root "$scratch/poor"
expect_json "JSON: statuses" 'c["overcommit"]["status"] == "warn" and c["shm"]["status"] == "missing" and "\x1b" not in d["kernel"]'

# --- this machine, spoilt
try env NUMASLAB_CHECK=5 NUMASLAB_PLACMENT=home "$numaslab" doctor
expect "variables: a bad value is shown" 0 out '^warn +variables +NUMASLAB_CHECK cannot be .5.'
expect "variables: the command" 0 out '^ +mend: unset NUMASLAB_CHECK NUMASLAB_PLACMENT$'
try env GLIBC_TUNABLES=glibc.pthread.rseq=0 "$numaslab" doctor
expect "rseq switched off" 0 out '^warn +rseq +not registered by the C library'
for how in errno kill; do
	try "$helper" seccomp $how mbind get_mempolicy move_pages -- "$numaslab" doctor
	if [ "$status" = 120 ]; then # from the helper
		skip "seccomp $how" "$err"
		continue
	fi
	[ $how = kill ] && what='a filter kills the caller' || what='refused \(Operation not permitted\)'
	for call in mbind get_mempolicy move_pages; do
		expect "seccomp $how: $call" 0 out "^missing +$call +$what$"
	done
	expect "seccomp $how: what was not filtered works" 0 out '^ok +populate +works$'
	expect "seccomp $how: the filter is seen" 0 out '^warn +seccomp +a filter'
done
try bash -c 'ulimit -v 2000000; ulimit -f 100; exec "$1" doctor' - "$numaslab"
expect "limits" 0 out '^warn +rlimits +RLIMIT_AS is 2048000000, RLIMIT_FSIZE is 102400$'
if command -v numactl >/dev/null && numactl --interleave=all true 2>/dev/null; then
	try numactl --interleave=all "$numaslab" doctor
	expect "a policy of numactl" 0 out '^warn +policy +this task was given one \(interleave\)$'
else
	skip "a policy of numactl" "numactl is not installed, or may not set a policy"
fi

# --- libnuma on a fake machine: a mount namespace with another node directory
in_namespace='mount --bind "$1" /sys/devices/system/node && exec "$2" doctor --json'
if [ "$(id -u)" = 0 ] && unshare -m sh -c 'mount --bind "$1" /sys/devices/system/node' - "$scratch/gap/$nodes" 2>/dev/null; then
	try unshare -m sh -c "$in_namespace" - "$scratch/gap/$nodes" "$numaslab"
	expect_json "libnuma sees a gap" 'd["excluded_nodes"][0]["id"] == 0 and (d["nodes"] == [] or d["nodes"][0]["id"] == 7)'
	node one 0 1048576 0 '10 20 21'
	node one 1 0 '' '20 10 20'
	node one 4 1048576 1 '21 20 10'
	try unshare -m sh -c "$in_namespace" - "$scratch/one/$nodes" "$numaslab"
	expect_json "libnuma: rows and left-out nodes" '[n["id"] for n in d["nodes"]] == [0] and [(n["id"], n["reason"][:6]) for n in d["excluded_nodes"]] == [(1, "online"), (4, "this p")]'
else
	skip "libnuma sees a gap" "no mount namespace may be made here"
fi
finish
