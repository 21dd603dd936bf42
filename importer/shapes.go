package importer

import (
	"context"
	"errors"
	"fmt"

	"leadferry/checkpoint"
	"leadferry/importer/source"
)

// How far a file is read whose rows bring their own columns, before anything is sent.
const (
	firstObjects = 1000
	firstBytes   = 16 << 20 // of rows that are kept meanwhile
)

// compareShapes looks by which columns, key and namespace leads were made before. A file of
// the same columns, or nearly, whose rows are known by something else would make each of
// them another lead.
func (e *engine) compareShapes() error {
	if e.matches && e.Missing != MissingCreate {
		return nil
	}
	e.shapes = make([]*checkpoint.Shape, len(e.Inputs))
	var all []error
	for i, f := range e.Inputs {
		shape := checkpoint.Shape{Columns: columnsOf(f), Key: e.Mapping.KeyForm(), Namespace: e.Mapping.Namespace()}
		known, kin, err := e.db.Noted(context.Background(), shape)
		if err != nil {
			return err
		}
		if !known {
			e.shapes[i] = &shape
			all = append(all, e.refuseShape(f.Info().Path, &shape, kin))
		}
	}
	return errors.Join(all...)
}

// refuseShape says why a file cannot be meant, or nil.
func (e *engine) refuseShape(path string, s *checkpoint.Shape, kin []checkpoint.Kin) error {
	var same, other *checkpoint.Kin
	for i := range kin {
		if k := &kin[i]; k.Key == s.Key && k.Namespace == s.Namespace {
			same = k
		} else {
			other = k
		}
	}
	switch {
	case same != nil && s.Key == "" && !e.NewColumns:
		return fmt.Errorf("%s: its columns are not those by which leads were made (%s), and a row's own data are its key: every row would be another lead\n"+
			"hint: name the column that makes a row the same row on the next run, as in key: \"{id}\"; or take the columns as they were; or add --new-columns if other leads are meant",
			path, newOrGone(same))
	case same == nil && other != nil && !e.NewKey:
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

// note makes the checkpoint know by what the rows of an input are made leads, before the
// first of them is.
func (e *engine) note(input int) {
	if e.shapes != nil && e.shapes[input] != nil {
		e.ledger.Note(*e.shapes[input])
		e.shapes[input] = nil
	}
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
	for n := 1; n <= firstObjects && size < firstBytes && f.Hold(n) == n; n++ {
		row := &f.Held()[n-1]
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
