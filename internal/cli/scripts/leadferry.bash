# Completion of leadferry's commands, flags and values for bash.
#
# What is typed is handed to `leadferry __complete` as it stands; nothing of it is expanded,
# evaluated or run.

_leadferry() {
    local line=${COMP_LINE:0:COMP_POINT} word blank part='' before kind value about name i
    local -a words=()
    COMPREPLY=()

    # Bash parts words at = and : as well. What no blank stands between is one word.
    for ((i = 0; i <= COMP_CWORD; i++)); do
        blank=${line%%[![:space:]]*}
        line=${line#"$blank"}
        part=${COMP_WORDS[i]:0:${#line}}
        line=${line:${#part}}
        word=${part//[\"\'\\]/}
        if [[ $i -eq 0 || -n $blank ]]; then
            words+=("$word")
        else
            words[${#words[@]} - 1]+=$word
        fi
    done

    # part is what bash will put the answer in place of, before is what it leaves standing.
    [[ $part == = ]] && part=
    word=${part//[\"\'\\]/}
    before=${words[${#words[@]} - 1]}
    before=${before%"$word"}
    words[${#words[@]} - 1]+=.

    {
        read -r kind
        while IFS=$'\t' read -r value about; do
            printf -v value %q "${value#"$before"}"
            COMPREPLY+=("$value")
        done
    } < <(command leadferry __complete "${words[@]:1}" 2>/dev/null)

    case $kind in
        words | '') compopt +o default 2>/dev/null ;;
        # Without an answer, bash completes names of files itself.
        files)
            [[ ${#COMPREPLY[@]} -gt 0 ]] || return 0
            while IFS= read -r name; do COMPREPLY+=("$name"); done < <(compgen -f -- "$part")
            compopt -o filenames 2>/dev/null
            ;;
    esac
    return 0
}

complete -o default -F _leadferry leadferry
