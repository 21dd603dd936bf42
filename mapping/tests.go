package mapping

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"leadferry/mapping/texts"
)

// Test is an entry of the section tests: a row, and the create request that it must come to (specification, "Lead
// creation request body"). It does not change and may be shared.
type Test struct {
	Line, Column int // where it stands in the mapping file, from 1

	// Names are the row's columns in the order written, Cells what they hold. A
	// dotted name is a path into a JSONL row.
	Names, Cells []string

	request node // an object of scalars, objects and lists
}

func (p *parser) tests(n node) {
	p.list(n, func(n node) {
		t := Test{Line: n.Line, Column: n.Column}
		p.object(n,
			member{"row", func(n node) { p.testRow(&t, n) }},
			member{"request", func(n node) {
				t.request = n
				p.testRequest(n)
			}},
		)
		for _, key := range [...]string{"row", "request"} {
			if n.Kind == yaml.MappingNode && !n.has(key) {
				p.fail(n, "a test is {row: {column: cell}, request: {organizationID: …, content: {…}}}", "%s lacks %s", n.path, key)
			}
		}
		p.m.tests = append(p.m.tests, t)
	})
}

// testRow reads the cells of a test. One that holds nothing may be left blank or written null, as people know it from
// JSON. NULL and Null are texts: exports write them, and source.null is there to name them.
func (p *parser) testRow(t *Test, n node) {
	p.each(n, func(key, child node) {
		name, cell := strings.TrimSpace(key.Value), ""
		switch {
		case name == "":
			p.fail(key, "", "%s has a column without a name", n.path)
		case slices.Contains(t.Names, name):
			p.fail(key, "", "the column %s stands twice in %s", texts.Quote(name), n.path)
		case child.Kind == yaml.MappingNode && !child.isUnquoted(), child.Kind == yaml.SequenceNode:
			p.fail(child, "name the path with dots: "+texts.Quote(name+".…"), "%s.%s must be a text", n.path, name)
		case !child.isPlain() || child.Value != "" && child.Value != "~" && child.Value != "null":
			cell, _ = p.word(child)
		}
		t.Names, t.Cells = append(t.Names, name), append(t.Cells, cell)
	})
}

// testRequest checks the names in an expected request, and that it holds only what can be compared.
func (p *parser) testRequest(n node) {
	text := func(n node) { p.scalar(n) }
	p.object(n,
		member{"organizationID", text},
		member{"locatorID", text},
		member{"locationSearch", func(n node) {
			p.object(n, member{"searchText", text}, member{"postalCode", text})
		}},
		member{"typeKey", text},
		member{"typeLabel", text},
		member{"status", text},
		member{"content", func(n node) {
			p.each(n, func(_, child node) { p.expect(child) })
		}},
	)
}

func (p *parser) expect(n node) {
	switch {
	case n.Kind == yaml.SequenceNode && len(n.Content) > 0:
		p.list(n, p.expect)
	case n.Kind == yaml.SequenceNode:
	case n.Kind == yaml.MappingNode && !n.isUnquoted():
		p.each(n, func(_, child node) { p.expect(child) })
	default:
		p.word(n)
	}
}

// Compare gives the differences between the request that the test expects and the create request in JSON that came
// out, as sentences in the order of the mapping file; nil when there are none. A text in the JSON has to be the text
// as the file writes it; a number, true, false or null has to be written there without quotes, numbers with the same
// value. Content that is sent empty (empty: clear) may be left out of what is expected: most rows of tests name no
// such column. The sentences show values: the row of a test is the mapping's own, no lead.
func (t *Test) Compare(request []byte) []string {
	d := json.NewDecoder(bytes.NewReader(request))
	d.UseNumber() // a float64 would round
	var have any
	if err := d.Decode(&have); err != nil {
		return []string{"the request is not JSON"}
	}
	if _, err := d.Token(); err != io.EOF {
		return []string{"the request is more than one JSON value"}
	}
	var c comparison
	if expected := t.request; expected.Node != nil {
		expected.path = ""
		c.value(expected, have, true)
	}
	return c.differences
}

// maxShown is how much of a value a difference shows, in characters.
const maxShown = 100

type comparison struct{ differences []string }

func (c *comparison) add(path, format string, args ...any) {
	path = cmp.Or(path, "the request")
	c.differences = append(c.differences, path+" "+fmt.Sprintf(format, args...))
}

// value compares what n expects with what is there, if anything is.
func (c *comparison) value(n node, have any, found bool) {
	object, isObject := have.(map[string]any)
	list, isList := have.([]any)
	switch {
	case !found:
		c.add(n.path, "is missing: it should be %s", showExpected(n))
	case n.Kind == yaml.MappingNode && isObject:
		c.object(n, object)
	case n.Kind == yaml.SequenceNode && isList:
		c.list(n, list)
	case n.Kind != yaml.ScalarNode || !isSame(n, have):
		c.add(n.path, "is %s, not %s", show(have), showExpected(n))
	}
}

func (c *comparison) surplus(path string, have any) {
	c.add(path, "is %s, which the test does not expect", show(have))
}

func (c *comparison) object(n node, have map[string]any) {
	for i := 0; i < len(n.Content); i += 2 {
		key := n.Content[i].Value
		value, found := have[key]
		c.value(node{n.Content[i+1], below(n.path, printable(key))}, value, found)
	}
	for _, key := range slices.Sorted(maps.Keys(have)) {
		if !n.has(key) && !(n.path == "content" && have[key] == "") {
			c.surplus(below(n.path, printable(key)), have[key])
		}
	}
}

func (c *comparison) list(n node, have []any) {
	for i := range max(len(n.Content), len(have)) {
		switch path := element(n.path, i); {
		case i >= len(have):
			c.value(node{n.Content[i], path}, nil, false)
		case i >= len(n.Content):
			c.surplus(path, have[i])
		default:
			c.value(node{n.Content[i], path}, have[i], true)
		}
	}
}

func isSame(n node, have any) bool {
	switch have := have.(type) {
	case string:
		return n.Value == have
	case json.Number:
		_, isNumber := jsonNumber(n.Value)
		return n.isPlain() && isNumber && SameNumber(n.Value, have.String())
	case bool, nil:
		return n.isPlain() && n.Value == show(have)
	}
	return false
}

// printable is a key for a sentence, quoted when it would not show as it is.
func printable(key string) string {
	hidden := strings.ContainsFunc(key, func(r rune) bool { return !unicode.IsPrint(r) })
	if key == "" || hidden || utf8.RuneCountInString(key) > maxShown {
		return strconv.Quote(texts.Shortened(key, maxShown))
	}
	return key
}

func show(have any) string {
	switch have := have.(type) {
	case nil:
		return "null"
	case string:
		return strconv.Quote(texts.Shortened(have, maxShown))
	case map[string]any:
		return "an object"
	case []any:
		return "a list"
	}
	return texts.Shortened(fmt.Sprint(have), maxShown)
}

// showExpected is the value n for a sentence: without quotes when it can stand for more than a text.
func showExpected(n node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "an object"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.isPlain() && json.Valid([]byte(n.Value)):
		return texts.Shortened(n.Value, maxShown)
	}
	return show(n.Value)
}
