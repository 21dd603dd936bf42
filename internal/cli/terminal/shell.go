package terminal

import (
	"strings"

	"leadferry/importer/report"
)

// Shell is a kind of shell that the lines of leadferry sandbox are pasted into.
type Shell int

const (
	posix Shell = iota
	powerShell
	cmd
)

// Set is the line that gives an environment variable a value.
func (s Shell) Set(name, value string) string {
	switch s {
	case powerShell:
		return "$env:" + name + " = '" + strings.ReplaceAll(value, "'", "''") + "'\n"
	case cmd:
		return `set "` + name + "=" + value + "\"\n"
	}
	return "export " + name + "=" + report.Quote(value) + "\n"
}

// Unset are the lines that take variables away.
func (s Shell) Unset(names []string) string {
	switch s {
	case powerShell:
		return "$env:" + strings.Join(names, " = $null\n$env:") + " = $null\n"
	case cmd:
		return "set " + strings.Join(names, "=\nset ") + "=\n"
	}
	return "unset " + strings.Join(names, " ") + "\n"
}

// shellOf is the shell whose program has this name on Windows: PowerShell, where it is none of these.
func shellOf(program string) Shell {
	switch name := strings.TrimSuffix(strings.ToLower(program), ".exe"); name {
	case "cmd":
		return cmd
	case "sh", "bash", "zsh":
		return posix
	}
	return powerShell
}
