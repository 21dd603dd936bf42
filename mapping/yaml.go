package mapping

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
	"go.yaml.in/yaml/v4/plugin/loaderlimits"

	"leadferry/internal/spelling"
	"leadferry/mapping/texts"
)

const (
	maxBytes = 1 << 20 // of a mapping file
	maxDepth = 64      // of objects and lists in one another
)

// document reads the one document of data as nodes: decoding would turn 01234
// into a number. It is false after an error.
func (p *parser) document(data []byte) (doc node, ok bool) {
	begin := position{1, 1}
	data = bytes.TrimLeft(data, "\uFEFF") // byte order marks, which some programs add
	switch bad := firstUnreadable(data); {
	case len(data) > maxBytes:
		p.failAt(begin, "", "the mapping file is longer than 1 MiB")
		return node{}, false
	case bad >= 0:
		p.failAt(positionOf(data, bad), "save the file as UTF-8 (the > of Windows PowerShell writes UTF-16)",
			"the mapping file is not text in UTF-8")
		return node{}, false
	}
	p.lines = bytes.Split(data, []byte("\n"))
	switch docs, err := load(data); {
	case err != nil:
		p.syntax(err)
	case len(docs) == 0:
		p.failAt(begin, "begin with version: 1", "the mapping file is empty")
	case len(docs) > 1:
		p.fail(node{Node: docs[1]}, "keep one document a file", "a second document begins here")
	default:
		p.plain(docs[0])
		return node{Node: docs[0]}, len(p.errs) == 0
	}
	return node{}, false
}

// load reads the first two documents of data: the second is read to be refused.
func load(data []byte) ([]*yaml.Node, error) {
	limit := yaml.WithPlugin(loaderlimits.New(loaderlimits.DepthValue(maxDepth)))
	loader, err := yaml.NewLoader(bytes.NewReader(data), limit)
	if err != nil {
		return nil, err
	}
	var docs []*yaml.Node
	for len(docs) < 2 {
		var doc yaml.Node
		if err := loader.Load(&doc); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		docs = append(docs, doc.Content[0])
	}
	return docs, nil
}

// placeholder finds a text that YAML takes for an object.
var placeholder = spelling.Form(`[:,\[] *\{[^{}:,'"]*\}`)

// syntax takes down the error of the YAML reader, and where it is: where the quote opens that is not closed, else at
// its mark.
func (p *parser) syntax(err error) {
	le, known := errors.AsType[*yaml.LoadError](err)
	if !known {
		p.failAt(position{1, 1}, "", "the mapping file is not YAML: %v", err)
		return
	}
	where := position{max(1, le.Mark.Line), max(1, le.Mark.Column)}
	text, hint := le.Message, "look at this line and the one above: put texts with signs into quotes, "+
		"a blank behind each colon, and spaces, no tabs, before lines"
	if le.ContextMsg != "" {
		text += " " + le.ContextMsg
	}
	switch begin := le.ContextMark; {
	case strings.Contains(le.ContextMsg, "quoted scalar"):
		where = position{max(1, begin.Line), max(1, begin.Column)}
		text = "a quote opens here that is not closed, or it holds a backslash that means nothing"
		hint = "close the quote; in 'single quotes' a backslash is itself"
	case placeholder().MatchString(p.line(where.line)):
		hint = quoteHint
	case begin.Line > 0 && begin.Line != le.Mark.Line:
		text += " that begins on line " + strconv.Itoa(begin.Line)
	}
	p.failAt(where, hint, "the mapping file is not YAML: %s", text)
}

func firstUnreadable(data []byte) int {
	for i, r := range string(data) {
		bad := unicode.IsControl(r) && r != '\t' && r != '\n' && r != '\r' && r != 0x85
		if bad || r == utf8.RuneError && !bytes.HasPrefix(data[i:], []byte("\uFFFD")) {
			return i
		}
	}
	return -1
}

func positionOf(data []byte, i int) position {
	before := data[:i]
	start := bytes.LastIndexByte(before, '\n') + 1
	return position{1 + bytes.Count(before, []byte("\n")), 1 + utf8.RuneCount(before[start:])}
}

// line is a line of the file, counted from 1; "" where it has none.
func (p *parser) line(n int) string {
	if n < 1 || n > len(p.lines) {
		return ""
	}
	return string(p.lines[n-1])
}

// plain takes down what YAML offers and a mapping file must not use, in n and
// below: a reader would have to know YAML well to see what is meant.
func (p *parser) plain(n *yaml.Node) {
	switch {
	case n.Kind == yaml.AliasNode:
		p.fail(node{Node: n}, "write the value out", "aliases are not allowed")
	case n.Anchor != "":
		p.fail(node{Node: n}, "write the value out where it is used", "anchors are not allowed")
	case n.Style&yaml.TaggedStyle != 0:
		p.fail(node{Node: n}, "leave the tag out: every constant is text", "tags are not allowed")
	}
	for i, child := range n.Content {
		switch isKey := n.Kind == yaml.MappingNode && i%2 == 0; {
		case isKey && child.Kind != yaml.ScalarNode && child.Kind != yaml.AliasNode:
			p.fail(node{Node: child}, quoteHint, "a key must be a text")
		case isKey && child.ShortTag() == "!!merge":
			p.fail(node{Node: child}, "write the keys out", "merge keys are not allowed")
		}
		p.plain(child)
	}
}

// Guess is a guess of leadferry init that nobody has confirmed, by its place in the mapping
// file: Of is what the file says there, "" of all that follows, and Why what the guess rests on.
type Guess struct {
	Line, Column int
	Of, Why      string
}

// Unconfirmed are the lines of the mapping file whose comment begins with a question mark,
// "# ?", at most 100 of them. Anyone who finds a guess right takes the mark away.
func (m *Mapping) Unconfirmed() []Guess { return m.unconfirmed }

const mostOfGuess = 60 // characters of a line that are told with its mark

// marked finds the mark at the end of a line, or the line that is all mark.
var marked = spelling.Form(`^(.*?)\s*(?:^|[ \t])# \? (.*)$`)

// marks takes down the guesses that are marked.
func (p *parser) marks() {
	for i := range p.lines {
		found := marked().FindStringSubmatch(p.line(i + 1))
		if found == nil || len(p.m.unconfirmed) >= maxErrors {
			continue
		}
		of, why := texts.Shortened(strings.TrimSpace(found[1]), mostOfGuess), strings.TrimSpace(found[2])
		p.m.unconfirmed = append(p.m.unconfirmed, Guess{i + 1, utf8.RuneCountInString(found[1]) + 1, of, why})
	}
}
