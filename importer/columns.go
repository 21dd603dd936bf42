package importer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/dustin/go-humanize/english"

	"leadferry/checkpoint"
	"leadferry/importer/report"
	"leadferry/importer/source"
	"leadferry/internal/spelling"
	"leadferry/mapping"
)

// How much of a misfit is shown: places, columns, characters of a column's name.
const mostMissing, mostColumns, longColumn = 5, 8, 30

// misfit is the error for an input without the columns that the mapping names. It shows the first places that name
// them, and the columns that the input has.
func (r *intake) misfit(f *source.File, missing mapping.Errors) error {
	path, h, names := f.Info().Path, f.Header(), missing[0].File
	columns := h.Names[:h.Own]
	hint := fmt.Sprintf("its columns are %s: is it the right file, and is its header on this line?", quoted(columns))
	sheets := f.Sheets()
	if len(sheets) > 0 {
		hint = fmt.Sprintf("the workbook also holds the sheets %s: choose one with --sheet NAME",
			spelling.List(sheets, mostColumns, nil))
	}
	switch more := len(missing) - mostMissing; {
	case r.options.LooksLikeRow != nil && r.options.LooksLikeRow(columns, firstRows(f)):
		// the columns may be people's data: they are not shown
		return fmt.Errorf("%s: what was taken for its header looks like a row, and does not fit %s\n"+
			"hint: a file without a header needs source: {header: false, columns: [...]} in the mapping, with names "+
			"for its %s; leadferry init writes them", path, names, english.Plural(len(columns), "column", ""))
	case more > 0:
		return fmt.Errorf("%w\n%s: lacks columns that %s names in %d more places\nhint: %s", missing[:mostMissing],
			path, names, more, hint)
	case len(sheets) > 0:
		return fmt.Errorf("%w\nhint: %s", missing, hint)
	}
	return missing
}

// firstRows are the cells of a file's first rows; none for standard input, which may have to be waited for.
func firstRows(f *source.File) (rows [][]string) {
	const most = 100
	if f.Info().Path == "-" || f.Header().Open {
		return nil
	}
	f.ReadAhead(most)
	for _, row := range f.Ahead() {
		if row.Problem == nil {
			rows = append(rows, row.Cells[:f.Header().Own])
		}
	}
	return rows
}

func quoted(names []string) string {
	return spelling.List(names, mostColumns, func(name string) string {
		return strconv.Quote(report.Shortened(name, longColumn))
	})
}

// How far JSONL is read to find its columns, before anything is sent: objects, and bytes that stay in memory.
const firstObjects, firstBytes = 1000, 16 << 20

// shapes say, for each input, by which columns, key and namespace its rows become leads. A shape that the checkpoint
// does not know yet is stored with the first claim.
type shapes []atomic.Pointer[checkpoint.Shape]

// newShapes compares each input with the shapes that the checkpoint knows. It refuses a file with nearly the columns of
// a known one but another key: every row would make another lead.
func newShapes(ctx context.Context, o *Options, l *checkpoint.Ledger) (shapes, error) {
	list := make(shapes, len(o.Inputs))
	var refused []error
	var ids []string // of the refused inputs
	for i, f := range o.Inputs {
		shape := o.shapeOf(f)
		known, kin, err := checkpoint.Noted(ctx, l, shape)
		if err != nil {
			return nil, err
		}
		if known {
			continue
		}
		list[i].Store(&shape)
		if err := refuseShape(f, &shape, kin); err != nil {
			kind := checkpoint.KindOf(&shape)
			refused, ids = append(refused, err), append(ids, kind.ID())
		}
	}
	switch answer := checkpoint.AnswerID(ids); {
	case len(refused) == 0 && o.NewKey != "":
		return nil, fmt.Errorf("--new-key=%s answers nothing: files with these columns were already imported with "+
			"this key, or never\nhint: leave it out", o.NewKey)
	case len(refused) > 0 && o.NewKey != answer:
		return nil, fmt.Errorf("%w; if new leads are meant: --new-key=%s", errors.Join(refused...), answer)
	}
	return list, nil
}

