package mapping

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v4"

	"leadferry/internal/spelling"
	"leadferry/mapping/texts"
)

const (
	version = "1" // of the mapping language

	maxErrors = 100 // in a file: more mean that it is the wrong file

	emptyHint = `leave the key out where there is nothing, or write "" for an empty text`
	quoteHint = `a text that begins with a placeholder needs quotes: "{column}"`

	columnHint = `write "{column}" for what a column holds`
)

// Parse checks a mapping file, whose content is data. name is the file's name in errors; read reads the tables beside
// it (nil: there is no folder to look in). The error is Errors: all mistakes at once, at most 100, or only those that
// keep the file from being read as plain YAML.
func Parse(name string, data []byte, read ReadTable) (*Mapping, error) {
	m := &Mapping{name: name, Conflicts: ConflictRules{Status: map[string]Rule{}, Content: map[string]Rule{}}}
	p := &parser{file: name, m: m, read: read, named: map[string]*table{}}
	if doc, ok := p.document(data); ok {
		p.mappingFile(doc)
		p.secrets(doc.Node, false)
		p.marks()
	}
	return m, p.errs[:min(len(p.errs), maxErrors)].orNil(name)
}

type parser struct {
	file  string
	lines [][]byte // of the file
	m     *Mapping
	errs  Errors

	read  ReadTable // nil: there are no files
	named map[string]*table
}

// position is a place in the mapping file.
type position struct{ line, column int }

// node is a part of the mapping file and its name in sentences, such as lead.status.map or "" for the file itself. It
// is a scalar, a list, or an object whose keys are texts.
type node struct {
	*yaml.Node
	path string
}

func (n node) at() position { return position{n.Line, n.Column} }

// child returns the key of this name in the object n and its value, if there is one.
func (n node) child(name string) (key, value node, found bool) {
	for i := 0; n.Kind == yaml.MappingNode && i < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			path := below(n.path, name)
			return node{n.Content[i], path}, node{n.Content[i+1], path}, true
		}
	}
	return node{}, node{}, false
}

func (n node) has(name string) bool {
	_, _, found := n.child(name)
	return found
}

// isUnquoted reports whether n is what YAML reads from a bare {column}.
func (n node) isUnquoted() bool {
	return n.Kind == yaml.MappingNode && n.Style&yaml.FlowStyle != 0 && len(n.Content) == 2 &&
		n.Content[1].Kind == yaml.ScalarNode && n.Content[1].ShortTag() == "!!null" && n.Content[1].Value == ""
}

// isNull reports whether n is the word null or ~: people use it for "nothing".
func (n node) isNull() bool {
	return n.Kind == yaml.ScalarNode && n.Value != "" && n.ShortTag() == "!!null"
}

func (n node) isPlain() bool {
	const marked = yaml.SingleQuotedStyle | yaml.DoubleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle
	return n.Kind == yaml.ScalarNode && n.Style&marked == 0
}

