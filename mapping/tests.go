package mapping

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Test is an entry of the section tests: a row, and the create request that it must
// come to (specification, "Lead creation request body"). It does not change and may
// be shared.
type Test struct {
	Line, Column int // where it stands in the mapping file, from 1

	// Names are the row's columns in the order written, Cells what they hold. A
	// dotted name is a path into a JSONL row.
	Names, Cells []string

	request *yaml.Node // an object of scalars, objects and lists
}

// tests reads the section tests.
func (p *parser) tests(path string, n *yaml.Node) {
	p.list(path, n, func(path string, n *yaml.Node) {
		if p.full() {
			return
		}
		t := Test{Line: n.Line, Column: n.Column}
		p.object(path, n,
			member{"row", func(path string, n *yaml.Node) { p.testRow(&t, path, n) }},
			member{"request", func(path string, n *yaml.Node) {
				t.request = n
				p.testRequest(path, n)
			}},
		)
		for _, key := range [...]string{"row", "request"} {
			if n.Kind == yaml.MappingNode && !has(n, key) {
				p.fail(n, "a test is {row: {column: cell}, request: {organizationID: …, content: {…}}}", "%s lacks %s", path, key)
			}
		}
		p.m.tests = append(p.m.tests, t)
	})
}

// testRow reads the cells of a test. One that holds nothing may be left blank or
// written null, as people know it from JSON.
func (p *parser) testRow(t *Test, path string, n *yaml.Node) {
	p.each(path, n, func(key, child *yaml.Node) {
		name := strings.TrimSpace(key.Value)
		switch {
		case name == "":
			p.fail(key, "", "%s has a column without a name", path)
			return
		case slices.Contains(t.Names, name):
			p.fail(key, "", "the column %s stands twice in %s", quote(name), path)
			return
		case child.Kind == yaml.MappingNode && !unquoted(child), child.Kind == yaml.SequenceNode:
			p.fail(child, "name the path with dots: "+quote(name+".…"), "%s.%s must be a text", path, name)
			return
		}
		cell := ""
		if !isNothing(child) {
			cell, _ = p.scalar(path+"."+name, child)
		}
		t.Names, t.Cells = append(t.Names, name), append(t.Cells, cell)
	})
}

// isNothing reports whether n is a value left out, or null. NULL and Null are
// texts: exports write them, and source.null is there to name them.
func isNothing(n *yaml.Node) bool {
	return isPlain(n) && (n.Value == "" || n.Value == "~" || n.Value == "null")
}

// isPlain reports whether n is a scalar without quotes.
func isPlain(n *yaml.Node) bool {
	const marked = yaml.SingleQuotedStyle | yaml.DoubleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle
	return n.Kind == yaml.ScalarNode && n.Style&marked == 0
}

// testRequest checks the names in an expected request, and that it holds only what
// can be compared.
func (p *parser) testRequest(path string, n *yaml.Node) {
	p.object(path, n,
		member{"organizationID", p.expectText},
		member{"locatorID", p.expectText},
		member{"locationSearch", func(path string, n *yaml.Node) {
			p.object(path, n, member{"searchText", p.expectText}, member{"postalCode", p.expectText})
		}},
		member{"typeKey", p.expectText},
		member{"typeLabel", p.expectText},
		member{"status", p.expectText},
		member{"content", func(path string, n *yaml.Node) {
			p.each(path, n, func(key, child *yaml.Node) { p.expect(path+"."+key.Value, child) })
		}},
	)
}

func (p *parser) expectText(path string, n *yaml.Node) { p.scalar(path, n) }

// expect checks a value that a test expects, and what is in it.
func (p *parser) expect(path string, n *yaml.Node) {
	switch {
	case n.Kind == yaml.SequenceNode:
		for i := 0; i < len(n.Content) && !p.full(); i++ {
			p.expect(element(path, i), n.Content[i])
		}
	case n.Kind == yaml.MappingNode && !unquoted(n):
		p.each(path, n, func(key, child *yaml.Node) { p.expect(path+"."+key.Value, child) })
	default:
		p.scalar(path, n)
	}
}
