package mapping

import (
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v4"
)

// text is a compiled text: its parts stand one after another.
type text []part

type part struct {
	kind  kind
	place place  // in a JSON value
	text  string // a literal, or the name of a column
	index int    // of the column's cell once bound, or -1: the row has none
}

// place is where a placeholder stands in the JSON value that its text is.
type place uint8

const (
	anywhere place = iota // it is no JSON value, or the placeholder is all of it
	inString
	asValue
)

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

// String is the text as a mapping file may have it.
func (t text) String() string {
	var b strings.Builder
	for _, p := range t {
		switch p.kind {
		case literal:
			b.WriteString(strings.ReplaceAll(p.text, "{", "{{"))
		case column:
			b.WriteString("{" + p.text + "}")
		default:
			for name, kind := range special {
				if kind == p.kind {
					b.WriteString("{" + name + "}")
				}
			}
		}
	}
	return strings.TrimSpace(b.String())
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

// text reads a text with placeholders at n.
func (p *parser) text(v *value, path string, n *yaml.Node) text {
	t := p.placeholders(path, n)
	switch c, constant := t.constant(); {
	case t.has(itself):
		p.fail(n, "name a column: {column}", "%s has a placeholder without a name", path)
	case t.has(file, line, run) && !v.inContent:
		p.fail(n, "", "%s cannot hold {@file}, {@line} or {@run}: they differ from run to run and stand in lead.content only", path)
	case t != nil && constant && c == "":
		p.fail(n, "", "%s is empty", path)
	}
	return t
}

func (p *parser) placeholders(path string, n *yaml.Node) text {
	s, ok := p.scalar(path, n)
	if !ok {
		return nil
	}
	t, fault, hint := split(s)
	if fault != "" {
		p.fail(n, hint, "%s: %s", path, fault)
		return nil
	}
	if t == nil {
		t = text{}
	}
	return t
}

// fixed reads a text without placeholders at n.
func (p *parser) fixed(v *value, path string, n *yaml.Node) string {
	t := p.placeholders(path, n)
	c, ok := t.constant()
	if !ok {
		p.fail(n, "write {{ for a brace", "%s takes no placeholders", path)
		return ""
	}
	return p.replacement(v, path, n, c)
}

// constant checks a text of the file that v may come to, and gives a status as its key.
func (p *parser) constant(v *value, path string, n *yaml.Node, s string) string {
	if v.check != statusWord || s == "" {
		return s
	}
	key, ok := statusKey(s)
	if !ok {
		p.fail(n, statusHint(s), "%s: %s is not a status of the service", path, quote(s))
	}
	return key
}

// replacement checks a constant that takes the place of v's text: one of map, else or
// default. Steps are applied before, so the constant itself must fit as and status.
func (p *parser) replacement(v *value, path string, n *yaml.Node, s string) string {
	if _, ok := literalOf(v.kind, s); !ok && s != "" {
		p.fail(n, "", "%s: %s is not %s", path, quote(s), kindNames[v.kind])
	}
	return p.constant(v, path, n, s)
}

func (p *parser) table(v *value, path string, n *yaml.Node) map[string]string {
	table := map[string]string{}
	p.each(path, n, func(key, child *yaml.Node) {
		from := strings.TrimSpace(key.Value)
		if from == "" {
			p.fail(key, "use default", "%s is not asked for empty texts", path)
			return
		}
		table[from] = p.fixed(v, path+"."+key.Value, child)
	})
	return table
}

func (p *parser) otherwise(v *value, path string, n *yaml.Node) text {
	t := p.placeholders(path, n)
	if c, ok := t.constant(); ok && t != nil {
		return text{{kind: literal, text: p.replacement(v, path, n, c)}}
	}
	if t.has(column, rowKey, file, line, run) {
		p.fail(n, "write {} for the text itself, {{ for a brace", "%s takes no placeholder but {}", path)
	}
	return t
}

// shaped notes where the placeholders of a text stand that is a JSON value, so that no
// cell can change its shape.
func (p *parser) shaped(path string, n *yaml.Node, t text) {
	if len(t) < 2 {
		return
	}
	var probe strings.Builder
	quoted, escaped := false, false
	for i := range t {
		switch part := &t[i]; {
		case part.kind == literal:
			for _, c := range []byte(part.text) {
				switch {
				case escaped:
					escaped = false
				case c == '\\':
					escaped = quoted
				case c == '"':
					quoted = !quoted
				}
			}
			probe.WriteString(part.text)
		case quoted:
			part.place = inString
			probe.WriteString(strconv.Itoa(i)) // keys must differ
		default:
			part.place = asValue
			probe.WriteString("null")
		}
	}
	if _, ok := jsonOf(strings.TrimSpace(probe.String())); !ok {
		p.fail(n, `for example '{{"name": "{name}", "seats": {seats}}': in quotes a cell is a text, else a JSON value`,
			"%s is not a JSON value around its placeholders", path)
	}
}

// put appends what a placeholder stands for: in a JSON string escaped, else as a value of
// its own. What is none leaves the text without meaning, so that the row is invalid.
func (p *part) put(b []byte, s string) []byte {
	switch p.place {
	case inString:
		quoted, err := jsontext.AppendQuote(nil, s)
		if err != nil {
			return append(b, 0)
		}
		return append(b, quoted[1:len(quoted)-1]...)
	case asValue:
		if _, ok := jsonOf(strings.TrimSpace(s)); !ok {
			return append(b, 0)
		}
	}
	return append(b, s...)
}
