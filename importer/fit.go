package importer

import (
	"context"
	"errors"
	"fmt"

	"github.com/dustin/go-humanize/english"

	"leadferry/checkpoint"
	"leadferry/importer/source"
	"leadferry/internal/spelling"
	"leadferry/mapping"
)

// How much of a misfit is shown: places, columns, characters of a column's name.
const mostMissing, mostColumns, longColumn = 5, 8, 30

// misfit is the error for an input without columns that the mapping names: the first places.
func (r *intake) misfit(f *source.File, missing mapping.Errors) error {
	path, h, names := f.Info().Path, f.Header(), missing[0].File
	columns := h.Names[:h.Own]
	if r.options.LooksLikeRow != nil && r.options.LooksLikeRow(columns, f.FirstRows()) {
		// the columns may be people's data: they are not shown
		return fmt.Errorf("%s: what was taken for its header looks like a row, and does not fit %s\n"+
			"hint: a file without a header needs source: {header: false, columns: [...]} in the mapping, with names "+
			"for its %s; leadferry init writes them", path, names, english.Plural(len(columns), "column", ""))
	}
	var err error = missing
	if more := len(missing) - mostMissing; more > 0 {
		err = fmt.Errorf("%w\n%s: lacks columns that %s names in %d more places\n"+
			"hint: is it the right file, and is its header on this line?", missing[:mostMissing], path, names, more)
	}
	if sheets := f.Info().Sheets; len(sheets) > 0 {
		err = fmt.Errorf("%w\nhint: the workbook also holds the sheets %s: choose one with --sheet NAME", err,
			spelling.List(sheets, mostColumns, nil))
	}
	return err
}

func quoted(names []string) string {
	return spelling.List(names, mostColumns, func(name string) string {
		return `"` + spelling.Shorten(name, longColumn) + `"`
	})
}

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

// refuseShape refuses a file with nearly the columns of known ones but another key, or returns nil. The rejects of a
// run have the columns of its input, or fewer.
func refuseShape(f *source.File, s *checkpoint.Shape, kin []checkpoint.SimilarImport) error {
	var same, other *checkpoint.SimilarImport
	for i := range kin {
		switch k := &kin[i]; {
		case k.Namespace == s.Namespace && k.Key == s.Key:
			same = k
		case k.Namespace == s.Namespace && mapping.IsOwnData(k.Key) && mapping.IsOwnData(s.Key) && f.IsRejects():
			// these keys differ only in how the file was read, and rejects are always UTF-8
		default:
			other = k
		}
	}
	path := f.Info().Path
	switch {
	case same != nil && mapping.IsOwnData(s.Key) && !f.IsRejects():
		differ := fmt.Sprintf("missing: %d", same.MissingColumns)
		if len(same.NewColumns) > 0 {
			differ = "new: " + quoted(same.NewColumns)
		}
		return fmt.Errorf("%s: a file with nearly these columns was imported before, and the whole row is the key "+
			"(%s): every row would make a new lead\n"+
			"hint: name the column that makes a row the same row on the next run, as in key: \"{id}\", or restore "+
			"the columns", path, differ)
	case same == nil && other != nil:
		some := ""
		if other.MissingColumns+len(other.NewColumns) > 0 {
			some = "some of "
		}
		return fmt.Errorf("%s: a file with %sthese columns was imported with %s. The mapping now says %s: every row "+
			"would make a new lead\n"+
			"hint: restore key, namespace and source of the mapping", path, some, keyOf(other.Key, other.Namespace),
			keyOf(s.Key, s.Namespace))
	}
	return nil
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
