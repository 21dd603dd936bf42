package importer

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"leadferry/mapping"
)

// Misfit says that an input lacks columns that the mapping names.
type Misfit struct {
	File    string
	Mapping string
	Missing mapping.Errors // each place of the mapping that names one
	Columns []string       // what the file has instead
	Strange bool           // the mapping names none of those
}

// How much of a misfit is told.
const (
	mostMissing = 5 // places one by one
	mostColumns = 8
	longColumn  = 30 // characters
)

// Error tells the first places one by one, or that nothing fits; then what the file
// has, as a hint.
func (m *Misfit) Error() string {
	places := len(m.Missing)
	switch {
	case m.Strange && (places > 2 || len(m.Columns) == 1):
		return fmt.Sprintf("%s: has none of the columns that %s names\nhint: %s", m.File, m.Mapping, m.hint())
	case places > mostMissing:
		return fmt.Sprintf("%v\n%s: lacks columns that %s names in %d more places\nhint: %s",
			m.Missing[:mostMissing], m.File, m.Mapping, places-mostMissing, m.hint())
	}
	return m.Missing.Error()
}

// Unwrap gives all places.
func (m *Misfit) Unwrap() error { return m.Missing }

func (m *Misfit) hint() string {
	if len(m.Columns) == 1 {
		return fmt.Sprintf("its only column is %s: if another character parts the cells, name it with --delimiter", quoted(m.Columns))
	}
	return fmt.Sprintf("its columns are %s: is it the right file, and are these the names of its columns?", quoted(m.Columns))
}

// quoted lists the first few names, each cut where it is long.
func quoted(names []string) string {
	var b strings.Builder
	for i, name := range names {
		if i == mostColumns {
			fmt.Fprintf(&b, " and %d more", len(names)-i)
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%q", shortened(name, longColumn))
	}
	return b.String()
}

// shortened cuts a text that has more characters than most.
func shortened(text string, most int) string {
	if len(text) <= most || utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most-1]) + "…"
}
