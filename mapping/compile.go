package mapping

import (
	"strings"

	"go.yaml.in/yaml/v4"
)

// trait says what a value of this place may or must be.
type trait func(*value)

func needs(rule string) trait { return func(v *value) { v.needed = rule } }

func isStatus(v *value) { v.check = statusWord }

func namesLead(v *value) { v.check = leadIDWord }

func ofContent(v *value) { v.inContent = true }

func ofSearch(v *value) { v.searches = true }

// value reads the text or the object at n. It gives nil after an error.
func (p *parser) value(path string, n *yaml.Node, traits ...trait) *value {
	v, before := &value{path: path, at: at(n)}, len(p.errs)
	for _, t := range traits {
		t(v)
	}
	if n.Kind != yaml.MappingNode || unquoted(n) {
		v.text = p.text(v, path, n)
	} else {
		p.valueObject(v, n)
	}
	if len(p.errs) > before || n.Kind == yaml.AliasNode {
		return nil
	}
	if c, ok := v.text.constant(); ok && !v.identity && (v.expr == nil || len(v.expr.columns) == 0) {
		p.settled(v, n, c)
	}
	return v
}

// settled checks a value that names no column and whose text, if any, is the constant
// c: it comes to the same in every row, so what it breaks it always breaks.
func (p *parser) settled(v *value, n *yaml.Node, c string) {
	if v.table == nil && v.expr == nil {
		before := len(p.errs)
		c = p.constant(v, v.path, n, c)
		v.text = text{{kind: literal, text: c}}
		if len(p.errs) > before {
			return
		}
	}
	var r row
	if _, broken := v.eval(&r); broken != "" {
		p.fail(n, "", "%s %s", v.path, v.complaint(broken, r.why))
	}
}

// into is a member's read that puts a value into its place.
func (p *parser) into(place **value, traits ...trait) func(string, *yaml.Node) {
	return func(path string, n *yaml.Node) { *place = p.value(path, n, traits...) }
}

func (p *parser) valueObject(v *value, n *yaml.Node) {
	if v.identity && !p.steady(v.path, n) {
		return
	}
	before := len(p.errs)
	if as := child(n, "as"); as != nil { // first: constants are checked by it
		p.as(v, v.path+".as", as)
	}
	members := []member{
		{"from", func(path string, n *yaml.Node) { v.text = p.text(v, path, n) }},
		{"apply", func(path string, n *yaml.Node) { v.apply = p.steps(path, n) }},
		{"format", func(path string, n *yaml.Node) { p.format(v, path, n) }},
	}
	if !v.identity {
		members = append(members, p.changing(v)...)
	}
	p.object(v.path, n, members...)
	from, expr := has(n, "from"), has(n, "expr")
	switch {
	case from && expr:
		p.fail(n, "keep one of them", "%s has both from and expr", v.path)
	case !from && !expr && len(p.errs) == before: // else it was misspelt
		p.fail(n, `add from: "{column}"`, "%s lacks from", v.path)
	case v.other != nil && v.table == nil:
		p.fail(n, "", "%s has else without map", v.path)
	}
}

// changing are the keys by which a value may come to another text.
func (p *parser) changing(v *value) []member {
	return []member{
		{"expr", func(path string, n *yaml.Node) { v.expr = p.expression(path, n) }},
		{"map", func(path string, n *yaml.Node) { v.table = p.table(v, path, n) }},
		{"else", func(path string, n *yaml.Node) { v.other = p.otherwise(v, path, n) }},
		{"default", func(path string, n *yaml.Node) { v.preset = p.fixed(v, path, n) }},
		{"required", func(path string, n *yaml.Node) {
			if yes, _ := p.boolean(path, n); yes && v.needed == "" {
				v.needed = ruleRequired
			}
		}},
		{"as", func(string, *yaml.Node) {}},
		{"empty", func(path string, n *yaml.Node) { p.empty(v, path, n) }},
	}
}

func (p *parser) steps(path string, n *yaml.Node) []namedStep {
	var steps []namedStep
	p.list(path, n, func(path string, n *yaml.Node) {
		word, ok := p.scalar(path, n)
		if !ok {
			return
		}
		f, fault, hint := parseStep(word)
		if fault != "" {
			p.fail(n, hint, "%s", fault)
			return
		}
		steps = append(steps, namedStep{word, f})
	})
	return steps
}

func (p *parser) format(v *value, path string, n *yaml.Node) {
	word, ok := p.scalar(path, n)
	if !ok {
		return
	}
	if strings.HasPrefix(word, "/") {
		if fault := p.patterned(1); fault != nil {
			p.fail(n, "", "%s: %s", path, fault.text)
			return
		}
	}
	check, name, fault, hint := parseFormat(word)
	if fault != "" {
		p.fail(n, hint, "%s", fault)
		return
	}
	v.format, v.formatName = check, name
}

func (p *parser) as(v *value, path string, n *yaml.Node) {
	word := p.oneOf(path, "kind of value", n, "string", "number", "boolean", "json")
	v.kind = kinds[word]
	if v.kind != String && !v.inContent {
		p.fail(n, "", "%s: only values in lead.content can be other than texts", path)
	}
}

func (p *parser) empty(v *value, path string, n *yaml.Node) {
	v.clears = p.oneOf(path, "way with empty values", n, "keep", "clear") == "clear"
	if v.clears && !v.inContent {
		p.fail(n, "", "%s: only values in lead.content can be cleared", path)
	}
}