// below is the path of a key. The key is quoted if it holds characters that cannot be printed.
func below(path, key string) string {
	if strings.ContainsFunc(key, func(r rune) bool { return !unicode.IsPrint(r) }) {
		key = strconv.Quote(key)
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

func element(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i+1) }

func (p *parser) fail(n node, hint, format string, args ...any) {
	p.failIn(p.file, n.at(), hint, format, args...)
}

func (p *parser) failIn(file string, where position, hint, format string, args ...any) {
	p.errs = append(p.errs, Error{file, where.line, where.column, fmt.Sprintf(format, args...), hint})
}

// member is a key that an object may have, and the function that reads its value.
type member struct {
	name string
	read func(n node)
}

// object reads the object n, which may have only these members.
func (p *parser) object(n node, members ...member) {
	var names []string
	for _, m := range members {
		names = append(names, m.name)
	}
	p.each(n, func(key, value node) {
		what := "key " + texts.Quote(key.Value)
		if n.path != "" {
			what += " in " + n.path
		}
		if i := slices.Index(names, key.Value); i >= 0 {
			members[i].read(value)
			return
		}
		fault := texts.Unknown(what, key.Value, names)
		p.fail(key, fault.Hint, "%s", fault.Text)
	})
}

// needs refuses the object n if it lacks one of these keys.
func (p *parser) needs(n node, example string, names ...string) {
	for _, name := range names {
		if n.Kind == yaml.MappingNode && !n.has(name) {
			p.fail(n, example, "%s lacks %s", cmp.Or(n.path, "the mapping file"), name)
		}
	}
}

// each calls f for the keys of the object n.
func (p *parser) each(n node, f func(key, value node)) {
	if n.Kind != yaml.MappingNode {
		p.fail(n, "write name: value, with a blank after the colon and no dash before it",
			"%s must hold keys and values", cmp.Or(n.path, "the mapping file"))
		return
	}
	first := map[string]int{} // line
	for i := 0; i < len(n.Content); i += 2 {
		path := below(n.path, n.Content[i].Value)
		key, value := node{n.Content[i], path}, node{n.Content[i+1], path}
		if blank(key.Value) {
			p.fail(key, "", "%s has a key without a name", cmp.Or(n.path, "the mapping file"))
			continue
		}
		if line, again := first[key.Value]; again {
			p.fail(key, "", "key %s is there twice, first on line %d", texts.Quote(key.Value), line)
		} else {
			first[key.Value] = key.Line
		}
		f(key, value)
	}
}

// list returns a reader that calls f for each element of a list.
func (p *parser) list(f func(n node)) func(node) {
	return func(n node) {
		switch {
		case n.Kind != yaml.SequenceNode:
			p.fail(n, "begin each line with a dash, or write [a, b]", "%s must be a list", n.path)
			return
		case len(n.Content) == 0:
			p.fail(n, "write what belongs into it, as [a, b], or leave the key out", "%s is an empty list", n.path)
		}
		for i, child := range n.Content {
			f(node{child, element(n.path, i)})
		}
	}
}

// scalar returns the text n as written. A missing value and null are errors: they may mean "" or nothing.
func (p *parser) scalar(n node) (string, bool) {
	if n.isNull() {
		p.fail(n, emptyHint+`, or "`+n.Value+`" in quotes for the word itself`, "%s is %s, which is no text",
			n.path, n.Value)
		return "", false
	}
	return p.scalarOrNull(n)
}

// scalarOrNull is scalar, except that null is a word like any other.
func (p *parser) scalarOrNull(n node) (string, bool) {
	switch {
	case n.isUnquoted():
		p.fail(n, quoteHint, "%s is read as an object, not as a text", n.path)
	case n.Kind != yaml.ScalarNode:
		p.fail(n, `write one text, which may hold several columns: "{first} {last}"; a JSON list is {list: […]}`,
			"%s must be a text", n.path)
	case n.Value == "" && n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) == 0:
		p.fail(n, emptyHint, "%s has no value", n.path)
	default:
		return n.Value, true
	}
	return "", false
}

// set returns a reader for keys that hold a word. It stores the word in place, and leaves place alone after an error.
func set[T any](p *parser, place *T, read func(word string) (T, *texts.Fault)) func(node) {
	return func(n node) {
		word, ok := p.scalar(n)
		if !ok {
			return
		}
		v, fault := read(word)
		if fault != nil {
			p.fail(n, fault.Hint, "%s: %s", n.path, fault.Text)
			return
		}
		*place = v
	}
}

func anyText(word string) (string, *texts.Fault) { return word, nil }

func notBlank(word string) (string, *texts.Fault) {
	if blank(word) {
		return "", texts.NewFault("it is a blank name", "leave it out where there is none")
	}
	return word, nil
}

func columnName(word string) (string, *texts.Fault) { return notBlank(strings.TrimSpace(word)) }

// lastOf accepts one of these words, and returns whether it is the last one.
func lastOf(words ...string) func(string) (bool, *texts.Fault) {
	return func(word string) (bool, *texts.Fault) {
		_, fault := oneOf(words...)(word)
		return word == words[len(words)-1], fault
	}
}

func oneOf(words ...string) func(string) (string, *texts.Fault) {
	return func(word string) (string, *texts.Fault) {
		if !slices.Contains(words, word) {
			return "", texts.Unknown("word "+texts.Quote(word), word, words)
		}
		return word, nil
	}
}

// Error is one mistake in a mapping file or in a table beside it. Text says what is wrong, Hint, if not empty, what to
// do. Line and Column count from 1, columns in characters; 0 is none.
type Error struct {
	File         string
	Line, Column int
	Text, Hint   string
}

// Error returns file, line, column and text, and the hint on a line of its own.
func (e Error) Error() string {
	return spelling.Sentence(e.File, e.Line, e.Column, e.Text, e.Hint)
}

// Errors are the mistakes of a mapping file and its tables, in the order of the files.
type Errors []Error

// Error joins the errors, one below the other.
func (es Errors) Error() string {
	var lines []string
	for _, e := range es {
		lines = append(lines, e.Error())
	}
	return strings.Join(lines, "\n")
}

// orNil returns es sorted by place, the mapping file before its tables. It returns nil if there are no errors.
func (es Errors) orNil(mapping string) error {
	if len(es) == 0 {
		return nil
	}
	table := func(e Error) string { return strings.TrimPrefix(e.File, mapping) }
	slices.SortStableFunc(es, func(a, b Error) int {
		return cmp.Or(cmp.Compare(table(a), table(b)), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return es
}
