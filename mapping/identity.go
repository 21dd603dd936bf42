package mapping

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// identity reads a value that says what a row is: key, external_id or lead_id. A table,
// or what stands in for a cell that is filled later, must not change that; and without a
// column all rows would be one.
func (p *parser) identity(place **value, traits ...trait) func(string, *yaml.Node) {
	return func(path string, n *yaml.Node) {
		v := p.value(path, n, append(traits, saysWhatItIs)...)
		if v == nil {
			return
		}
		if c, constant := v.text.constant(); constant {
			p.fail(n, `write "{`+strings.Trim(c, "{}")+`}" for what the column holds`, "%s names no column, so that all rows would be one", path)
			return
		}
		*place = v
	}
}

func saysWhatItIs(v *value) { v.identity = true }

// unsteady are the keys of a value by which a row would become another one.
var unsteady = []string{"expr", "map", "else", "default", "required", "as", "empty"}

// steady reports whether an object has none of those.
func (p *parser) steady(path string, n *yaml.Node) bool {
	before := len(p.errs)
	p.each(path, n, func(key, _ *yaml.Node) {
		if slices.Contains(unsteady, key.Value) {
			p.fail(key, "what a row is must not change with a table, or with a cell that is filled later",
				"%s takes from, apply and format only, not %s", path, key.Value)
		}
	})
	return len(p.errs) == before
}
