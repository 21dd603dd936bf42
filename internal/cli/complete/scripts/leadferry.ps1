# Completion of leadferry's commands, flags and values for PowerShell.
#
# What is typed is handed to `leadferry __complete` as it stands; nothing of it is expanded,
# evaluated or run.

Register-ArgumentCompleter -Native -CommandName 'leadferry', 'leadferry.exe' -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)

    $program = Get-Command -Name leadferry -CommandType Application -ErrorAction SilentlyContinue | Select-Object -First 1
    if (-not $program) { return }

    # The words in front of the one at the cursor. Only constants have a value of their own.
    $before = @($commandAst.CommandElements | Select-Object -Skip 1 | Where-Object { $_.Extent.EndOffset -lt $cursorPosition } | ForEach-Object {
        if ($_ -is [System.Management.Automation.Language.StringConstantExpressionAst]) { $_.Value } else { $_.Extent.Text }
    })
    $current = "$wordToComplete".Trim('"', "'")
    $answer = @(& $program __complete @before "$current." 2>$null)
    $kind = "$($answer | Select-Object -First 1)".Split(' ')

    $found = @($answer | Select-Object -Skip 1 | ForEach-Object {
        $value, $about = $_.Split("`t", 2)
        $inserted = $value
        if ($value -notmatch '^[A-Za-z0-9_./=-]+$') { $inserted = "'" + $value.Replace("'", "''") + "'" }
        if (-not $about) { $about = $value }
        [System.Management.Automation.CompletionResult]::new($inserted, $value, 'ParameterValue', $about)
    })
    if ($kind[0] -in 'files', 'folders') {
        # Names of files stand behind the = of a flag, too.
        $flag = ''
        if ($current -match '^(-[^=]*=)(.*)$') { $flag, $current = $Matches[1], $Matches[2] }
        $found += @([System.Management.Automation.CompletionCompleters]::CompleteFilename($current) |
            Where-Object { $kind[0] -eq 'files' -or $_.ResultType -eq 'ProviderContainer' } |
            ForEach-Object { [System.Management.Automation.CompletionResult]::new($flag + $_.CompletionText, $_.ListItemText, $_.ResultType, $_.ToolTip) })
    }
    # An empty answer would make PowerShell offer the files of the folder.
    if ($found.Count -eq 0) { return '' }
    $found
}
