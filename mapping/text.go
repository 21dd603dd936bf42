package mapping

import (
	"slices"
	"strings"
)

// text is a compiled text: its parts stand one after another.
type text []part

type part struct {
	kind  kind
	text  string // a literal, or the name of a column
	index int    // of the column's cell once bound, or -1: the row has none
}

type kind uint8

const (
	literal kind = iota
	column
	itself // {}: the text that else is asked for
	rowKey
	file // this and the following differ from run to run
	line
	run
)

// special are the placeholders that are no columns.
var special = map[string]kind{"@key": rowKey, "@file": file, "@line": line, "@run": run}

// split cuts s at its placeholders; {{ stands for a brace. Column names are
// trimmed, as those of the header are. It gives the first fault as a sentence.
func split(s string) (t text, fault, hint string) {
	var words strings.Builder
	for s != "" {
		before, rest, found := strings.Cut(s, "{")
		words.WriteString(before)
		if !found {
			break
		}
		if strings.HasPrefix(rest, "{") {
			words.WriteByte('{')
			s = rest[1:]
			continue
		}
		name, after, closed := strings.Cut(rest, "}")
		if !closed {
			return nil, "a placeholder is not closed", "close it with }, or write {{ for a brace"
		}
		name = strings.TrimSpace(name)
		p, known := placeholder(name)
		if !known {
			return nil, "unknown placeholder " + quote(name), didYouMean(name, []string{"@key", "@file", "@line", "@run"})
		}
		if words.Len() > 0 {
			t = append(t, part{kind: literal, text: words.String()})
			words.Reset()
		}
		t = append(t, p)
		s = after
	}
	if words.Len() > 0 {
		t = append(t, part{kind: literal, text: words.String()})
	}
	return t, "", ""
}

func placeholder(name string) (part, bool) {
	switch k, ok := special[name]; {
	case ok:
		return part{kind: k}, true
	case name == "":
		return part{kind: itself}, true
	case strings.HasPrefix(name, "@"):
		return part{}, false
	}
	return part{kind: column, text: name}, true
}

// has reports whether a part is one of kinds.
func (t text) has(kinds ...kind) bool {
	return slices.ContainsFunc(t, func(p part) bool { return slices.Contains(kinds, p.kind) })
}

// constant is the text without its ends' white space, if it has no placeholder.
func (t text) constant() (string, bool) {
	switch {
	case len(t) == 0:
		return "", true
	case len(t) == 1 && t[0].kind == literal:
		return strings.TrimSpace(t[0].text), true
	}
	return "", false
}
