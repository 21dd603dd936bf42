package importer

import (
	"context"
	"errors"
	"fmt"

	"leadferry/checkpoint"
	"leadferry/importer/source"
	"leadferry/mapping"
)

// findShapes compares the shape of each input with those that the checkpoint knows. It refuses a file with nearly the
// columns of a known one but another key: every row would make another lead.
func (r *run) findShapes(ctx context.Context) error {
	var refused []error
	var ids []string // of the refused inputs
	for i, f := range r.Inputs {
		shape := r.shapeOf(f)
		known, kin, err := checkpoint.Noted(ctx, r.ledger, shape)
		if err != nil {
			return err
		}
		if known {
			continue
		}
		r.shapes[i].Store(&shape)
		if err := refuseShape(f, &shape, kin); err != nil {
			kind := checkpoint.KindOf(&shape)
			refused, ids = append(refused, err), append(ids, kind.ID())
		}
	}
	switch answer := checkpoint.AnswerID(ids); {
	case len(refused) == 0 && r.NewKey != "":
		return fmt.Errorf("--new-key=%s answers nothing: files with these columns were already imported with "+
			"this key, or never\nhint: leave it out", r.NewKey)
	case len(refused) > 0 && r.NewKey != answer:
		return fmt.Errorf("%w; if new leads are meant: --new-key=%s", errors.Join(refused...), answer)
	}
	return nil
}

func (o *Options) shapeOf(f *source.File) checkpoint.Shape {
	m := o.Mapping
	return checkpoint.Shape{Columns: f.Columns(), Key: m.KeyIn(f.Info().Encoding), Namespace: m.Namespace()}
}

// refuseShape refuses a file with nearly the columns of earlier imports but another key, or returns nil. The rejects of
// a run have the columns of its input, or fewer.
func refuseShape(f *source.File, s *checkpoint.Shape, kin []checkpoint.Kind) error {
	path, other := f.Info().Path, (*checkpoint.Kind)(nil)
	for i := range kin {
		switch k := &kin[i]; {
		case k.Namespace == s.Namespace && k.Key == s.Key:
			if !mapping.IsOwnData(s.Key) || f.IsRejects() {
				return nil
			}
			return fmt.Errorf("%s: a file with nearly these columns was imported before, and the whole row is the key: "+
				"every row would make a new lead\n"+
				"hint: name the column that makes a row the same row on the next run, as in key: \"{id}\", or restore "+
				"the columns", path)
		case k.Namespace == s.Namespace && mapping.IsOwnData(k.Key) && mapping.IsOwnData(s.Key) && f.IsRejects():
			// these keys differ only in how the file was read, and rejects are always UTF-8
		default:
			other = k
		}
	}
	if other == nil {
		return nil
	}
	return fmt.Errorf("%s: a file with nearly these columns was imported with %s. The mapping now says %s: every row "+
		"would make a new lead\n"+
		"hint: restore key, namespace and source of the mapping", path, keyOf(other.Key, other.Namespace),
		keyOf(s.Key, s.Namespace))
}

func keyOf(key, namespace string) string {
	text := "key " + key
	if mapping.IsOwnData(key) {
		text = "the whole row as key"
		if key != "" {
			text += " (" + key + ")"
		}
	}
	if namespace != "" {
		text += " in namespace " + namespace
	}
	return text
}
