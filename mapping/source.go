package mapping

import (
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

func (p *parser) source(path string, n *yaml.Node) {
	s := &p.m.Source
	p.object(path, "source", n,
		member{"format", func(path string, n *yaml.Node) {
			s.Format = p.oneOf(path, "source format", n, "csv", "tsv", "jsonl")
		}},
		member{"delimiter", func(path string, n *yaml.Node) { s.Delimiter = p.delimiter(path, n) }},
		member{"encoding", func(path string, n *yaml.Node) { s.Encoding = p.encoding(path, n) }},
		member{"header", func(path string, n *yaml.Node) {
			yes, ok := p.boolean(path, n)
			s.NoHeader = ok && !yes
		}},
		member{"columns", func(path string, n *yaml.Node) { s.Columns = p.columns(path, n) }},
		member{"null", func(path string, n *yaml.Node) {
			p.list(path, n, func(path string, n *yaml.Node) {
				if word, ok := p.scalar(path, n); ok {
					s.Null = append(s.Null, strings.TrimSpace(word))
				}
			})
		}},
	)
	switch {
	case s.Format == "jsonl" && (s.Delimiter != 0 || s.NoHeader):
		p.fail(n, "", "jsonl has neither delimiter nor header line")
	case s.NoHeader && !has(n, "columns"):
		p.fail(n, "add columns: [first, second]", "%s.header is false, so the columns need names", path)
	case has(n, "columns") && !has(n, "header"):
		p.fail(n, "add header: false", "%s.columns names the columns of a file without header line", path)
	}
}

// has reports whether the object at n has such a key.
func has(n *yaml.Node, name string) bool {
	for i := 0; i < len(n.Content); i += 2 {
		if n.Kind == yaml.MappingNode && n.Content[i].Value == name {
			return true
		}
	}
	return false
}

func (p *parser) delimiter(path string, n *yaml.Node) rune {
	s, ok := p.scalar(path, n)
	if !ok {
		return 0
	}
	if s == "tab" {
		return '\t'
	}
	if r, size := utf8.DecodeRuneInString(s); size == len(s) && !strings.ContainsRune("\"\r\n\uFFFD\uFEFF", r) {
		return r
	}
	p.fail(n, `for example ";" or tab`, "%s must be one character, and no quote or line break", path)
	return 0
}

func (p *parser) encoding(path string, n *yaml.Node) string {
	s, ok := p.scalar(path, n)
	if ok && !strings.EqualFold(s, "utf-8") && !strings.EqualFold(s, "utf8") {
		p.fail(n, "save the input as UTF-8", "%s %s is not supported yet", path, quote(s))
	}
	return "utf-8"
}

func (p *parser) columns(path string, n *yaml.Node) []string {
	var names []string
	p.list(path, n, func(path string, n *yaml.Node) {
		s, ok := p.scalar(path, n)
		name := strings.TrimSpace(s)
		switch {
		case !ok:
		case name == "":
			p.fail(n, "", "%s is a blank name", path)
		case slices.Contains(names, name):
			p.fail(n, "", "the column %s stands twice", quote(name))
		default:
			names = append(names, name)
		}
	})
	return names
}
