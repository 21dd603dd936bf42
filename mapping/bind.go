package mapping

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v4"
	"golang.org/x/text/unicode/norm"

	"leadferry/internal/spelling"
	"leadferry/mapping/texts"
)

// Columns are the names of an input's cells: first the row's own columns, Own of them, then paths into them. Open says
// that other rows may have other columns, as in JSONL. A column that the mapping names and the row lacks is then empty.
type Columns struct {
	Names []string
	Own   int
	Open  bool
}

// Binding is a Mapping made ready for rows of one shape. It does not change and may be shared.
type Binding struct {
	// Uses says of each of the row's own columns whether the mapping uses its cells, even if only for the default key.
	// Names says whether the column identifies the row or its lead. Unused are the columns that are not sent, in the
	// input's order: no value names them, and "*": rest neither takes them nor leaves them out by name. Warnings are
	// remarks about the mapping and this input, each with its place.
	Uses     []bool
	Names    []bool
	Unused   []string
	Warnings []Error

	plan *plan
	at   []int // the cells of the columns that the mapping names, -1: the row has none
	null []string
	own  []ownColumn // all of the row's own, sorted by name: the default key is made of them
	rest []ownColumn // those that "*": rest sends

	strange bool // the row has no column of the mapping: it may be of another list of a JSON document
}

type ownColumn struct {
	name    string // see ColumnName
	index   int
	as      string     // for a column that rest sends: its key in the content
	without [][]string // for such a column: the paths into its object that other values use
}

// Bind looks up the mapping's columns among those of an input; file is the input's name in errors. The error is Errors:
// each column that is missing or shares its name with another. If no column is sent, it is an Error, and Bind also
// returns the Binding. In an Open input, none of this is an error.
func (m *Mapping) Bind(file string, c Columns) (*Binding, error) {
	s := newSearch(m.name, file, c)
	b := &Binding{plan: &m.plan, at: make([]int, len(m.names)), null: m.Source.Null}
	for _, v := range m.plan.values() {
		v.visit(func(v *value) {
			s.constant(v)
			for _, c := range v.own() {
				b.at[c.index] = s.find(v, c.text)
			}
		})
	}
	b.divide(m, s)
	b.Warnings = s.warnings
	b.strange = c.Open && len(b.at) > 0 && len(b.rest) == 0 && slices.Max(b.at) < 0
	if err := s.misfits(); err != nil {
		return nil, err
	}
	if !c.Open && len(b.own) > 0 && len(b.Unused) == len(b.own) {
		return b, Error{
			File: m.name, Text: "no column of " + file + " goes anywhere, so nothing would tell one row from another",
			Hint: "is the mapping cut off? `leadferry init` writes one for a file",
		}
	}
	return b, nil
}

// OnlyKey reports whether a row holds only what identifies it, and nothing else that the mapping uses. open says that
// the row may lack the other columns.
func (b *Binding) OnlyKey(cells []string, open bool) bool {
	r := row{cells: cells, null: b.null}
	for i, used := range b.Uses {
		if used && !b.Names[i] {
			if open = true; strings.TrimSpace(r.cell(i)) != "" {
				return false
			}
		}
	}
	return open
}

// ColumnName returns a column's name as it counts for keys: other exports write it in another case or Unicode form.
func ColumnName(name string) string { return strings.ToLower(norm.NFC.String(name)) }

