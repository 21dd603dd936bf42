package mapping

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
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

// didYouMean is the hint for a word that is none of words, or "".
func didYouMean(word string, words []string) string {
	if near := Nearest(word, words); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return ""
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
		if d := distance(word, []rune(strings.ToLower(other)), least); d < least {
			nearest, least = other, d
		}
	}
	return nearest
}

// distance counts the single changes that make b of a, or gives limit when the
// lengths alone need as many.
func distance(a, b []rune, limit int) int {
	if change*max(len(a)-len(b), len(b)-len(a)) >= limit {
		return limit
	}
	var before []int
	last, row := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = change * j
	}
	for i := range a {
		row[0] = change * (i + 1)
		for j := range b {
			least := last[j]
			if a[i] != b[j] {
				least += change
			}
			row[j+1] = min(least, last[j+1]+change, row[j]+change)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+swap)
			}
		}
		before, last, row = last, row, make([]int, len(b)+1)
	}
	return last[len(b)]
}
