package mapping

import (
	"cmp"
	"errors"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"leadferry/internal/spelling"
	"leadferry/mapping/texts"
)

// table says what texts become. It may be shared.
type table struct {
	words map[string]string
	order []string // the words as they are written
	folds bool     // case and blanks of the words do not matter
}

// find is what a text becomes that is trimmed and not empty.
func (t *table) find(s string) (to string, found bool) {
	if !t.folds {
		to, found = t.words[s]
		return to, found
	}
	var room [128]byte
	to, found = t.words[string(appendFolded(room[:0], s))]
	return to, found
}

// appendFolded adds a text without its blanks and in one case. Texts that look alike in
// other forms of Unicode are one.
func appendFolded(b []byte, s string) []byte {
	begin := len(b)
	for i := range len(s) {
		switch c := s[i]; {
		case c >= utf8.RuneSelf:
			whole := strings.Map(visible, norm.NFKC.String(s))
			return append(b[:begin], norm.NFKC.String(cases.Fold().String(whole))...)
		case 'A' <= c && c <= 'Z':
			b = append(b, c|0x20)
		case c > ' ' && c != 0x7F:
			b = append(b, c)
		}
	}
	return b
}

// visible leaves out what nobody sees.
func visible(r rune) rune {
	if unicode.IsSpace(r) || unicode.IsControl(r) || unicode.Is(unicode.Cf, r) {
		return -1
	}
	return r
}

// TableRow is a row of a table's file: what its key and its value hold.
type TableRow struct {
	Line       int
	Key, Value string
}

// ReadTable calls add for each row of the file of this name, which stands beside the
// mapping file, with the cells of two of its columns. Its error is Errors, which may be
// about single rows.
type ReadTable func(name, key, value string, add func(TableRow)) error

// namedTables reads the section tables.
func (p *parser) namedTables(n node) {
	p.each(n, func(key, child node) {
		var t *namedTable
		switch {
		case blank(key.Value):
			p.fail(key, "", "%s has a table without a name", n.path)
			return
		case child.Kind != yaml.MappingNode:
			p.fail(child, "{file: dealers.csv, key: Name, value: Organization ID}, or the words themselves: {Working: inProgress}", "%s must hold keys and values", child.path)
			t = &namedTable{table: &table{}}
		case child.has("file"):
			t = p.tableFile(child)
		default:
			t = new(namedTable)
			t.table, t.constants = p.words(child)
		}
		t.at = key.at()
		p.named[key.Value] = t
	})
}

// namedTable is a table and what its words become, for where that must be more than a text.
type namedTable struct {
	*table
	constants []constant
	at        position
	used      bool // by a value
}

// idleTables warns of tables that no value uses: a name may be misspelt, or map: left out.
func (p *parser) idleTables() {
	names := slices.SortedFunc(maps.Keys(p.named), func(a, b string) int {
		return cmp.Or(cmp.Compare(p.named[a].at.line, p.named[b].at.line), cmp.Compare(a, b))
	})
	for _, name := range names {
		if t := p.named[name]; !t.used && len(p.m.warnings) < maxErrors {
			p.m.warnings = append(p.m.warnings, Error{
				p.file, t.at.line, t.at.column, "no value uses the table " + texts.Quote(name), `name it where its words are looked up, as in {from: "{column}", map: …}, or take it out`,
			})
		}
	}
}

// words reads a table that stands in the mapping file.
func (p *parser) words(n node) (*table, []constant) {
	t, constants := &table{words: map[string]string{}}, []constant(nil)
	if n.Kind == yaml.MappingNode && n.has("file") && n.has("key") && n.has("value") {
		p.fail(n, "move it into the section tables: {dealers: {file: …}}, and write map: dealers", "%s is a table in a file of its own", n.path)
		return t, nil
	}
	p.each(n, func(key, child node) {
		from := lineBreak.Replace(strings.TrimSpace(key.Value)) // as cells are looked at
		switch {
		case from == "":
			p.fail(key, "use default", "%s is not asked for empty texts", n.path)
			return
		case (node{Node: key.Node}).isNull():
			p.fail(key, `use default for empty cells, or write "`+from+`" in quotes for the word itself`, "%s is not asked for empty texts", n.path)
			return
		}
		t.words[from] = p.fixed(child)
		t.order = append(t.order, from)
		constants = append(constants, p.constant(child, t.words[from]))
	})
	return t, constants
}

