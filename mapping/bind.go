package mapping

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
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
	own      []ownColumn  // all of the row's own, in the order of their names: the default key is made of them
	rest     []restColumn // those that "*": rest sends under their own names
	uses     []bool       // of the row's own columns, by index
	unused   []string
	warnings []Error
}

type ownColumn struct {
	name  string
	index int
}

type restColumn struct {
	ownColumn
	without [][]string // paths into its object that other values use
}

// Bind looks up the mapping's columns among those of an input, which errors call
// file. The error is Errors: all columns that the input lacks, unless it is Open.
func (m *Mapping) Bind(file string, c Columns) (*Binding, error) {
	s := newSearch(m.name, file, c)
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
	byRow := m.plan.key == nil && m.plan.externalID == nil
	for i, name := range c.Names[:c.Own] {
		own, parts := ownColumn{name, i}, s.parts[name]
		b.own = append(b.own, own)
		resting := hasRest && !s.used[name] && !taken[name] && !blank(name)
		b.uses = append(b.uses, byRow || resting || s.used[name] || len(parts) > 0)
		switch {
		case resting && s.twice[name]:
			s.ambiguous("lead.content.*", name, m.lead)
		case resting:
			b.rest = append(b.rest, restColumn{own, parts})
		case !s.used[name] && len(parts) == 0:
			b.unused = append(b.unused, name)
		}
	}
	if err := s.errs.orNil(); err != nil {
		return nil, err
	}
	slices.SortStableFunc(b.own, func(x, y ownColumn) int { return cmp.Compare(x.name, y.name) })
	return b, nil
}

// Uses reports whether the mapping uses the cells of one of the row's own columns,
// be it for the default key.
func (b *Binding) Uses(column int) bool { return b.uses[column] }

// search finds the cells of columns, and gathers which columns the mapping uses.
type search struct {
	mapping, file string
	columns       Columns
	index         map[string]int
	twice         map[string]bool // names of several columns
	used          map[string]bool
	parts         map[string][][]string // paths into a column that are used
	errs          Errors
}

func newSearch(mapping, file string, c Columns) *search {
	s := &search{
		mapping: mapping, file: file, columns: c, index: make(map[string]int, len(c.Names)),
		twice: map[string]bool{}, used: map[string]bool{}, parts: map[string][][]string{},
	}
	for i, name := range c.Names {
		if _, again := s.index[name]; again {
			s.twice[name] = true
		}
		s.index[name] = i
	}
	return s
}

// ambiguous refuses a column that is used and whose name another one has, too.
func (s *search) ambiguous(path, name string, at position) {
	text := fmt.Sprintf("%s: %s has more than one column %s", path, s.file, quote(name))
	e := Error{s.mapping, at.line, at.column, text, "give each column of the file a name of its own"}
	if !s.columns.Open && len(s.errs) < maxErrors && !slices.Contains(s.errs, e) {
		s.errs = append(s.errs, e)
	}
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
	index, found := s.index[name]
	switch {
	case found && index < s.columns.Own:
		s.used[name] = true
		if s.twice[name] {
			s.ambiguous(v.path, name, at)
		}
		return index
	case found:
		member, inside, _ := strings.Cut(name, ".")
		s.parts[member] = append(s.parts[member], strings.Split(inside, "."))
		return index
	}
	if !s.columns.Open && len(s.errs) < maxErrors {
		text := fmt.Sprintf("%s: %s has no column %s", v.path, s.file, quote(name))
		s.errs = append(s.errs, Error{s.mapping, at.line, at.column, text, didYouMean(name, s.columns.Names)})
	}
	return -1
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
