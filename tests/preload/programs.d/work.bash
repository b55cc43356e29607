# SPDX-License-Identifier: MIT
declare -A count
words=()
for ((i = 0; i < 20000; i++)); do
	w="w$((i * 7919 % 977))"
	count[$w]=$((${count[$w]:-0} + i))
	words+=("$w")
done
echo "${#count[@]} ${#words[@]} ${words[*]:100:20}"
for w in "${!count[@]}"; do echo "$w ${count[$w]}"; done | sort | sed -n '1~97p'
long=""
for ((i = 0; i < 2000; i++)); do long+="$i "; done
echo ${#long} "${long//1/one}" | cksum
for i in {1..150}; do (echo "$i $(echo "$i" | tr 0-9 a-j)"); done | tail -3
f() { [ "$1" -le 0 ] && { echo end; return; }; local x="$1 ${x:0:50}"; f $(($1 - 1)); }
f 400
mapfile -t lines < <(seq 30000)
echo "${#lines[@]} ${lines[29999]}"
unset lines words
trap 'echo trapped' USR1
kill -USR1 $$
cat <<<"$long" | wc -c
coproc cat
echo hello >&"${COPROC[1]}"
read -r answer <&"${COPROC[0]}"
echo "$answer"
eval "exec ${COPROC[1]}>&-"
wait
printf '%s\n' {a..z}{a..z}{0..9} | cksum
