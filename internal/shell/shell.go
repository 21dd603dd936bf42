// Package shell writes words of the command lines that people paste. The shells of this system read each as one word
// with exactly this text, and a terminal obeys nothing in it.
package shell

import (
	"runtime"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Path returns the word for a path, which no command takes for a flag. "-" stays: it is standard input.
func Path(path string) string { return pathOn(runtime.GOOS, path) }

// Word returns the word for any other text.
func Word(text string) string { return wordOn(runtime.GOOS, text) }

func pathOn(system, path string) string {
	if strings.HasPrefix(path, "-") && path != "-" {
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

// escaped returns a text with backslash escapes for quotation marks, backslashes and what cannot be seen.
func escaped(text string) string {
	quoted := strconv.QuoteToGraphic(text)
	return quoted[1 : len(quoted)-1]
}

// seen undoes what escaped does to characters that can be seen.
var seen = strings.NewReplacer(`\\`, `\`, `\"`, `"`)

// wordOnWindows quotes a text so that cmd, PowerShell and Git's bash all read it alike, unless a file's name holds
// $NAME or %NAME%: these cannot be written in one way for all three.
func wordOnWindows(text string) string {
	if text != "" && strings.Trim(text, bare) == "" {
		return text
	}
	text = seen.Replace(escaped(text))
	end := text[len(strings.TrimRight(text, `\`)):] // a quote after it would be taken for text
	return `"` + strings.ReplaceAll(text, `"`, `\"`) + end + `"`
}
