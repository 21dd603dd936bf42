package mapping

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"leadferry/internal/spelling"
	"leadferry/mapping/texts"

	"github.com/go-json-experiment/json/jsontext"

	"go.yaml.in/yaml/v4"
)

// rest is what of the columns that nothing else uses goes into the content.
type rest struct {
	except []use // names, in which * stands for any characters
	prefix string
}

// rest takes the columns into the content that nothing else uses, or some of them.
func (p *parser) rest(n node) rest {
	var all rest
	if n.Kind != yaml.MappingNode || n.isUnquoted() {
		if s, ok := p.scalar(n); ok && s != "rest" {
			p.fail(n, `"*": rest`, "%s takes the word rest, for every column that nothing else uses", n.path)
		}
		return all
	}
	if !n.has("rest") {
		p.fail(n, `"*": {rest: {except: [ssn, "tmp_*"], prefix: "crm_"}}`, "%s lacks rest", n.path)
	}
	p.object(n, member{"rest", func(n node) {
		p.object(n,
			member{"except", func(n node) {
				p.list(n, func(n node) { all.except = append(all.except, use{name: strings.TrimSpace(p.name(n, "")), at: n.at()}) })
			}},
			member{"prefix", func(n node) { all.prefix, _ = p.scalar(n) }},
		)
	}})
	return all
}

func (b *Binding) addRest(r *row, rec *Record) {
	for _, c := range b.rest {
		s := strings.TrimSpace(r.cell(c.index))
		if len(c.without) > 0 {
			left, _ := without(jsontext.Value(s), c.without)
			s = string(left)
		}
		if s != "" {
			rec.Content = append(rec.Content, Field{Name: c.as, Value: s})
		}
	}
}

// without is a JSON value without what the paths lead to, and whether they lead
// anywhere; nil where nothing is left of it. What nobody uses stays as it is written. In
// lists null takes the place of what goes, so that the others keep theirs.
func without(v jsontext.Value, paths [][]string) (left jsontext.Value, changed bool) {
	kind := v.Kind()
	if kind != '{' && kind != '[' {
		return v, false
	}
	d := jsontext.NewDecoder(bytes.NewReader(v))
	_, err := d.ReadToken()
	holds := false
	for i := 0; err == nil && d.PeekKind() != '}' && d.PeekKind() != ']'; i++ {
		step, name := strconv.Itoa(i), jsontext.Value(nil)
		if kind == '{' {
			step, name = memberName(d)
		}
		var member jsontext.Value
		member, err = d.ReadValue()
		member, less := reduced(member, step, paths)
		changed = changed || less
		holds = holds || member != nil && member.Kind() != 'n'
		if member == nil && kind == '[' {
			member = jsontext.Value("null")
		}
		if member != nil {
			left = append(append(append(left, ','), name...), member...)
		}
	}
	switch {
	case err != nil || !changed:
		return v, false
	case !holds:
		return nil, true
	}
	left[0] = byte(kind)                    // instead of a comma
	return append(left, byte(kind)+2), true // the codes of both brackets are two apart
}

// reduced is a member without what those paths lead to that begin with its step.
func reduced(member jsontext.Value, step string, paths [][]string) (left jsontext.Value, changed bool) {
	var inside [][]string
	for _, p := range paths {
		switch {
		case p[0] == step && len(p) == 1:
			return nil, true
		case p[0] == step:
			inside = append(inside, p[1:])
		}
	}
	if inside == nil {
		return member, false
	}
	return without(member, inside)
}

// memberName reads a name: as it is meant, and as it is written, with its colon.
func memberName(d *jsontext.Decoder) (name string, written jsontext.Value) {
	v, err := d.ReadValue()
	if err != nil {
		return "", nil // the value behind it fails, too
	}
	meant, _ := jsontext.AppendUnquote(nil, v)
	return string(meant), append(v.Clone(), ':')
}

func (r *rest) excepts(column string) bool {
	return slices.ContainsFunc(r.except, func(e use) bool { return fits(e.name, column) })
}

// fits reports whether * in the pattern can stand for characters that make it the name.
func fits(pattern, name string) bool {
	begin, others, wild := strings.Cut(pattern, "*")
	name, found := strings.CutPrefix(name, begin)
	if !wild || !found {
		return found && name == ""
	}
	pieces := strings.Split(others, "*")
	last := len(pieces) - 1
	for _, piece := range pieces[:last] {
		if _, name, found = strings.Cut(name, piece); !found {
			return false
		}
	}
	return strings.HasSuffix(name, pieces[last])
}

// strangers warns of columns to be left out that the input does not have: one that is misspelt goes in.
func (r *rest) strangers(mapping string, s *search) (warnings []Error) {
	for _, e := range r.except {
		if !s.columns.Open && !slices.ContainsFunc(s.columns.Names, func(name string) bool { return fits(e.name, name) }) {
			text := fmt.Sprintf("lead.content.*: %s has no column %s that could be left out", s.file, texts.Quote(e.name))
			warnings = append(warnings, Error{mapping, e.at.line, e.at.column, text, spelling.Hint(e.name, s.columns.Names)})
		}
	}
	return warnings
}
