package mapping

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v4"

	"leadferry/mapping/texts"
)

// Test is an entry of the section tests: a row, and the create request expected for it (specification, "Lead creation
// request body"). It does not change and may be shared.
type Test struct {
	Line int // of the mapping file, from 1

	// Names are the row's columns in the order written, Cells their contents. A dotted name is a path into a JSONL row.
	Names, Cells []string

	request node // an object of scalars, objects and lists
}

func (p *parser) test(n node) {
	t := Test{Line: n.Line}
	p.object(n,
		member{"row", func(n node) { p.testRow(&t, n) }},
		member{"request", func(n node) {
			t.request = n
			p.testRequest(n)
		}},
	)
	p.needs(n, "a test is {row: {column: cell}, request: {organizationID: …, content: {…}}}", "row", "request")
	p.m.Tests = append(p.m.Tests, t)
}

// testRow reads the cells of a test. An empty cell may be left blank or written null, as in JSON. NULL and Null are
// texts: exports write them, and source.null can name them.
func (p *parser) testRow(t *Test, n node) {
	p.each(n, func(key, child node) {
		name, cell := strings.TrimSpace(key.Value), ""
		switch {
		case child.Kind == yaml.MappingNode && !child.isUnquoted(), child.Kind == yaml.SequenceNode:
			p.fail(child, "name the path with dots: "+texts.Quote(name+".…"), "%s must be a text", child.path)
		case !child.isPlain() || child.Value != "" && child.Value != "~" && child.Value != "null":
			cell, _ = p.scalarOrNull(child)
		}
		t.Names, t.Cells = append(t.Names, name), append(t.Cells, cell)
	})
}

// testRequest checks the names in an expected request, and that it holds only values that can be compared.
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
		member{"content", func(n node) { p.each(n, func(_, _ node) {}) }},
	)
}

// Run maps the row of a test and compares the resulting request, as JSON, with the expected one. It ignores fields that
// hold a file's name, a line or a run. It returns the differences, nil if there are none.
func (t *Test) Run(m *Mapping, request func(*Record) []byte) []string {
	b, err := m.Bind("the test", Columns{Names: t.Names, Own: len(t.Names), Open: true})
	if err != nil {
		return []string{err.Error()}
	}
	var rec Record
	if ps := b.Map(t.Cells, Env{}, &rec); ps != nil {
		return []string{"the row is invalid: " + Sentence(ps)}
	}
	if rec.Skip {
		return []string{"the row is left out by skip_if"}
	}
	rec.Content = slices.DeleteFunc(rec.Content, func(f Field) bool { return f.Volatile })
	return t.Compare(request(&rec))
}

// Compare returns the differences between the expected request and the create request in JSON, as sentences in the
// order of the mapping file; nil if there are none. A text in the JSON must equal the text in the file. A number, true,
// false or null must be written without quotes in the file, a number with the same digits. Content that is sent empty
// (empty: clear) may be missing from the expected request: most tests do not name its column. The sentences show
// values: the row of a test belongs to the mapping and is no lead.
func (t *Test) Compare(request []byte) (differences []string) {
	var doc yaml.Node // JSON is also YAML
	if !jsontext.Value(request).IsValid() || yaml.Load(request, &doc) != nil {
		return []string{"the request is not JSON"}
	}
	if t.request.Node == nil {
		return nil
	}
	have := map[string]node{} // parts of the request not compared yet, by path: scalars, empty objects and lists
	node{Node: doc.Content[0]}.leaves("", func(path string, n node) { have[path] = n })
	tell := func(path, format string, args ...any) {
		differences = append(differences, cmp.Or(path, "the request")+" "+fmt.Sprintf(format, args...))
	}
	t.request.leaves("", func(path string, n node) {
		got, found := have[path]
		delete(have, path)
		switch {
		case path == "" && !found && n.Kind == yaml.MappingNode: // {} is expected: the request has only surplus
		case !found:
			tell(path, "is missing: it should be %s", n.literal())
		case n.Kind != got.Kind, n.Value != got.Value, !n.isPlain() && got.isPlain(): // a plain number may match a text
			tell(path, "is %s, not %s", got.literal(), n.literal())
		}
	})
	delete(have, "content") // a request without content has an empty object there
	for _, path := range slices.Sorted(maps.Keys(have)) {
		if got := have[path].literal(); got != `""` || !strings.HasPrefix(path, "content.") {
			tell(path, "is %s, which the test does not expect", got)
		}
	}
	return differences
}

// leaves calls f with each scalar, empty object and empty list in n, and its path, in the order of the file.
func (n node) leaves(path string, f func(path string, n node)) {
	for i, child := range n.Content {
		if n.Kind == yaml.SequenceNode {
			node{Node: child}.leaves(element(path, i), f)
		} else if i%2 == 1 {
			node{Node: child}.leaves(below(path, n.Content[i-1].Value), f)
		}
	}
	if len(n.Content) == 0 {
		f(path, n)
	}
}

// literal returns the JSON value of a scalar, or of an empty object or list. Quotes, or no JSON value, make it a text.
func (n node) literal() string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "{}"
	case n.Kind == yaml.SequenceNode:
		return "[]"
	case n.isPlain() && jsontext.Value(n.Value).IsValid():
		return texts.Shortened(n.Value, maxShown)
	}
	return strconv.Quote(texts.Shortened(n.Value, maxShown))
}

// maxShown is how many characters of a value an error or a difference shows.
const maxShown = 100
