package mapping

import (
	"strings"

	"go.yaml.in/yaml/v4"
)

// trait says what a value of this place may or must be.
type trait func(*value)

func needs(rule string) trait { return func(v *value) { v.needed = rule } }

func isStatus(v *value) { v.status = true }

func mayDiffer(v *value) { v.differs = true }

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
	if c, ok := v.text.constant(); ok && v.table == nil {
		c = p.constant(v, path, n, c)
		v.text = text{{kind: literal, text: c}}
	}
	return v
}

// into is a member's read that puts a value into its place.
func (p *parser) into(place **value, traits ...trait) func(string, *yaml.Node) {
	return func(path string, n *yaml.Node) { *place = p.value(path, n, traits...) }
}

func (p *parser) valueObject(v *value, n *yaml.Node) {
	from, before := false, len(p.errs)
	p.object(v.path, "value", n,
		member{"from", func(path string, n *yaml.Node) {
			from = true
			v.text = p.text(v, path, n)
		}},
		member{"map", func(path string, n *yaml.Node) { v.table = p.table(v, path, n) }},
		member{"else", func(path string, n *yaml.Node) { v.other = p.otherwise(v, path, n) }},
		member{"default", func(path string, n *yaml.Node) { v.preset = p.fixed(v, path, n) }},
		member{"required", func(path string, n *yaml.Node) {
			if yes, _ := p.boolean(path, n); yes && v.needed == "" {
				v.needed = ruleRequired
			}
		}},
		member{"apply", func(path string, n *yaml.Node) { v.apply = p.steps(path, n) }},
		member{"format", func(path string, n *yaml.Node) { v.format = p.oneOf(path, "format", n, "email") }},
	)
	switch {
	case !from && len(p.errs) == before: // else it was misspelt, or is a word of later
		p.fail(n, `add from: "{column}"`, "%s lacks from", v.path)
	case v.other != nil && v.table == nil:
		p.fail(n, "", "%s has else without map", v.path)
	}
}

// text reads a text with placeholders at n.
func (p *parser) text(v *value, path string, n *yaml.Node) text {
	t := p.placeholders(path, n)
	switch c, constant := t.constant(); {
	case t.has(itself):
		p.fail(n, "name a column: {column}", "%s has a placeholder without a name", path)
	case t.has(file, line, run) && !v.differs:
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
	return p.constant(v, path, n, c)
}

// constant checks a text that v can come to whatever a row holds.
func (p *parser) constant(v *value, path string, n *yaml.Node, s string) string {
	if !v.status || s == "" {
		return s
	}
	key, ok := statusKey(s)
	if !ok {
		p.fail(n, statusHint(s), "%s: %s is not a status of the service", path, quote(s))
	}
	return key
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
		return text{{kind: literal, text: p.constant(v, path, n, c)}}
	}
	if t.has(column, rowKey, file, line, run) {
		p.fail(n, "write {} for the text itself, {{ for a brace", "%s takes no placeholder but {}", path)
	}
	return t
}

func (p *parser) steps(path string, n *yaml.Node) []func(string) string {
	var fs []func(string) string
	p.list(path, n, func(path string, n *yaml.Node) {
		if f := steps[p.oneOf(path, "step", n, "trim", "lower", "upper")]; f != nil {
			fs = append(fs, f)
		}
	})
	return fs
}
