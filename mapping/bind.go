package mapping

import (
	"cmp"
	"fmt"
	"slices"
)

// Columns are the names of an input's cells: the row's own columns up to Own,
// then paths into them. Open says that another row may have others, as in JSONL;
// a column that the mapping names and the row lacks is then empty.
type Columns struct {
	Names []string
	Own   int
	Open  bool
}

// Binding is a Mapping made ready for rows of one shape. It does not change and
// may be shared.
type Binding struct {
	plan     plan
	null     []string
	own      []ownColumn // all of the row's own, in the order of their names: the default key is made of them
	rest     []ownColumn // those that "*": rest sends under their own names
	unused   []string
	warnings []Error
}

type ownColumn struct {
	name  string
	index int
}

// Bind looks up the mapping's columns among those of an input, which errors call
// file. The error is Errors: all columns that the input lacks, unless it is Open.
func (m *Mapping) Bind(file string, c Columns) (*Binding, error) {
	s := &search{mapping: m.name, file: file, columns: c, index: make(map[string]int, len(c.Names)), used: map[string]bool{}}
	for i, name := range c.Names {
		s.index[name] = i
	}
	b := &Binding{plan: m.plan.with(s.bind), null: m.Source.Null}
	if err := s.errs.orNil(); err != nil {
		return nil, err
	}
	m.plan.each(func(v *value) {
		c, _ := v.text.constant()
		if _, found := s.index[c]; found && c != "" && len(b.warnings) < maxErrors {
			text := fmt.Sprintf("%s is the constant %s in every row, which is the name of a column", v.path, quote(c))
			b.warnings = append(b.warnings, Error{m.name, v.at.line, v.at.column, text, `write "{` + c + `}" for what the column holds`})
		}
	})
	taken, hasRest := b.contentKeys()
	for i, name := range c.Names[:c.Own] {
		b.own = append(b.own, ownColumn{name, i})
		switch {
		case s.used[name]:
		case hasRest && !taken[name] && !blank(name):
			b.rest = append(b.rest, ownColumn{name, i})
		default:
			b.unused = append(b.unused, name)
		}
	}
	slices.SortFunc(b.own, func(x, y ownColumn) int { return cmp.Compare(x.name, y.name) })
	return b, nil
}

// search finds the cells of columns, and gathers which columns the mapping uses.
type search struct {
	mapping, file string
	columns       Columns
	index         map[string]int
	used          map[string]bool
	errs          Errors
}

// contentKeys are the keys of the content, and whether the rest of the columns
// goes there, too.
func (b *Binding) contentKeys() (keys map[string]bool, hasRest bool) {
	keys = map[string]bool{}
	for i := range b.plan.content {
		f := &b.plan.content[i]
		if f.isRest() {
			hasRest = true
		} else {
			keys[f.name] = true
		}
	}
	return keys, hasRest
}

// bind is v with its columns found.
func (s *search) bind(v *value) *value {
	bound := *v
	bound.text = slices.Clone(v.text)
	for i, p := range bound.text {
		if p.kind == column {
			bound.text[i].index = s.find(v, p.text, v.at)
		}
	}
	if v.expr != nil {
		for _, c := range v.expr.columns {
			bound.cells = append(bound.cells, s.find(v, c.name, c.at))
		}
	}
	return &bound
}

// find is the index of the cell of a column that v names, or -1.
func (s *search) find(v *value, name string, at position) int {
	s.use(name)
	if index, found := s.index[name]; found {
		return index
	}
	if !s.columns.Open && len(s.errs) < maxErrors {
		text := fmt.Sprintf("%s: %s has no column %s", v.path, s.file, quote(name))
		s.errs = append(s.errs, Error{s.mapping, at.line, at.column, text, didYouMean(name, s.columns.Names)})
	}
	return -1
}

// use marks a column as used; of a path a.b it marks a, too, so that the rest does
// not send it once more.
func (s *search) use(name string) {
	for i := range len(name) {
		if name[i] == '.' {
			s.used[name[:i]] = true
		}
	}
	s.used[name] = true
}

// Warnings are remarks about the mapping and this input, each with its place: constants
// that are the name of a column, which may have been meant.
func (b *Binding) Warnings() []Error {
	if b == nil {
		return nil
	}
	return b.warnings
}

// Unused lists the row's own columns that go nowhere, in the input's order: no value
// of the mapping names them, and no "*": rest takes them. The default key is made of
// them all the same.
func (b *Binding) Unused() []string { return b.unused }
