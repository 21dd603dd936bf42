package mapping

import (
	"strings"
	"unicode"

	"golang.org/x/text/cases"
	"golang.org/x/text/language"
)

// title begins each word with a capital and goes on in small letters. A Caser has
// state, so every call takes its own.
func title(s string) string { return cases.Title(language.Und).String(s) }

// squeeze makes one space of each run of white space, and none at the ends.
func squeeze(s string) string {
	if isSqueezed(s) {
		return s
	}
	return strings.Join(strings.Fields(s), " ")
}

func isSqueezed(s string) bool {
	space := true // a space at the beginning is one too many
	for _, r := range s {
		if unicode.IsSpace(r) && (space || r != ' ') {
			return false
		}
		space = r == ' '
	}
	return !space || s == ""
}

// digits keeps the digits, those of other scripts as the ASCII digits that they
// stand for: a number must not lose its digits because of a keyboard.
func digits(s string) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return r < '0' || r > '9' }) {
		return s
	}
	return strings.Map(asciiDigit, s)
}

// asciiDigit is the digit of the same value, or -1 if r is no decimal digit.
// Unicode keeps the ten digits of a script together and in order, so what stands
// before r tells its value.
func asciiDigit(r rune) rune {
	switch {
	case '0' <= r && r <= '9':
		return r
	case !unicode.IsDigit(r):
		return -1
	}
	n := rune(0)
	for unicode.IsDigit(r - n - 1) {
		n++
	}
	return '0' + n%10
}