func (o *Options) shapeOf(f *source.File) checkpoint.Shape {
	return checkpoint.Shape{Columns: columnsOf(f), Key: o.keyForm(f), Namespace: o.Mapping.Namespace()}
}

// keyForm is the effective key, as text. If the row's own data are the key, it includes the source settings that change
// cells: read with others, each row would have another key.
func (o *Options) keyForm(f *source.File) string {
	form, s := o.Mapping.KeyForm(), &o.Mapping.Source
	if form != "" {
		return form
	}
	var settings []string
	set := func(is bool, setting string) {
		if is {
			settings = append(settings, setting)
		}
	}
	encoding := strings.ToLower(f.Info().Encoding)
	set(encoding != "" && encoding != "utf-8", "encoding "+encoding)
	set(s.NoQuotes, "quote none")
	set(s.Backslash, "escape backslash")
	null := strings.Join(s.Null, ", ")
	set(null != "", "null "+null)
	return strings.Join(settings, "; ")
}

// of is the shape to store with a claim of an input, or nil.
func (s shapes) of(input int) *checkpoint.Shape {
	if s == nil {
		return nil
	}
	return s[input].Load()
}

// ownData reports whether the row's own data are the key: any other form names a column.
func ownData(form string) bool { return !strings.Contains(form, "{") }

// refuseShape refuses a file with nearly the columns of known ones but another key, or returns nil. The rejects of a
// run have the columns of its input, or fewer.
func refuseShape(f *source.File, s *checkpoint.Shape, kin []checkpoint.Kin) error {
	var same, other *checkpoint.Kin
	for i := range kin {
		if k := &kin[i]; k.Key == s.Key && k.Namespace == s.Namespace {
			same = k
		} else {
			other = k
		}
	}
	path := f.Info().Path
	switch {
	case ownData(s.Key) && isRejects(f):
		return nil
	case same != nil && ownData(s.Key):
		differ := fmt.Sprintf("missing: %d", same.Lacking)
		if len(same.Strange) > 0 {
			differ = "new: " + quoted(same.Strange)
		}
		return fmt.Errorf("%s: a file with nearly these columns was imported before, and the whole row is the key "+
			"(%s): every row would make a new lead\n"+
			"hint: name the column that makes a row the same row on the next run, as in key: \"{id}\", or restore "+
			"the columns", path, differ)
	case same == nil && other != nil:
		return fmt.Errorf("%s: a file with these columns was imported with %s. The mapping now says %s: every row "+
			"would make a new lead\n"+
			"hint: restore key, namespace and source of the mapping", path, keyOf(other.Key, other.Namespace),
			keyOf(s.Key, s.Namespace))
	}
	return nil
}

func isRejects(f *source.File) bool {
	h := f.Header()
	if h.Open && f.ReadAhead(1) == 1 {
		h = f.Ahead()[0].Header
	}
	return h != nil && h.Rejects
}

func keyOf(key, namespace string) string {
	text := "key " + key
	if ownData(key) {
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

// columnsOf are the columns of an input. For JSONL they are the keys that all of the first objects have.
func columnsOf(f *source.File) []string {
	h := f.Header()
	if !h.Open {
		return h.Names[:h.Own]
	}
	var names []string // of the first row
	times := map[string]int{}
	size, rows := 0, 0
	for n := 1; n <= firstObjects && size < firstBytes && f.LookAhead(n) == n; n++ {
		row := &f.Ahead()[n-1]
		size += len(row.Raw)
		h := row.Header
		if row.Problem != nil || h == nil || h.Own == 0 {
			continue
		}
		if rows++; rows == 1 {
			names = h.Names[:h.Own]
		}
		for _, name := range h.Names[:h.Own] {
			times[name]++
		}
	}
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return times[name] < rows })
}
