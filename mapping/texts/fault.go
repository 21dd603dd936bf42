package texts

import (
	"cmp"
	"fmt"
	"strings"
	"unicode/utf8"

	"leadferry/internal/spelling"
)

// Fault is what is wrong with a word or an expression of a mapping file, and what to do.
type Fault struct {
	Text, Hint string
	From       int // where it stands in an expression, in characters from 0
}

// Unknown is the fault of a word that is none of those known; what is a phrase for it.
func Unknown(what, word string, known []string) *Fault {
	return &Fault{Text: "unknown " + what, Hint: cmp.Or(spelling.Hint(word, known), "known here: "+strings.Join(known, ", "))}
}

// MaxQuoted is how many characters of a word are shown.
const MaxQuoted = 64

// Quote shows a word of the file, cut when it is long.
func Quote(word string) string { return fmt.Sprintf("%q", Shortened(word, MaxQuoted)) }

// Shortened is s, cut when it has more than n characters.
func Shortened(s string, n int) string {
	if utf8.RuneCountInString(s) > n {
		return string([]rune(s)[:n]) + "…"
	}
	return s
}

// CurlyQuotes are those that word processors make of straight ones.
const CurlyQuotes = "“”„‟«»‘’‚"
