package mapping

import (
	"bytes"
	"errors"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
	"go.yaml.in/yaml/v4/plugin/loaderlimits"

	"leadferry/internal/spelling"
)

// MaxBytes is the most bytes of a mapping file.
const MaxBytes = 1 << 20

const maxDepth = 64 // of nested objects and lists

// document reads data as one YAML document. It keeps nodes: decoded, 01234 would be a number. ok is false on errors.
func (p *parser) document(data []byte) (doc node, ok bool) {
	begin := position{1, 1}
	data = bytes.TrimLeft(data, "\uFEFF") // byte order marks, which some programs add
	if len(data) > MaxBytes {
		p.failIn(p.file, begin, "", "the mapping file is longer than 1 MiB")
		return node{}, false
	}
	if i := firstNonText(data); i >= 0 {
		line := data[bytes.LastIndexByte(data[:i], '\n')+1 : i]
		at := position{bytes.Count(data[:i], []byte("\n")) + 1, utf8.RuneCount(line) + 1}
		p.failIn(p.file, at, "save the file as UTF-8 (the > of Windows PowerShell writes UTF-16)",
			"the mapping file is not text in UTF-8")
		return node{}, false
	}
	p.lines = bytes.Split(data, []byte("\n"))
	var docs []yaml.Node
	limit := yaml.WithPlugin(loaderlimits.New(loaderlimits.DepthValue(maxDepth)))
	switch err := yaml.Load(data, &docs, yaml.WithAllDocuments(), limit); {
	case err != nil:
		p.syntax(err)
	case len(docs) == 0:
		p.failIn(p.file, begin, "begin with version: 1", "the mapping file is empty")
	case len(docs) > 1:
		p.fail(node{Node: docs[1].Content[0]}, "keep one document a file", "a second document begins here")
	default:
		doc = node{Node: docs[0].Content[0]}
		p.plain(doc.Node)
		return doc, len(p.errs) == 0
	}
	return node{}, false
}

// placeholder finds a text that YAML would read as an object.
var placeholder = spelling.Form(`[:,\[] *\{[^{}:,'"]*\}`)

// syntax notes an error of the YAML reader and its place: the opening of an unclosed quote, else the reader's mark.
func (p *parser) syntax(err error) {
	le, known := errors.AsType[*yaml.LoadError](err)
	if !known {
		p.failIn(p.file, position{1, 1}, "", "the mapping file is not YAML: %v", err)
		return
	}
	mark, begin := le.Mark, le.ContextMark
	text, hint := le.Message, "look at this line and the one above: put texts with signs into quotes, "+
		"a blank after each colon, and spaces, no tabs, before lines"
	if le.ContextMsg != "" {
		text += " " + le.ContextMsg
	}
	switch {
	case strings.Contains(le.ContextMsg, "quoted scalar"):
		mark = begin
		text = "a quote opens here that is not closed, or it holds a backslash that means nothing"
		hint = "close the quote; in 'single quotes' a backslash is itself"
	case 0 < mark.Line && mark.Line <= len(p.lines) && placeholder().Match(p.lines[mark.Line-1]):
		hint = quoteHint
	case begin.Line > 0 && begin.Line != mark.Line:
		text += " that begins on line " + strconv.Itoa(begin.Line)
	}
	where := position{max(1, mark.Line), max(1, mark.Column)}
	p.failIn(p.file, where, hint, "the mapping file is not YAML: %s", text)
}

// firstNonText returns the index of the first byte that is not UTF-8 text, or -1.
func firstNonText(data []byte) int {
	for i, r := range string(data) {
		isControl := unicode.IsControl(r) && !strings.ContainsRune("\t\n\r\u0085", r)
		if isControl || r == utf8.RuneError && !bytes.HasPrefix(data[i:], []byte("\uFFFD")) {
			return i
		}
	}
	return -1
}

// plain refuses features of YAML that few readers know, in n and below.
func (p *parser) plain(n *yaml.Node) {
	if n.Kind == yaml.AliasNode || n.Anchor != "" || n.Style&yaml.TaggedStyle != 0 || n.ShortTag() == "!!merge" {
		p.fail(node{Node: n}, "write the value out where it is used",
			"anchors, aliases, merge keys and tags are not allowed")
	}
	for i, child := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 && child.Kind != yaml.ScalarNode && child.Kind != yaml.AliasNode {
			p.fail(node{Node: child}, quoteHint, "a key must be a text")
		}
		p.plain(child)
	}
}

// marks notes the guesses of init: comments that begin with a question mark, on a line of their own or at its end.
func (p *parser) marks() {
	for i, line := range p.lines {
		if _, why, found := strings.Cut(string(line), "# ? "); found && len(p.m.Unconfirmed) < maxErrors {
			p.m.Unconfirmed = append(p.m.Unconfirmed, Error{File: p.file, Line: i + 1, Text: strings.TrimSpace(why)})
		}
	}
}
