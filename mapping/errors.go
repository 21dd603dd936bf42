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
