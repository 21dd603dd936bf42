#compdef leadferry
# Completion of leadferry's commands, flags and values for zsh.
#
# What is typed is handed to `leadferry __complete` without its quotes; nothing of it is
# expanded, evaluated or run.

_leadferry() {
    local -a asked answer values shown
    local line value about kind
    ((CURRENT > 2)) && asked=("${(@Q)words[2,CURRENT-1]}")
    answer=("${(@f)$(command leadferry __complete "${asked[@]}" "${(Q)PREFIX}." 2>/dev/null)}")
    kind=$answer[1]

    for line in "${(@)answer[2,-1]}"; do
        value=${line%%$'\t'*} about=${line#*$'\t'}
        [[ -n $value ]] || continue
        values+=("$value")
        shown+=("$value${about:+  -- $about}")
    done
    local found=1
    if (($#values)); then
        if [[ "$shown" == *'  -- '* ]]; then
            compadd -l -d shown -a values && found=0
        else
            compadd -a values && found=0
        fi
    fi

    [[ $kind == files ]] || return found
    [[ $PREFIX == -*=* ]] && compset -P 1 '*='
    _files && found=0
    return found
}

if [[ $funcstack[1] == _leadferry ]]; then
    _leadferry "$@"
else
    compdef _leadferry leadferry
fi
