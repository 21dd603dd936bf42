// Package spelling writes what people read: names of columns, keys and flags, which known name a wrong one may mean,
// the sentence on a mistake and its place, escaped and wrapped texts, and times.
package spelling

import (
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/xrash/smetrics"
)

// Form returns a regular expression that is compiled on first use, by any goroutine; an invalid one panics then. To
// compile all of them takes milliseconds at every start, and most runs need few.
func Form(form string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(form) })
}

// Sentence says what is wrong in a file and where; 0: no line or column. The hint gets its own line.
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

// Hint asks whether the nearest of names was meant; "" if none is near.
func Hint(name string, names []string) string {
	if near := Nearest(name, names); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return ""
}

// List returns the first names, at most this many, and how many more there are. show writes a name; nil: as it is.
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

// Nearest returns the name that somebody who wrote name may have meant, whatever its case; "" if none is near.
func Nearest(name string, names []string) (nearest string) {
	const longest, far = 64, 0.87 // the work grows with the product of the lengths
	least := far
	for _, other := range names {
		if len(name) > longest || len(other) > longest {
			continue
		}
		if like := smetrics.Jaro(strings.ToLower(name), strings.ToLower(other)); like > least {
			nearest, least = other, like
		}
	}
	return nearest
}
