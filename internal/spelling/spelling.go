// Package spelling knows how names are written, of columns, of keys in a file, of flags: in which form, which one was
// meant by one that nobody knows, which there are; and how a sentence names the place of a mistake. It is below all
// rooms that know names.
package spelling

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
)

// Form is a regular expression that is compiled when it is first asked for, by any number of goroutines; one that is
// none panics then. Those of the whole program take milliseconds, which every start would pay for, --version and shell
// completion included, and most runs need few of them.
func Form(form string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(form) })
}

// Sentence says what is wrong in a file: where, as far as line and column are not 0, what, and the hint, if there is
// one, on a line of its own.
func Sentence(file string, line, column int, text, hint string) string {
	for _, n := range [...]int{line, column} {
		if n > 0 {
			file += fmt.Sprint(":", n)
		}
	}
	if hint != "" {
		hint = "\nhint: " + hint
	}
	return file + ": " + text + hint
}

// Hint asks whether the nearest of names is meant; "" where none is near.
func Hint(name string, names []string) string {
	if near := Nearest(name, names); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return ""
}

// List is the first most of names, each as show writes it, and how many more there are. A nil show lets them be.
func List(names []string, most int, show func(string) string) string {
	var list []string
	for _, name := range names[:min(most, len(names))] {
		if show != nil {
			name = show(name)
		}
		list = append(list, name)
	}
	text := strings.Join(list, ", ")
	if more := len(names) - len(list); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// maxNear is the longest name, in characters, that is compared with others: the
// work grows with the product of the lengths.
const maxNear = 64

// swap and change are what letters that are swapped, and a letter that is wrong,
// missing or too many, count: swapped ones are the likelier slip.
const swap, change = 1, 2

// Nearest is the one of names that somebody who wrote name may have meant: equal except for case, or at most a third of
// its characters wrong, missing, too many or swapped with their neighbour. It is "" when none is so near. Of two that
// are equally near it is the one that begins as name does for longer.
func Nearest(name string, names []string) string {
	word := []rune(strings.ToLower(name))
	if len(word) > maxNear {
		return ""
	}
	nearest, least, same := "", change*max(1, len(word)/3)+1, 0
	for _, other := range names {
		letters := []rune(strings.ToLower(other))
		if change*max(len(letters)-len(word), len(word)-len(letters)) > least {
			continue
		}
		begins := 0
		for begins < min(len(word), len(letters)) && word[begins] == letters[begins] {
			begins++
		}
		if d := distance(word, letters); d < least || d == least && nearest != "" && begins > same {
			nearest, least, same = other, d, begins
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
