# Completion of leadferry's commands, flags and values for fish.
#
# What is typed is handed to `leadferry __complete` as it stands; nothing of it is expanded,
# evaluated or run.

function __leadferry_complete
    set -l words (commandline -opc)
    set -e words[1]
    set -l current (commandline -ct | string trim --left --chars='"\'')
    set -l answer (command leadferry __complete $words "$current." 2>/dev/null)
    set -l kind (string split ' ' -- $answer[1])
    set -e answer[1]
    for value in $answer
        echo $value
    end

    # Names of files stand behind the = of a flag, too.
    set -l before (string match --regex -- '^-[^=]*=' $current)
    set -l begun (string sub --start (math (string length -- "$before") + 1) -- "$current")
    switch "$kind[1]"
        case folders
            for path in (__fish_complete_directories "$begun" '')
                echo "$before$path"
            end
        case files
            set -l paths (__fish_complete_path "$begun" '')
            if set -q kind[2]
                # Folders, and files of the kinds that fit, where there are any.
                set -l fitting (string match --regex -- '.*(?:/|'(string escape --style=regex -- $kind[2..-1] | string join '|')')(?:\t.*)?$' $paths)
                set -q fitting[1]; and set paths $fitting
            end
            for path in $paths
                echo "$before$path"
            end
    end
end

complete --command leadferry --erase
complete --command leadferry --no-files --arguments '(__leadferry_complete)'
