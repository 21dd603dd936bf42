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
	plan   plan
	null   []string
	own    []ownColumn // in the order of their names, for the default key
	unused []string
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
	for i, name := range c.Names[:c.Own] {
		b.own = append(b.own, ownColumn{name, i})
		if !isUsed(name, s.used) {
			b.unused = append(b.unused, name)
		}
	}
	slices.SortFunc(b.own, func(x, y ownColumn) int { return cmp.Compare(x.name, y.name) })
	return b, nil
}

// search finds the cells of columns.
type search struct {
	mapping, file string
	columns       Columns
	index         map[string]int
	used          map[string]bool
	errs          Errors
}

// bind is v with its columns found.
func (s *search) bind(v *value) *value {
	bound := *v
	bound.text = slices.Clone(v.text)
	for i, p := range bound.text {
		if p.kind != column {
			continue
		}
		index, found := s.index[p.text]
		switch {
		case found:
		case s.columns.Open:
			index = -1
		case len(s.errs) < maxErrors:
			text := fmt.Sprintf("%s: %s has no column %s", v.path, s.file, quote(p.text))
			s.errs = append(s.errs, Error{s.mapping, v.at.line, v.at.column, text, didYouMean(p.text, s.columns.Names)})
		}
		bound.text[i].index = index
		s.used[p.text] = true
	}
	return &bound
}

// isUsed reports whether a text names the column or a path into it.
func isUsed(name string, used map[string]bool) bool {
	if used[name] {
		return true
	}
	for path := range used {
		if strings.HasPrefix(path, name+".") {
			return true
		}
	}
	return false
}

// Unused lists the row's own columns that no text of the mapping names, in the
// input's order. The default key is made of them all the same.
func (b *Binding) Unused() []string { return b.unused }
