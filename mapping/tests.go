package mapping

import (
	"bytes"
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

// Compare gives the differences between the request that the test expects and the
// create request in JSON that came out, as sentences in the order of the mapping
// file; nil when there are none. A text in the JSON has to be the text as the file
// writes it; a number, true, false or null has to be written there without quotes,
// numbers with the same value. Content that is sent empty (empty: clear) may be left
// out of what is expected: most rows of tests name no such column. The sentences show values: the row of a test is the
// mapping's own, no lead.
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
	if t.request != nil {
		c.value("", t.request, have)
	}
	return c.differences
}

// maxShown is how much of a value a difference shows, in characters.
const maxShown = 100

type comparison struct{ differences []string }

func (c *comparison) add(format string, args ...any) {
	c.differences = append(c.differences, fmt.Sprintf(format, args...))
}

// value compares what n expects at path with what is there.
func (c *comparison) value(path string, n *yaml.Node, have any) {
	object, isObject := have.(map[string]any)
	list, isList := have.([]any)
	switch {
	case n.Kind == yaml.MappingNode && isObject:
		c.object(path, n, object)
	case n.Kind == yaml.SequenceNode && isList:
		c.list(path, n, list)
	case n.Kind != yaml.ScalarNode || !isSame(n, have):
		c.add("%s is %s, not %s", called(path), show(have), showExpected(n))
	}
}

func (c *comparison) object(path string, n *yaml.Node, have map[string]any) {
	expected := map[string]bool{}
	for i := 0; i < len(n.Content); i += 2 {
		key, child := n.Content[i].Value, n.Content[i+1]
		expected[key] = true
		if value, found := have[key]; found {
			c.value(below(path, key), child, value)
		} else {
			c.add("%s is missing: it should be %s", called(below(path, key)), showExpected(child))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(have)) {
		if !expected[key] && !(path == "content" && have[key] == "") {
			c.add("%s is %s, which the test does not expect", called(below(path, key)), show(have[key]))
		}
	}
}

func (c *comparison) list(path string, n *yaml.Node, have []any) {
	for i, child := range n.Content {
		if i < len(have) {
			c.value(element(path, i), child, have[i])
		} else {
			c.add("%s is missing: it should be %s", element(path, i), showExpected(child))
		}
	}
	for i := len(n.Content); i < len(have); i++ {
		c.add("%s is %s, which the test does not expect", element(path, i), show(have[i]))
	}
}

// isSame reports whether the scalar at n stands for what is there.
func isSame(n *yaml.Node, have any) bool {
	switch have := have.(type) {
	case string:
		return n.Value == have
	case json.Number:
		return isPlain(n) && sameNumber(n.Value, have.String())
	case bool:
		return isPlain(n) && n.Value == strconv.FormatBool(have)
	case nil:
		return isPlain(n) && n.Value == "null"
	}
	return false
}

// sameNumber reports whether two literals are JSON numbers of exactly the same
// value, however they are written.
func sameNumber(a, b string) bool {
	if a == b {
		return true
	}
	digitsA, exponentA, okA := decimal(a)
	digitsB, exponentB, okB := decimal(b)
	return okA && okB && digitsA == digitsB && exponentA == exponentB
}

// decimal takes a JSON number apart: its value is digits, which neither begin nor
// end with a zero, times ten to the power of exponent. To work the value out would
// let 1e999999999 fill the memory.
func decimal(s string) (digits string, exponent int, ok bool) {
	if s == "" || s[0] != '-' && !isDigit(s[0]) || !json.Valid([]byte(s)) {
		return "", 0, false
	}
	sign := ""
	if s[0] == '-' {
		sign, s = "-", s[1:]
	}
	mantissa, power, scaled := strings.Cut(strings.ToLower(s), "e")
	if scaled {
		var err error
		if exponent, err = strconv.Atoi(power); err != nil {
			return "", 0, false
		}
	}
	whole, part, _ := strings.Cut(mantissa, ".")
	digits = strings.TrimRight(whole+part, "0")
	exponent += len(whole) - len(digits)
	if digits = strings.TrimLeft(digits, "0"); digits == "" {
		return "0", 0, true
	}
	return sign + digits, exponent, true
}

// called is how a sentence calls a place in the request.
func called(path string) string {
	if path == "" {
		return "the request"
	}
	return path
}

// below is the path of a key; its name is quoted when it would not show as it is.
func below(path, key string) string {
	if key == "" || strings.ContainsFunc(key, func(r rune) bool { return !unicode.IsPrint(r) }) || utf8.RuneCountInString(key) > maxShown {
		key = cutQuoted(key)
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

func element(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i+1) }

// show is a JSON value for a sentence.
func show(have any) string {
	switch have := have.(type) {
	case nil:
		return "null"
	case string:
		return cutQuoted(have)
	case json.Number:
		return cut(have.String())
	case map[string]any:
		return "an object"
	case []any:
		return "a list"
	}
	return fmt.Sprint(have)
}

// showExpected is the value at n for a sentence: without quotes when it can stand
// for more than a text.
func showExpected(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "an object"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case isPlain(n) && json.Valid([]byte(n.Value)):
		return cut(n.Value)
	}
	return cutQuoted(n.Value)
}

func cutQuoted(s string) string { return strconv.Quote(cut(s)) }

func cut(s string) string {
	if utf8.RuneCountInString(s) > maxShown {
		return string([]rune(s)[:maxShown]) + "…"
	}
	return s
}
