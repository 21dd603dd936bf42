package importer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"leadferry/checkpoint"
	"leadferry/importer/report"
	"leadferry/importer/source"
	"leadferry/mapping"
)

// Misfit says that an input lacks columns that the mapping names.
type Misfit struct {
	File    string
	Mapping string
	Missing mapping.Errors // each place of the mapping that names one
	Columns []string       // what the file has instead
	Strange bool           // the mapping names none of those
	Taken   int            // the line that was taken for the header; 0: not known, or there are no lines
	Header  int            // another line, which has all columns that the mapping names; 0: there is none at hand
	Skipped bool           // the mapping leaves out lines before the header
}

// How much of a misfit is told.
const (
	mostMissing = 5 // places one by one
	mostColumns = 8
	longColumn  = 30 // characters
)

// Error tells the first places one by one, or that nothing fits; then what the file
// has, as a hint.
func (m *Misfit) Error() string {
	places := len(m.Missing)
	switch {
	case m.Header > 0:
		return WrongHeader(m.File, m.Mapping, m.Taken, m.Header).Error()
	case m.Skipped && m.Taken > 0 && m.Strange:
		return fmt.Sprintf("%s:%d: taken for the header, as source.skip_rows says, and has none of the columns that %s names\nhint: its cells are %s: count the lines above the header again, blank ones too",
			m.File, m.Taken, m.Mapping, quoted(m.Columns))
	case m.Strange && (places > 2 || len(m.Columns) == 1):
		return fmt.Sprintf("%s: has none of the columns that %s names\nhint: %s", m.File, m.Mapping, m.hint())
	case places > mostMissing:
		return fmt.Sprintf("%v\n%s: lacks columns that %s names in %d more places\nhint: %s",
			m.Missing[:mostMissing], m.File, m.Mapping, places-mostMissing, m.hint())
	}
	return m.Missing.Error()
}

// WrongHeader says that a line of a file was taken for its header, and which one has the columns
// that a mapping names.
func WrongHeader(file, mappingFile string, taken, header int) mapping.Error {
	hint := "take skip_rows out of source"
	if header > 1 {
		hint = fmt.Sprintf("write skip_rows: %d under source, which leaves out what stands above", header-1)
	}
	text := fmt.Sprintf("taken for the header, but the columns that %s names stand at %s:%d", mappingFile, file, header)
	return mapping.Error{File: file, Line: taken, Text: text, Hint: hint}
}

// Unwrap gives all places.
func (m *Misfit) Unwrap() error { return m.Missing }

func (m *Misfit) hint() string {
	if len(m.Columns) == 1 {
		return fmt.Sprintf("its only column is %s: if another character parts the cells, name it with --delimiter", quoted(m.Columns))
	}
	return fmt.Sprintf("its columns are %s: is it the right file, and are these the names of its columns?", quoted(m.Columns))
}

// quoted lists the first few names, each cut where it is long.
func quoted(names []string) string {
	var b strings.Builder
	for i, name := range names {
		if i == mostColumns {
			fmt.Fprintf(&b, " and %d more", len(names)-i)
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%q", report.Shortened(name, longColumn))
	}
	return b.String()
}

// How far a file is read whose rows bring their own columns, before anything is sent.
const (
	firstObjects = 1000
	firstBytes   = 16 << 20 // of rows that are kept meanwhile
)

// shapes are by what rows are made leads, by input: what the checkpoint does not know yet
// and is to note with the first claim.
type shapes []atomic.Pointer[checkpoint.Shape]

// newShapes looks by which columns, key and namespace leads were made before. A file of
// the same columns, or nearly, whose rows are known by something else would make each of
// them another lead.
func newShapes(ctx context.Context, o *Options, l *checkpoint.Ledger) (shapes, error) {
	list := make(shapes, len(o.Inputs))
	var all []error
	for i, f := range o.Inputs {
		shape := checkpoint.Shape{Columns: columnsOf(f), Key: o.Mapping.KeyForm(), Namespace: o.Mapping.Namespace()}
		known, kin, err := l.Noted(ctx, shape)
		if err != nil {
			return nil, err
		}
		if !known {
			list[i].Store(&shape)
			all = append(all, o.refuseShape(f.Info().Path, &shape, kin))
		}
	}
	return list, errors.Join(all...)
}

// of is the shape to be noted with a claim, or nil.
func (s shapes) of(input int) *checkpoint.Shape {
	if s == nil {
		return nil
	}
	return s[input].Load()
}

// noted says that it was.
func (s shapes) noted(input int, shape *checkpoint.Shape) {
	if shape != nil {
		s[input].Store(nil)
	}
}

// refuseShape says why a file cannot be meant, or nil.
func (o *Options) refuseShape(path string, s *checkpoint.Shape, kin []checkpoint.Kin) error {
	var same, other *checkpoint.Kin
	for i := range kin {
		if k := &kin[i]; k.Key == s.Key && k.Namespace == s.Namespace {
			same = k
		} else {
			other = k
		}
	}
	switch {
	case same != nil && s.Key == "" && !o.NewColumns:
		return fmt.Errorf("%s: its columns are not those by which leads were made (%s), and a row's own data are its key: every row would be another lead\n"+
			"hint: name the column that makes a row the same row on the next run, as in key: \"{id}\"; or take the columns as they were; or add --new-columns if other leads are meant",
			path, newOrGone(same))
	case same == nil && other != nil && !o.NewKey:
		return fmt.Errorf("%s: leads were made of such a file by %s, and now by %s: every row would be another lead\n"+
			"hint: put key and namespace of the mapping back as they were, or add --new-key if other leads are meant",
			path, keyOf(other.Key, other.Namespace), keyOf(s.Key, s.Namespace))
	}
	return nil
}

// newOrGone says in what the columns are others.
func newOrGone(k *checkpoint.Kin) string {
	if len(k.Strange) > 0 {
		return "new: " + quoted(k.Strange)
	}
	return fmt.Sprintf("missing: %d", k.Lacking)
}

func keyOf(key, namespace string) string {
	text := "the key " + key
	if key == "" {
		text = "the row's own data"
	}
	if namespace != "" {
		text += " in the namespace " + namespace
	}
	return text
}

// columnsOf are the columns of an input; where rows bring their own, those that all of the
// first ones have.
func columnsOf(f *source.File) []string {
	h := f.Header()
	if !h.Open {
		return h.Names[:h.Own]
	}
	var common []string
	size, begun := 0, false
	for n := 1; n <= firstObjects && size < firstBytes && f.ReadAhead(n) == n; n++ {
		row := &f.Ahead()[n-1]
		size += len(row.Raw)
		if h := row.Header; row.Problem == nil && h != nil && h.Own > 0 {
			common, begun = inBoth(common, h.Names[:h.Own], begun), true
		}
	}
	return common
}

// inBoth are the names of both lists, or those of the second one where it is the first.
func inBoth(common, names []string, begun bool) []string {
	if !begun {
		return append(common, names...)
	}
	has := make(map[string]bool, len(names))
	for _, name := range names {
		has[name] = true
	}
	kept := common[:0]
	for _, name := range common {
		if has[name] {
			kept = append(kept, name)
		}
	}
	return kept
}
