# bash completion for numaslab: asks the command itself, so that it needs no list of its own.

_numaslab_options()
{
	"$1" "$2" --help 2>/dev/null | grep -oE '(^|[ ,])--[a-z][a-z-]*' | tr -d ' ,' | sort -u
}

_numaslab_tunables()
{
	"$1" run --help-tunables=names 2>/dev/null
}

_numaslab_reply()
{
	mapfile -t COMPREPLY < <(compgen -W "$1" -- "$2")
}

_numaslab_run()
{
	local cur=$1 prev=$2 name words
	# "NAME=VALUE" arrives in three words where = breaks words.
	if [[ $prev == = ]]; then
		name=${COMP_WORDS[COMP_CWORD-2]#NUMASLAB_}
	elif [[ $cur == = ]]; then
		name=${COMP_WORDS[COMP_CWORD-1]#NUMASLAB_} cur=
	fi
	if [[ $prev == --placement || $name == --placement ]]; then
		name=PLACEMENT
	fi
	if [[ $name ]]; then
		words=$(_numaslab_tunables "${COMP_WORDS[0]}" | sed -n "s/^$name=//p")
		_numaslab_reply "${words//|/ }" "$cur"
	elif [[ $prev == --set ]]; then
		_numaslab_reply "$(_numaslab_tunables "${COMP_WORDS[0]}" | sed 's/=.*/=/')" "$cur"
		compopt -o nospace
	elif [[ $prev == --library ]]; then
		mapfile -t COMPREPLY < <(compgen -f -- "$cur")
	else
		return 1
	fi
}

# The index of the command that `run` is to start, or nothing.
_numaslab_program()
{
	local i word
	for ((i = 2; i < COMP_CWORD; i++)); do
		word=${COMP_WORDS[i]}
		case $word in
		--) echo $((i + 1)); return ;;
		--set | --placement | --library)
			((i++))
			[[ ${COMP_WORDS[i]} == = ]] && ((i++))
			while [[ ${COMP_WORDS[i+1]} == = ]]; do ((i += 2)); done ;;
		-*) ;;
		*) echo $i; return ;;
		esac
	done
}

_numaslab()
{
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} first
	COMPREPLY=()
	if ((COMP_CWORD == 1)); then
		_numaslab_reply "$("$1" --list-commands 2>/dev/null) --help --version" "$cur"
		return
	fi
	if [[ ${COMP_WORDS[1]} == run ]]; then
		first=$(_numaslab_program)
		if [[ $first ]]; then
			if declare -F _command_offset >/dev/null; then
				_command_offset "$first"
			else
				mapfile -t COMPREPLY < <(compgen -cf -- "$cur")
			fi
			return
		fi
		_numaslab_run "$cur" "$prev" && return
		if [[ $cur != -* ]]; then
			mapfile -t COMPREPLY < <(compgen -c -- "$cur")
			return
		fi
	fi
	if [[ ${COMP_WORDS[1]} =~ ^(hints|top)$ && $prev == --tier ]]; then
		local tiers="fentry kprobe tracepoint perf proc"
		[[ ${COMP_WORDS[1]} == top ]] && tiers+=" none"
		_numaslab_reply "$tiers" "$cur"
		return
	fi
	_numaslab_reply "$(_numaslab_options "$1" "${COMP_WORDS[1]}")" "$cur"
}

complete -F _numaslab numaslab
