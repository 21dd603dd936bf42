// Package shell writes words of the command lines that people paste. Each is one word for the shells of this system
// and means what it says; a terminal obeys nothing in it.
package shell

import (
	"runtime"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Path is the word for a path, which no command takes for a flag.
func Path(path string) string { return pathOn(runtime.GOOS, path) }

// Word is the word for any other text.
func Word(text string) string { return wordOn(runtime.GOOS, text) }

func pathOn(system, path string) string {
	if strings.HasPrefix(path, "-") {
		path = "./" + path
	}
	return wordOn(system, path)
}

func wordOn(system, text string) string {
	if system == "windows" {
		return wordOnWindows(text)
	}
	return posixWord(text)
}

// bare are the characters of words that need no quotes.
const bare = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:+-"

func posixWord(text string) string {
	hidden := func(r rune) bool { return !unicode.IsGraphic(r) }
	switch {
	case text != "" && text[0] != '=' && strings.Trim(text, bare+"@%,=") == "":
		return text
	case strings.ContainsFunc(text, hidden) || !utf8.ValidString(text): // as bash, zsh and ksh read it
		return "$'" + strings.ReplaceAll(escaped(text), "'", `\'`) + "'"
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// escaped is a text with what cannot be seen, quotation marks and backslashes behind a backslash.
func escaped(text string) string {
	quoted := strconv.QuoteToGraphic(text)
	return quoted[1 : len(quoted)-1]
}

// seen undoes what escaped does to characters that can be seen.
var seen = strings.NewReplacer(`\\`, `\`, `\"`, `"`)

// wordOnWindows quotes as cmd, PowerShell and Git's bash all read it, where the name of a file holds neither $NAME nor
// %NAME%: no way to write these is common to them.
func wordOnWindows(text string) string {
	if text != "" && strings.Trim(text, bare) == "" {
		return text
	}
	text = seen.Replace(escaped(text))
	end := text[len(strings.TrimRight(text, `\`)):] // which would take the quote behind it for text
	return `"` + strings.ReplaceAll(text, `"`, `\"`) + end + `"`
}
