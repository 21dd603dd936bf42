package mapping

import (
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/htmlindex"
)

func (p *parser) source(path string, n *yaml.Node) {
	s := &p.m.Source
	p.object(path, n,
		member{"format", func(path string, n *yaml.Node) {
			s.Format = p.oneOf(path, "source format", n, "csv", "tsv", "jsonl", "xlsx")
		}},
		member{"delimiter", func(path string, n *yaml.Node) { s.Delimiter = p.delimiter(path, n) }},
		member{"quote", func(path string, n *yaml.Node) {
			s.NoQuotes = p.oneOf(path, "way with quotes", n, "none") != ""
		}},
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
		member{"sheet", func(path string, n *yaml.Node) { s.Sheet = p.sheet(path, n) }},
	)
	wrong := func(is bool, hint, format string, args ...any) {
		if is {
			p.fail(n, hint, format, args...)
		}
	}
	wrong(s.Format == "jsonl" && (s.Delimiter != 0 || s.NoQuotes || s.NoHeader), "", "jsonl has neither delimiter nor quote nor header line")
	wrong(s.Format == "xlsx" && (s.Delimiter != 0 || s.NoQuotes || s.Encoding != ""), "", "xlsx has neither delimiter nor quote nor encoding")
	wrong(s.Format != "jsonl" && s.NoHeader && !has(n, "columns"), "add columns: [first, second]", "%s.header is false, so the columns need names", path)
	wrong(has(n, "columns") && !has(n, "header"), "add header: false", "%s.columns names the columns of a file without header line", path)
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

// encoding is the name of the encoding that the label at n stands for (WHATWG
// Encoding, "Names and labels").
func (p *parser) encoding(path string, n *yaml.Node) string {
	label, ok := p.scalar(path, n)
	if !ok {
		return ""
	}
	if found, err := htmlindex.Get(label); err == nil && found != encoding.Replacement {
		if name, err := htmlindex.Name(found); err == nil {
			return name
		}
	}
	hint := didYouMean(label, labels[:])
	if hint == "" {
		hint = "for example utf-8, windows-1252, iso-8859-2, utf-16le or shift_jis"
	}
	p.fail(n, hint, "%s %s is not an encoding", path, quote(label))
	return ""
}

// labels are those of the encodings' labels that people write.
var labels = [...]string{
	"utf-8", "utf-16le", "utf-16be", "windows-1250", "windows-1251", "windows-1252", "windows-1253", "windows-1254",
	"windows-1255", "windows-1256", "windows-1257", "windows-1258", "windows-874", "cp1250", "cp1251", "cp1252",
	"iso-8859-1", "iso-8859-2", "iso-8859-5", "iso-8859-7", "iso-8859-9", "iso-8859-15", "latin1", "latin2", "ascii",
	"macintosh", "ibm866", "koi8-r", "koi8-u", "shift_jis", "euc-jp", "iso-2022-jp", "gbk", "gb2312", "gb18030", "big5", "euc-kr",
}

// sheet is the name of a workbook's sheet, which may have white space at its ends.
func (p *parser) sheet(path string, n *yaml.Node) string {
	name, ok := p.scalar(path, n)
	if ok && blank(name) {
		p.fail(n, "leave the key out for the first sheet", "%s is a blank name", path)
	}
	return name
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

// child is the value of such a key in the object at n, or nil.
func child(n *yaml.Node, name string) *yaml.Node {
	for i := 0; i < len(n.Content); i += 2 {
		if n.Kind == yaml.MappingNode && n.Content[i].Value == name {
			return n.Content[i+1]
		}
	}
	return nil
}
