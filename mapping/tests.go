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
	Line, Column int // where it is in the mapping file, from 1

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
				p.fail(n, "a test is {row: {column: cell}, request: {organizationID: …, content: {…}}}", "%s lacks %s",
					n.path, key)
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
			p.fail(key, "", "the column %s is there twice in %s", texts.Quote(name), n.path)
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
	c := comparison{have: map[string]any{}}
	c.flatten("", have)
	if expected := t.request; expected.Node != nil {
		expected.path = ""
		c.compare(expected)
		c.surplus()
	}
	return c.differences
}

// maxShown is how much of a value a difference shows, in characters.
const maxShown = 100

// comparison holds what came out and is not compared yet, by its path: texts, numbers, true, false, null, and what is
// empty.
type comparison struct {
	have        map[string]any
	differences []string
}

func (c *comparison) add(path, format string, args ...any) {
	c.differences = append(c.differences, cmp.Or(path, "the request")+" "+fmt.Sprintf(format, args...))
}

// flatten notes a JSON value, or its members by their paths.
func (c *comparison) flatten(path string, value any) {
	switch value := value.(type) {
	case map[string]any:
		for key, member := range value {
			c.flatten(below(path, printable(key)), member)
		}
		if len(value) > 0 {
			return
		}
	case []any:
		for i, member := range value {
			c.flatten(element(path, i), member)
		}
		if len(value) > 0 {
			return
		}
	}
	c.have[path] = value
}

// compare looks for the value n, or for its members, among what came out.
func (c *comparison) compare(n node) {
	if n.Kind != yaml.ScalarNode && len(n.Content) > 0 {
		for i := 0; i < len(n.Content); i++ {
			if n.Kind == yaml.SequenceNode {
				c.compare(node{n.Content[i], element(n.path, i)})
			} else if i%2 == 1 {
				c.compare(node{n.Content[i], below(n.path, printable(n.Content[i-1].Value))})
			}
		}
		return
	}
	have, found := c.have[n.path]
	delete(c.have, n.path)
	if n.Kind == yaml.MappingNode && n.path == "" && !found { // all that came out is surplus
		return
	}
	if !found {
		c.add(n.path, "is missing: it should be %s", showExpected(n))
	} else if !isSame(n, have) {
		c.add(n.path, "is %s, not %s", show(have), showExpected(n))
	}
}

// surplus tells what came out and is not expected. Content may be empty (empty: clear), and a request without any has
// an empty object of it.
func (c *comparison) surplus() {
	delete(c.have, "content")
	for _, path := range slices.Sorted(maps.Keys(c.have)) {
		if have := c.have[path]; have != "" || !strings.HasPrefix(path, "content.") {
			c.add(path, "is %s, which the test does not expect", show(have))
		}
	}
}

func isSame(n node, have any) bool {
	switch have := have.(type) {
	case string:
		return n.Kind == yaml.ScalarNode && n.Value == have
	case json.Number:
		_, isNumber := jsonNumber(n.Value)
		return n.isPlain() && isNumber && SameNumber(n.Value, have.String())
	case map[string]any:
		return n.Kind == yaml.MappingNode
	case []any:
		return n.Kind == yaml.SequenceNode
	}
	return n.isPlain() && n.Value == show(have)
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
		return "{}"
	case []any:
		return "[]"
	}
	return texts.Shortened(fmt.Sprint(have), maxShown)
}

// showExpected is the scalar n, or an empty object or list, for a sentence: without quotes when it can stand for more
// than a text.
func showExpected(n node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "{}"
	case n.Kind == yaml.SequenceNode:
		return "[]"
	case n.isPlain() && json.Valid([]byte(n.Value)):
		return texts.Shortened(n.Value, maxShown)
	}
	return show(n.Value)
}
