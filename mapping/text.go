package mapping

import (
	"slices"
	"strconv"
	"strings"

	"leadferry/internal/spelling"
	"leadferry/mapping/texts"
)

// text is a compiled text: its parts, one after another.
type text []part

// part is a literal or a placeholder. A column that an expression names is also a part.
type part struct {
	kind  partKind
	text  string // a literal, or the name of a placeholder
	index int    // of a column: its index in the names of the mapping
	json  place  // for a text that is a JSON value
}

// place says where a placeholder is in the JSON value around it. No cell may change the shape of that value.
type place uint8

const (
	unplaced place = iota // no JSON value is around it
	inString              // its content is escaped
	asValue               // its content must be a JSON value itself
)

type partKind uint8

const (
	literal partKind = iota
	column
	itself // {}: the text that the map lacks, in else
	rowKey
	file // this one and the next two differ from run to run
	line
	run
)

// special are the placeholders that are not columns.
var special = map[string]partKind{"": itself, "@key": rowKey, "@file": file, "@line": line, "@run": run}

// tokens match the pieces of a text: {{, a placeholder, a placeholder that is not closed, or words.
var tokens = spelling.Form(`\{\{|\{[^}]*\}?|[^{]+`)

// split cuts s at its placeholders. {{ means a brace. It trims column names and returns the first fault.
func split(s string) (text, *texts.Fault) {
	t := text{}
	add := func(words string) {
		if last := len(t) - 1; last >= 0 && t[last].kind == literal {
			t[last].text += words
		} else {
			t = append(t, part{kind: literal, text: words})
		}
	}
	for _, token := range tokens().FindAllString(s, -1) {
		inside, closed := strings.CutSuffix(token[1:], "}")
		name := strings.TrimSpace(inside)
		kind, known := special[name]
		switch {
		case token == "{{":
			add("{")
			continue
		case token[0] != '{':
			add(token)
			continue
		case !closed:
			return nil, texts.NewFault("a placeholder is not closed", "close it with }, or write {{ for a brace")
		case !known && strings.HasPrefix(name, "@"):
			return nil, texts.Unknown("placeholder "+texts.Quote(name), name, []string{"@key", "@file", "@line", "@run"})
		case !known:
			kind = column
		}
		t = append(t, part{kind: kind, text: name})
	}
	return t, nil
}

// String returns the text as a mapping file can write it.
func (t text) String() string {
	var b strings.Builder
	for _, p := range t {
		if p.kind == literal {
			b.WriteString(strings.ReplaceAll(p.text, "{", "{{"))
		} else {
			b.WriteString("{" + p.text + "}")
		}
	}
	return strings.TrimSpace(b.String())
}

func (t text) has(kinds ...partKind) bool {
	return slices.ContainsFunc(t, func(p part) bool { return slices.Contains(kinds, p.kind) })
}

// constant returns the trimmed text, if it has no placeholder.
func (t text) constant() (string, bool) {
	switch {
	case len(t) == 0:
		return "", true
	case len(t) == 1 && t[0].kind == literal:
		return strings.TrimSpace(t[0].text), true
	}
	return "", false
}

// fill returns the text for a row. lacking is the text that a map lacks, for else. If the text has columns and all of
// them are empty, it is empty. fits is false if a column has to be a JSON value and is none.
func (t text) fill(r *row, lacking string) (filled string, fits bool) {
	if len(t) == 1 { // most texts are one column or a constant: nothing to copy
		return strings.TrimSpace(t[0].resolve(r, lacking)), true
	}
	var room [256]byte
	b, columns, holds := room[:0], false, false
	fits = true
	for i := range t {
		s := t[i].resolve(r, lacking)
		if t[i].kind == column {
			columns = true
			holds = holds || !blank(s)
		}
		s, is := t[i].json.embed(s)
		b, fits = append(b, s...), fits && is
	}
	if columns && !holds {
		return "", true
	}
	return strings.TrimSpace(string(b)), fits
}

// resolve returns the part's content in a row.
func (p *part) resolve(r *row, lacking string) string {
	switch p.kind {
	case column:
		return r.cell(r.at[p.index])
	case itself:
		return lacking
	case rowKey:
		return r.key
	case file:
		return r.env.File
	case line:
		return strconv.Itoa(r.env.Line)
	case run:
		return r.env.Run
	}
	return p.text
}

// embed returns a text as written in that place, if it fits there.
func (p place) embed(s string) (written string, fits bool) {
	switch p {
	case unplaced:
		return s, true
	case inString:
		s = quoted(s)
		return s[1 : len(s)-1], true
	}
	return jsonOf(s)
}

// markTemplate sets the place of each placeholder, and reports whether the text is a JSON value around them.
func (t text) markTemplate() bool {
	var probe strings.Builder
	escapes, within := strings.NewReplacer(`\\`, "", `\"`, ""), false
	for i := range t {
		switch part := &t[i]; {
		case part.kind == literal:
			probe.WriteString(part.text)
			within = within != (strings.Count(escapes.Replace(part.text), `"`)%2 == 1)
		case within:
			part.json = inString
			probe.WriteString(strconv.Itoa(i)) // names must differ
		default:
			part.json = asValue
			probe.WriteString("null")
		}
	}
	_, is := jsonOf(probe.String())
	return is
}

func blank(s string) bool { return strings.TrimSpace(s) == "" }

func (r *valueReader) readText(n node) {
	t := r.placeholders(n)
	switch c, constant := t.constant(); {
	case t.has(itself):
		r.fail(n, "name a column: {column}", "%s has a placeholder without a name", n.path)
	case t.has(file, line, run) && r.role != contentRole:
		r.fail(n, "", "%s cannot hold {@file}, {@line} or {@run}: they differ from run to run, so they go into "+
			"lead.content only", n.path)
	case t != nil && constant && c == "":
		r.fail(n, columnHint+", or a text that is the same in every row", "%s is empty", n.path)
	}
	r.text, r.columns = t, r.columnsOf(t)
}

// columnsOf returns the columns of a text, and sets their index in it.
func (p *parser) columnsOf(t text) (columns []part) {
	for i := range t {
		if t[i].kind == column {
			t[i] = p.column(t[i].text)
			columns = append(columns, t[i])
		}
	}
	return columns
}

// placeholders reads a text with any placeholders. It returns nil after an error.
func (p *parser) placeholders(n node) (t text) {
	set(p, &t, split)(n)
	return t
}