// divide sets which of the row's own columns are used, identify the row, are sent by rest, or are unused.
func (b *Binding) divide(m *Mapping, s *search) {
	rest := b.plan.rest
	takes := func(name string) bool {
		isKey := func(f field) bool { return f.name == rest.prefix+name && !f.isRest() }
		return rest != nil && !s.used[name] && !blank(name) && !rest.excepts(name) &&
			!slices.ContainsFunc(b.plan.content, isKey)
	}
	s.warnUnknownExceptions(rest)
	own := m.KeyForm() == ""
	var names []part
	for _, v := range []*value{b.plan.key, b.plan.externalID, b.plan.leadID} {
		if v != nil {
			names = append(names, v.uses()...)
		}
	}
	for i, name := range s.columns.Names[:s.columns.Own] {
		col, resting := ownColumn{name: ColumnName(name), index: i, without: s.parts[name]}, takes(name)
		used := s.used[name] || len(col.without) > 0
		b.own = append(b.own, col)
		b.Uses = append(b.Uses, used || resting || own)
		b.Names = append(b.Names, own || slices.Contains(namesOf(names), name))
		switch {
		case resting && s.twice[name]:
			s.ambiguous("lead.content.*", "with the name of column "+strconv.Itoa(i+1), m.lead)
		case resting:
			col.as = rest.prefix + name
			b.rest = append(b.rest, col)
		case !used && !rest.excepts(name):
			b.Unused = append(b.Unused, name)
		}
	}
	slices.SortStableFunc(b.own, func(x, y ownColumn) int { // names that differ only in case have an order of their own
		return cmp.Or(cmp.Compare(x.name, y.name), cmp.Compare(s.columns.Names[x.index], s.columns.Names[y.index]))
	})
}

// constant warns of a constant that is the name of a column.
func (s *search) constant(v *value) {
	c, _ := v.text.constant()
	name := bareName(c)
	if _, found := s.index[name]; found && name != "" {
		s.note(&s.warnings, v.at, `write "{`+name+`}" for what the column holds`,
			"%s is the constant %s in every row, which is the name of a column", v.path, texts.Quote(c))
	}
}

// bareName strips the signs that other languages put around a name: {{name}}, $name, <name>.
func bareName(s string) string { return strings.Trim(s, "{}[]()<>$%#@ ") }

// search finds the cells of columns and notes which columns the mapping uses.
type search struct {
	mapping, file string
	columns       Columns
	index         map[string]int
	twice         map[string]bool // names that several columns share; empty if Open
	used          map[string]bool
	astray        bool                  // a column is missing, and none has nearly its name
	parts         map[string][][]string // paths into a column that are used
	errs          Errors
	warnings      Errors
}

func newSearch(mapping, file string, c Columns) *search {
	s := &search{
		mapping: mapping, file: file, columns: c, index: map[string]int{},
		twice: map[string]bool{}, used: map[string]bool{}, parts: map[string][][]string{},
	}
	for i, name := range c.Names {
		_, again := s.index[name]
		s.index[name], s.twice[name] = i, again && !c.Open
	}
	return s
}

// note adds an error or a warning about a column that the mapping names.
func (s *search) note(all *Errors, at position, hint, format string, args ...any) {
	e := Error{s.mapping, at.line, at.column, fmt.Sprintf(format, args...), hint}
	if len(*all) < maxErrors && !slices.Contains(*all, e) {
		*all = append(*all, e)
	}
}

// ambiguous refuses a column that is used and shares its name with another. It shows only names that the mapping has.
func (s *search) ambiguous(path, column string, at position) {
	s.note(&s.errs, at, "give each column of the file a name of its own", "%s: %s has more than one column %s", path,
		s.file, column)
}

const mostMisfits = 5 // places of a mapping file in an error about an input

const whichHeader = "is it the right file (of a workbook: the right --sheet), with this --delimiter, and is its " +
	"first line the header? The mapping's source skips lines above it (skip_rows: 1), or names the columns of a file " +
	"without a header (header: false, columns: [...])"

// misfits returns the first places that do not fit the input, with a hint on the file itself if it may be another one.
// It does not list the input's columns: what was taken for the header may be a row, with people's data.
func (s *search) misfits() error {
	if s.errs.orNil(s.mapping) == nil {
		return nil
	}
	all := s.errs
	if more := len(all) - mostMisfits; more > 0 {
		text := fmt.Sprintf("it does not fit %d more places of %s", more, s.mapping)
		all = append(all[:mostMisfits], Error{File: s.file, Text: text})
	}
	if last := &all[len(all)-1]; s.astray {
		last.Hint = strings.TrimPrefix(last.Hint+"\nhint: "+whichHeader, "\nhint: ")
	}
	return all
}

