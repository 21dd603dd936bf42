package mapping

import (
	"strings"

	"go.yaml.in/yaml/v4"
)

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
	return p.outcome(v, path, n, c)
}

// constant checks a text that v can come to whatever a row holds.
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

// outcome is a constant that stands for v's text behind apply: of map, else or
// default.
func (p *parser) outcome(v *value, path string, n *yaml.Node, s string) string {
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
		return text{{kind: literal, text: p.outcome(v, path, n, c)}}
	}
	if t.has(column, rowKey, file, line, run) {
		p.fail(n, "write {} for the text itself, {{ for a brace", "%s takes no placeholder but {}", path)
	}
	return t
}
