package mapping

import (
	"maps"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"leadferry/internal/rowkey"
	"leadferry/mapping/texts"
)

// table maps words to texts. It may be shared.
type table struct {
	entries []constant     // in the order written
	index   map[string]int // word → its index in entries
	folds   bool           // case and blanks of the words do not matter

	file, path string // of a table in a file: how errors call the file and the table
}

// find returns the text for a word, which is trimmed and not empty. It does not find a row of a file that has no value.
func (t *table) find(s string) (to string, found bool) {
	if t.folds {
		s = folded(s)
	}
	i, found := t.index[s]
	if !found || t.file != "" && t.entries[i].text == "" {
		return "", false
	}
	return t.entries[i].text, true
}

func (t *table) add(word string, entry constant) {
	t.index[word] = len(t.entries)
	t.entries = append(t.entries, entry)
}

// folded returns a text without blanks and in one case. Forms of Unicode that look alike become the same text.
func folded(s string) string {
	return norm.NFKC.String(cases.Fold().String(strings.Map(rowkey.Shown, norm.NFKC.String(s))))
}

// ReadTable reads the file name beside the mapping file. It calls add for each row with its line and the cells of the
// columns key and value. It returns all that is wrong with the file.
type ReadTable func(name, key, value string, add func(line int, key, value string)) Errors

func (p *parser) namedTables(n node) {
	p.each(n, func(key, child node) {
		if child.has("file") {
			p.named[key.Value] = p.tableFile(child)
		} else {
			p.named[key.Value] = p.words(child)
		}
	})
}

func (p *parser) words(n node) *table {
	t := &table{index: map[string]int{}}
	if n.Kind == yaml.MappingNode && n.has("file") && n.has("key") && n.has("value") {
		p.fail(n, "move it into the section tables: {dealers: {file: …}}, and write map: dealers",
			"%s is a table in a file of its own", n.path)
		return t
	}
	p.each(n, func(key, child node) {
		from := asCell(key.Value)
		if key.isNull() {
			p.fail(key, `use default for empty cells, or write "`+from+`" in quotes for the word itself`,
				"%s is not asked for empty texts", n.path)
			return
		}
		t.add(from, constant{p.file, child.at(), child.path, from, p.fixed(child)})
	})
	return t
}

// namedTable returns the table of this name.
func (p *parser) namedTable(name string) (*table, *texts.Fault) {
	if t := p.named[name]; t != nil {
		return t, nil
	}
	return nil, texts.Unknown("table "+texts.Quote(name), name, slices.Sorted(maps.Keys(p.named)))
}

func (p *parser) tableFile(n node) *table {
	t := &table{index: map[string]int{}, path: n.path}
	var name, key, value string
	before := len(p.errs)
	p.object(n,
		member{"file", set(p, &name, tableName)},
		member{"key", set(p, &key, columnName)},
		member{"value", set(p, &value, columnName)},
		member{"fold", set(p, &t.folds, lastOf("false", "true"))},
	)
	p.needs(n, "{file: dealers.csv, key: Name, value: Organization ID}", "key", "value")
	switch {
	case len(p.errs) > before:
		return t
	case p.read == nil:
		p.fail(n, "write its words out", "%s: there is no folder in which to look for the file", n.path)
		return t
	}
	t.file = path.Join(path.Dir(p.file), name)
	add := func(line int, from, to string) { p.addWord(t, line, asCell(from), asCell(to)) }
	for _, e := range p.read(name, key, value, add) {
		if e.Line == 0 { // the whole file is wrong, or it is the wrong file
			at := n.at()
			e.File, e.Line, e.Column, e.Text = p.file, at.line, at.column, n.path+": "+e.File+": "+e.Text
		}
		p.errs = append(p.errs, e)
	}
	return t
}

// addWord adds a row of a table's file.
func (p *parser) addWord(t *table, line int, from, to string) {
	word, at := from, position{line, 0}
	if t.folds {
		word = folded(from)
	}
	switch first, again := t.index[word]; {
	case word == "" && to == "":
	case word == "":
		p.failIn(t.file, at, "fill it in, or take the row out", "a row of the table %s has no word", t.path)
	case again:
		p.failIn(t.file, at, "keep one of them", "a word of the table %s is there twice, first on line %d", t.path,
			t.entries[first].at.line)
	default:
		t.add(word, constant{t.file, at, t.path, from, to})
	}
}

// asCell returns a word in the form in which cells are looked up.
func asCell(word string) string { return lineBreak.Replace(strings.TrimSpace(word)) }

// tableName accepts the name of a file beside the mapping file, and nothing else.
func tableName(word string) (string, *texts.Fault) {
	if path.Base(word) != word || strings.ContainsAny(word, `\:`) || strings.Trim(word, ".") == "" || word == "-" ||
		strings.TrimSpace(word) != word {
		return "", texts.NewFault("it takes the bare name of a file",
			"put it beside the mapping file and name it without a folder: dealers.csv")
	}
	return word, nil
}
