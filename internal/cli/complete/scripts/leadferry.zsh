#compdef leadferry
# Completion of leadferry's commands, flags and values for zsh.
#
# What is typed is handed to `leadferry __complete` without its quotes; nothing of it is
# expanded, evaluated or run.

_leadferry() {
    local -a asked answer kind values shown
    local line value about
    ((CURRENT > 2)) && asked=("${(@Q)words[2,CURRENT-1]}")
    answer=("${(@f)$(command leadferry __complete "${asked[@]}" "${(Q)PREFIX}." 2>/dev/null)}")
    kind=(${=answer[1]})

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

    [[ $kind[1] == words || -z $kind[1] ]] && return found
    [[ $PREFIX == -*=* ]] && compset -P 1 '*='
    if [[ $kind[1] == folders ]]; then
        _files -/ && found=0
    elif (($#kind > 1)); then
        _files -g "${(j: :)${(@)kind[2,-1]}/#/*}" && found=0
    else
        _files && found=0
    fi
    return found
}

if [[ $funcstack[1] == _leadferry ]]; then
    _leadferry "$@"
else
    compdef _leadferry leadferry
fi
