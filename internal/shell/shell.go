// Package shell writes words of command lines that people paste. The shells of this system read each as one word with
// exactly this text, and no terminal takes part of it for a command.
package shell

import (
	"runtime"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Path returns the word for a path. No command takes it for a flag. "-" stays as it is: standard input.
func Path(path string) string {
	if strings.HasPrefix(path, "-") && path != "-" {
		path = "./" + path
	}
	return Word(path)
}

// Word returns the word for any other text.
func Word(text string) string {
	if runtime.GOOS == "windows" {
		return wordOnWindows(text)
	}
	return posixWord(text)
}

// bare are the characters that need no quotes.
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

// escaped returns a text with backslash escapes for quotation marks, backslashes and invisible characters.
func escaped(text string) string {
	quoted := strconv.QuoteToGraphic(text)
	return quoted[1 : len(quoted)-1]
}

// unescaped undoes the escapes of visible characters.
var unescaped = strings.NewReplacer(`\\`, `\`, `\"`, `"`)

// wordOnWindows quotes a text so that cmd, PowerShell and Git's bash read the same. No quotes can do that for a name
// that holds $NAME or %NAME%.
func wordOnWindows(text string) string {
	if text != "" && strings.Trim(text, bare) == "" {
		return text
	}
	text = unescaped.Replace(escaped(text))
	end := text[len(strings.TrimRight(text, `\`)):] // a last backslash would escape the quote
	return `"` + strings.ReplaceAll(text, `"`, `\"`) + end + `"`
}
