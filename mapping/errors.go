package mapping

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Error is one mistake in a mapping file: where it stands, what is wrong in a
// sentence, and in Hint, if not empty, what to do. Line and Column count from 1,
// columns in characters.
type Error struct {
	File         string
	Line, Column int
	Text, Hint   string
}

// Error gives file, line, column and text, and the hint on a line of its own.
func (e Error) Error() string {
	s := fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Text)
	if e.Hint != "" {
		s += "\nhint: " + e.Hint
	}
	return s
}

// Errors are the mistakes of one file, in the order in which they stand there.
type Errors []Error

// Error joins the errors, one below the other.
func (es Errors) Error() string {
	lines := make([]string, len(es))
	for i, e := range es {
		lines[i] = e.Error()
	}
	return strings.Join(lines, "\n")
}

// orNil is es in the order of the file, or nil when there is nothing to say.
func (es Errors) orNil() error {
	if len(es) == 0 {
		return nil
	}
	slices.SortStableFunc(es, func(a, b Error) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return es
}

// fault is a mistake in a word or an expression of the file.
type fault struct {
	text, hint string
	from       int // where it stands in an expression, in characters from 0
}

// unknownWord is the fault of a word that is none of those known; what is a phrase for it.
func unknownWord(what, word string, known []string) *fault {
	return &fault{text: "unknown " + what, hint: cmp.Or(didYouMean(word, known), "known here: "+strings.Join(known, ", "))}
}

// didYouMean is the hint for a word that is none of words, or "".
func didYouMean(word string, words []string) string {
	if near := Nearest(word, words); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return ""
}

// quote shows a word of the file, cut when it is long.
func quote(word string) string { return fmt.Sprintf("%q", shortened(word, maxNear)) }

// shortened is s, cut when it has more than n characters.
func shortened(s string, n int) string {
	if utf8.RuneCountInString(s) > n {
		return string([]rune(s)[:n]) + "…"
	}
	return s
}

// maxNear is the longest name, in characters, that is compared with others: the
// work grows with the product of the lengths.
const maxNear = 64

// swap and change are what letters that are swapped, and a letter that is wrong,
// missing or too many, count: swapped ones are the likelier slip.
const swap, change = 1, 2

// Nearest is the one of names that somebody who wrote name may have meant: equal
// but for case, or at most a third of its characters wrong, missing, too many or
// swapped with their neighbour. It is "" when none is so near.
func Nearest(name string, names []string) string {
	word := []rune(strings.ToLower(name))
	if len(word) > maxNear {
		return ""
	}
	nearest, least := "", change*max(1, len(word)/3)+1
	for _, other := range names {
		letters := []rune(strings.ToLower(other))
		if change*max(len(letters)-len(word), len(word)-len(letters)) >= least {
			continue
		}
		if d := distance(word, letters); d < least {
			nearest, least = other, d
		}
	}
	return nearest
}

// distance counts the single changes that make b of a.
func distance(a, b []rune) int {
	rows := make([][]int, len(a)+1) // rows[i][j] is the distance of a[:i] and b[:j]
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		for j := range rows[i] {
			switch {
			case i == 0 || j == 0:
				rows[i][j] = change * (i + j)
				continue
			case a[i-1] == b[j-1]:
				rows[i][j] = rows[i-1][j-1]
			default:
				rows[i][j] = change + min(rows[i-1][j-1], rows[i-1][j], rows[i][j-1])
			}
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+swap)
			}
		}
	}
	return rows[len(a)][len(b)]
}