// namedTable is the table that the text n names, and what is in it.
func (p *parser) namedTable(n node) (*table, []constant) {
	name, ok := p.scalar(n)
	if !ok {
		return nil, nil
	}
	t := p.named[name]
	if t == nil {
		var names []string
		for name := range p.named {
			names = append(names, name)
		}
		slices.Sort(names)
		hint := spelling.Hint(name, names)
		switch {
		case hint == "" && len(names) > 0:
			hint = "known here: " + strings.Join(names, ", ")
		case path.Ext(name) != "":
			hint = "name the file in the section tables: {dealers: {file: " + texts.Quote(name) + ", key: Name, value: Organization ID}}, and write map: dealers"
		case hint == "":
			hint = `write the words out, as map: {"Working": inProgress}, or name a table of the section tables`
		}
		p.fail(n, hint, "%s: there is no table %s", n.path, texts.Quote(name))
		return nil, nil
	}
	t.used = true
	return t.table, t.constants
}

// tableFile reads a table that stands in a file of its own.
func (p *parser) tableFile(n node) *namedTable {
	t := &namedTable{table: &table{words: map[string]string{}}}
	var name, key, value string
	before := len(p.errs)
	p.object(n,
		member{"file", func(n node) { name = p.tableName(n) }},
		member{"key", func(n node) { key = strings.TrimSpace(p.name(n, "name the column of the words")) }},
		member{"value", func(n node) { value = strings.TrimSpace(p.name(n, "name the column of what they become")) }},
		member{"fold", func(n node) { t.folds, _ = p.boolean(n) }},
	)
	for _, needed := range [...]string{"key", "value"} {
		if !n.has(needed) && len(p.errs) == before {
			p.fail(n, "{file: dealers.csv, key: Name, value: Organization ID}", "%s needs %s, a column of its file", n.path, needed)
		}
	}
	if len(p.errs) > before {
		return t
	}
	p.m.tableFiles = append(p.m.tableFiles, name)
	if p.read == nil {
		p.fail(n, "write its words out", "%s: there is no folder in which to look for the file", n.path)
		return t
	}
	first := map[string]int{} // line
	err := p.read(name, key, value, func(row TableRow) { p.addWord(t, n.path, row, first) })
	var errs Errors
	if errors.As(err, &errs) {
		for _, e := range errs {
			p.failIn(e.File, position{e.Line, e.Column}, e.Hint, "%s", e.Text)
		}
	} else if err != nil {
		p.fail(n, "", "%s: %s cannot be read", n.path, name)
	}
	return t
}

// addWord adds a row of a table's file. One whose value is empty is not decided yet: its
// word is lacking.
func (p *parser) addWord(t *namedTable, path string, row TableRow, first map[string]int) {
	from, to := lineBreak.Replace(strings.TrimSpace(row.Key)), lineBreak.Replace(strings.TrimSpace(row.Value))
	word := from
	if t.folds {
		word = string(appendFolded(nil, from))
	}
	at := position{row.Line, 0}
	file := p.m.tableFiles[len(p.m.tableFiles)-1]
	switch line, again := first[word]; {
	case word == "" && to == "":
	case word == "":
		p.failIn(p.beside(file), at, "fill it in, or take the row out", "a row of the table %s has no word", path)
	case again:
		p.failIn(p.beside(file), at, "keep one of them", "a word of the table %s stands twice, first on line %d", path, line)
	default:
		first[word] = row.Line
		if to != "" {
			t.words[word] = to
			t.order = append(t.order, from)
			t.constants = append(t.constants, constant{p.beside(file), at, path, to})
		}
	}
}

// tableName is the name of a file that stands beside the mapping file, and nowhere else.
func (p *parser) tableName(n node) string {
	name, ok := p.scalar(n)
	if ok && (path.Base(name) != name || strings.ContainsAny(name, `\:`) || strings.Trim(name, ".") == "" || name == "-" || strings.TrimSpace(name) != name) {
		p.fail(n, "put it beside the mapping file and name it without a folder: dealers.csv", "%s takes the bare name of a file", n.path)
	}
	return name
}

// beside is how errors call a file that stands beside the mapping file.
func (p *parser) beside(name string) string { return path.Join(path.Dir(p.file), name) }
