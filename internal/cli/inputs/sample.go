package inputs

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"leadferry/importer/source"
	"leadferry/internal/cli/exit"
	"leadferry/mapping"
	"leadferry/mapping/propose"
)

// Sample reads the first rows of a file, or of standard input, in the way in which most of them can be read.
func Sample(c *cli.Context, stdin io.Reader, name string) (propose.Input, error) {
	o, err := sourceOptions(c, mapping.Source{})
	if err != nil {
		return propose.Input{}, err
	}
	l := &layout{name: name}
	if name == "-" {
		l.piped, err = io.ReadAll(io.LimitReader(stdin, maxPiped))
		l.rest = stdin
	}
	if err != nil {
		return propose.Input{}, err
	}
	r := l.best(o)
	if lost, ok := errors.AsType[*source.LostError](r.err); ok {
		r.err = exit.Usage(lost.Error(), cmp.Or(lost.Hint, "mend the file, or fetch it again"))
	}
	if r.err == nil && len(r.rows) == 0 && len(r.bad) > 0 {
		r.err = exit.Usage(fmt.Sprintf("%s:%d: no row can be read: %s", name, r.bad[0].Line, r.bad[0].Why), "name the format of the file with --format, or export it anew")
	}
	return r.input(name), r.err
}

// maxPiped is how much of standard input is kept to be read once more, in bytes. Of more than
// that, only the usual way of reading is tried.
const maxPiped = 16 << 20

// sampled is a file as far as it was read in one way: rows of any shape under the columns that any of them has.
type sampled struct {
	options  source.Options
	info     source.Info
	complete bool
	warnings []string
	err      error

	columns []string
	index   map[string]int
	rows    [][]string
	bad     []propose.Unread
	lost    int // rows that could not be read
	unread  unread
	repeats int
	bytes   int

	delimiter rune
	tail      []lastRow
}

// read reads the first rows with these options.
func (l *layout) read(o source.Options) *sampled {
	r := &sampled{options: o, delimiter: o.Delimiter}
	if l.name == "-" {
		r.options.Stdin = io.MultiReader(bytes.NewReader(l.piped), l.rest)
	}
	f, err := openInput(l.name, r.options)
	if err != nil {
		r.err = err
		return r
	}
	defer f.Close()
	r.complete, r.err = r.take(f)
	r.info, r.warnings, r.delimiter = f.Info(), f.Warnings(), f.Delimiter()
	return r
}

// input is the sample as proposals are made of it.
func (r *sampled) input(name string) propose.Input {
	o := &r.options
	in := propose.Input{
		Source: mapping.Source{
			Format: r.info.Format, Sheet: o.Sheet, List: o.List, Delimiter: o.Delimiter, NoHeader: o.NoHeader, Columns: r.columns,
			SkipRows: o.SkipRows, SkipFooter: o.SkipFooter, Footer: o.Footer, Comment: o.Comment, Backslash: o.Backslash,
		},
		File: name, Rows: r.rows, Complete: r.complete, Bad: r.bad, Repeats: r.repeats, Warnings: r.warnings,
	}
	if o.Encoding != "" {
		in.Encoding = r.info.Encoding
	}
	return in
}

// Bounds of what a proposal is made from: a file may have wide rows and long cells.
const (
	maxSampleRows  = 10_000
	maxSampleCells = 2_000_000
	maxSampleCell  = 1000 // bytes of a cell that are looked at
	maxSampleBytes = 64 << 20
)

// lastRow is what is kept of each of the last rows, to know a footer by.
type lastRow struct {
	line   int
	first  string // cell that holds something
	filled int    // cells
	bad    bool
}

// mostLast is how many of the last rows are kept.
const mostLast = 12

func (r *sampled) keep(row *source.Row) {
	last := lastRow{line: row.Line, bad: row.Problem != nil}
	cells := row.Cells
	if last.bad {
		cells = splitLine(row.Text, ',')
	}
	for _, cell := range cells {
		if cell = strings.TrimSpace(cell); cell == "" {
			continue
		}
		if last.filled == 0 {
			last.first = strings.Clone(cell[:min(len(cell), maxSampleCell)])
		}
		last.filled++
	}
	r.tail = append(r.tail[max(0, len(r.tail)+1-mostLast):], last)
}

// take takes rows as long as there is room and reports whether those are all.
func (r *sampled) take(f *source.File) (complete bool, err error) {
	r.index = map[string]int{}
	r.learn(f.Header())
	defer r.square()
	for !r.full() {
		var row source.Row // keeps its cells
		err := f.Next(&row)
		if err == nil {
			r.keep(&row)
		}
		switch {
		case errors.Is(err, io.EOF):
			return true, nil
		case err != nil:
			return false, err
		case row.Problem != nil:
			r.lose(&row)
		case row.Repeats:
			r.repeats++
		default:
			r.add(&row)
		}
	}
	return false, nil
}

func (r *sampled) full() bool {
	n := len(r.rows)
	return n+r.lost >= maxSampleRows || n*len(r.columns) >= maxSampleCells || r.bytes >= maxSampleBytes
}

// mostReasons is how many reasons for unread rows are told apart.
const mostReasons = 3

// lose counts a row that cannot be read by its reason.
func (r *sampled) lose(row *source.Row) {
	r.lost++
	r.unread.note(row)
	why := row.Problem.String()
	i := slices.IndexFunc(r.bad, func(u propose.Unread) bool { return alike(u.Why, why) })
	if i < 0 && len(r.bad) > mostReasons {
		i, r.bad[mostReasons].Why = mostReasons, "other reasons"
	}
	if i < 0 {
		i, r.bad = len(r.bad), append(r.bad, propose.Unread{Why: why, Line: row.Line})
	}
	r.bad[i].Rows++
}

// alike reports whether two texts differ in numbers only: the places of rows.
func alike(a, b string) bool {
	noDigits := func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}
	return strings.Map(noDigits, a) == strings.Map(noDigits, b)
}

// learn takes the columns of a header, or those that an object has and none before it.
func (r *sampled) learn(h *source.Header) {
	for _, name := range h.Names[:h.Own] {
		if _, known := r.index[name]; !known || !h.Open {
			r.index[name] = len(r.columns)
			r.columns = append(r.columns, name)
		}
	}
}

func (r *sampled) add(row *source.Row) {
	if row.Header.Open {
		r.learn(row.Header)
	}
	cells := make([]string, len(r.columns))
	for i, name := range row.Header.Names[:row.Header.Own] {
		cell := row.Cells[i]
		if len(cell) > maxSampleCell {
			cell = strings.ToValidUTF8(cell[:maxSampleCell], "")
		}
		at := i // of a table, where a name may stand twice
		if row.Header.Open {
			at = r.index[name]
		}
		cells[at] = strings.Clone(cell) // the row's other cells need not be kept
		r.bytes += len(cell)
	}
	r.rows = append(r.rows, cells)
}

// square gives every row all the columns: earlier ones lack those that came later.
func (r *sampled) square() {
	for i, cells := range r.rows {
		r.rows[i] = append(slices.Clip(cells), make([]string, len(r.columns)-len(cells))...)
	}
}
