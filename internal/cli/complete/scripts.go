package complete

import (
	"embed"
	"slices"
)

//go:embed all:scripts
var scripts embed.FS

// files are the scripts' names by the shells that read them.
var files = map[string]string{
	"bash": "leadferry.bash", "zsh": "_leadferry", "fish": "leadferry.fish", "powershell": "leadferry.ps1",
}

// Shells are those that there is a script for.
func Shells() []string { return []string{"bash", "zsh", "fish", "powershell"} }

// Script returns the script of one of [Shells], and the name under which packages install it.
func Script(shell string) (name string, text []byte) {
	if !slices.Contains(Shells(), shell) {
		return "", nil
	}
	name = files[shell]
	text, _ = scripts.ReadFile("scripts/" + name) // it is part of the program
	return name, text
}
