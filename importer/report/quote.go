package report

import (
	"runtime"
	"strings"
)

// Quote makes a path one word of a command line that a person pastes into a shell: those of this system.
func Quote(path string) string { return quoteFor(runtime.GOOS, path) }

func quoteFor(system, path string) string {
	if strings.HasPrefix(path, "-") { // no flag
		if system == "windows" {
			path = `.\` + path
		} else {
			path = "./" + path
		}
	}
	return quoteOn(system, path)
}

func quote(text string) string { return quoteOn(runtime.GOOS, text) }

// bare are the characters of words that need no quotes.
const bare = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:+-"

func quoteOn(system, text string) string {
	if system == "windows" {
		return quoteWindows(text)
	}
	odd := func(r rune) bool { return !strings.ContainsRune(bare+"@%,=", r) }
	if text != "" && text[0] != '=' && strings.IndexFunc(text, odd) < 0 {
		return text
	}
	if visible(text) != text { // as bash, zsh and ksh read what a terminal would act upon
		return "$'" + visible(strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(text)) + "'"
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// quoteWindows quotes as cmd, PowerShell and Git's bash all read it, where the name of a file holds neither $NAME nor
// %NAME%: no way to write these is common to them.
func quoteWindows(text string) string {
	odd := func(r rune) bool { return !strings.ContainsRune(bare, r) }
	if text != "" && strings.IndexFunc(text, odd) < 0 {
		return text
	}
	text = visible(text)
	end := text[len(strings.TrimRight(text, `\`)):] // which would take the quote behind it for text
	return `"` + strings.ReplaceAll(text, `"`, `\"`) + end + `"`
}
