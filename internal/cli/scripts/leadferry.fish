# Completion of leadferry's commands, flags and values for fish.
#
# What is typed is handed to `leadferry __complete` as it stands; nothing of it is expanded,
# evaluated or run.

function __leadferry_complete
    set -l words (commandline -opc)
    set -e words[1]
    set -l current (commandline -ct | string trim --left --chars='"\'')
    set -l answer (command leadferry __complete $words "$current." 2>/dev/null)
    set -l kind $answer[1]
    set -e answer[1]
    for value in $answer
        echo $value
    end

    # Names of files stand behind the = of a flag, too.
    set -l before (string match --regex -- '^-[^=]*=' $current)
    set -l begun (string sub --start (math (string length -- "$before") + 1) -- "$current")
    if test "$kind" = files
        for path in (__fish_complete_path "$begun" '')
            echo "$before$path"
        end
    end
end

complete --command leadferry --erase
complete --command leadferry --no-files --arguments '(__leadferry_complete)'