// find returns the index of the cell of a column that the value is made of, or -1.
func (s *search) find(v *value, name string) int {
	index, found := s.index[name]
	if !found { // in a header, every line break is a line feed
		name = strings.ReplaceAll(name, "\r\n", "\n")
		index, found = s.index[name]
	}
	switch {
	case !found && s.columns.Open:
		return -1
	case !found:
		hint := spelling.Hint(name, s.columns.Names)
		switch {
		case hint != "":
		case v.expr != nil:
			hint = "if the text is meant, it needs quotes: " + texts.Quote(name)
		default:
			s.astray = true
		}
		s.note(&s.errs, v.at, hint, "%s: %s has no column %s", v.path, s.file, texts.Quote(name))
		return -1
	case index >= s.columns.Own:
		member, inside, _ := strings.Cut(name, ".")
		s.parts[member] = append(s.parts[member], strings.Split(inside, "."))
	default:
		s.used[name] = true
		if s.twice[name] {
			s.ambiguous(v.path, texts.Quote(name), v.at)
		}
	}
	return index
}

// rest says which of the columns that nothing else uses go into the content.
type rest struct {
	except []exception
	prefix string
}

// exception names columns to be left out. In it, * means any characters.
type exception struct {
	name string
	at   position
	form *regexp.Regexp
}

func wildcard(pattern string) *regexp.Regexp {
	return regexp.MustCompile("(?s)^" + strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, ".*") + "$")
}

// rest reads which of the columns that nothing else uses go into the content: all of them or some.
func (p *parser) rest(n node) *rest {
	all := new(rest)
	if n.Kind != yaml.MappingNode || n.isUnquoted() {
		set(p, new(string), oneOf("rest"))(n)
		return all
	}
	p.needs(n, `"*": {rest: {except: [ssn, "tmp_*"], prefix: "crm_"}}`, "rest")
	p.object(n, member{"rest", func(n node) {
		p.object(n,
			member{"except", p.list(func(n node) {
				var name string
				set(p, &name, columnName)(n)
				all.except = append(all.except, exception{name, n.at(), wildcard(name)})
			})},
			member{"prefix", set(p, &all.prefix, anyText)},
		)
	}})
	return all
}

func (b *Binding) addRest(r *row, rec *Record) {
	for _, c := range b.rest {
		s := strings.TrimSpace(r.cell(c.index))
		for _, path := range c.without {
			s = string(without(jsontext.Value(s), path))
		}
		if s != "" {
			rec.Content = append(rec.Content, Field{Name: c.as, Value: s})
		}
	}
}

// without returns a JSON value without the part that the path leads to, or nil if nothing is left of it. In a list,
// null replaces that part, so that the other elements keep their places.
func without(v jsontext.Value, path []string) jsontext.Value {
	if len(path) == 0 {
		return nil
	}
	var left any
	var rest []jsontext.Value
	members, list := map[string]jsontext.Value{}, []jsontext.Value{}
	switch i, _ := strconv.Atoi(path[0]); {
	case json.Unmarshal(v, &members) == nil && members[path[0]] != nil:
		if members[path[0]] = without(members[path[0]], path[1:]); members[path[0]] == nil {
			delete(members, path[0])
		}
		left, rest = members, slices.Collect(maps.Values(members))
	case json.Unmarshal(v, &list) == nil && 0 <= i && i < len(list) && strconv.Itoa(i) == path[0]:
		if list[i] = without(list[i], path[1:]); list[i] == nil {
			list[i] = jsontext.Value("null")
		}
		left, rest = list, list
	default:
		return v
	}
	if !slices.ContainsFunc(rest, func(v jsontext.Value) bool { return v.Kind() != 'n' }) {
		return nil
	}
	whole, _ := json.Marshal(left, json.Deterministic(true)) // cannot fail: the value was read before
	return whole
}

// excepts reports whether a column is left out.
func (r *rest) excepts(column string) bool {
	return r != nil && slices.ContainsFunc(r.except, func(e exception) bool { return e.form.MatchString(column) })
}

// warnUnknownExceptions warns of columns to be left out that the input lacks: one whose name is misspelt would be sent.
func (s *search) warnUnknownExceptions(r *rest) {
	if r == nil || s.columns.Open {
		return
	}
	for _, e := range r.except {
		if !slices.ContainsFunc(s.columns.Names, e.form.MatchString) {
			s.note(&s.warnings, e.at, spelling.Hint(e.name, s.columns.Names),
				"lead.content.*: %s has no column %s that could be left out", s.file, texts.Quote(e.name))
		}
	}
}
