package cli

import (
	"cmp"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"leadferry/importer/source"
	"leadferry/mapping"
	"leadferry/mapping/propose"
)

// sample reads the first rows of a file.
func (p *program) sample(c *cli.Context, name string) (propose.Input, error) {
	in := propose.Input{File: name}
	o, err := p.sourceOptions(c, mapping.Source{})
	if err != nil {
		return in, err
	}
	f, err := openInput(name, o)
	if err != nil {
		return in, err
	}
	defer f.Close()
	var s sampler
	in.Complete, err = s.read(f)
	if lost := (*source.LostError)(nil); errors.As(err, &lost) {
		return in, usage(lost.Error(), cmp.Or(lost.Hint, "mend the file, or fetch it again"))
	}
	if err != nil {
		return in, err
	}
	in.Columns, in.Rows, in.Bad = s.columns, s.rows, s.bad
	in.FindHeader()
	info := f.Info()
	in.Format, in.Sheet = info.Format, o.Sheet
	in.Delimiter = o.Delimiter
	if o.Encoding != "" {
		in.Encoding = info.Encoding
	}
	return in, nil
}

// Bounds of what a proposal is made from: a file may have wide rows and long cells.
const (
	maxSampleRows  = 10_000
	maxSampleCells = 2_000_000
	maxSampleCell  = 1000 // bytes of a cell that are looked at
	maxSampleBytes = 64 << 20
)

// sampler gathers rows of any shape under the columns that any of them has.
type sampler struct {
	columns []string
	index   map[string]int
	rows    [][]string
	bad     int
	bytes   int
}

// read takes rows as long as there is room and reports whether those are all.
func (s *sampler) read(f *source.File) (complete bool, err error) {
	s.index = map[string]int{}
	s.learn(f.Header())
	defer s.square()
	for !s.full() {
		var row source.Row // keeps its cells
		switch err := f.Next(&row); {
		case errors.Is(err, io.EOF):
			return true, nil
		case err != nil:
			return false, err
		case row.Problem != nil:
			s.bad++
		case row.Repeats:
		default:
			s.add(&row)
		}
	}
	return false, nil
}

func (s *sampler) full() bool {
	n := len(s.rows)
	return n+s.bad >= maxSampleRows || n*len(s.columns) >= maxSampleCells || s.bytes >= maxSampleBytes
}

// learn takes the columns of a header, or those that an object has and none before it.
func (s *sampler) learn(h *source.Header) {
	for _, name := range h.Names[:h.Own] {
		if _, known := s.index[name]; !known || !h.Open {
			s.index[name] = len(s.columns)
			s.columns = append(s.columns, name)
		}
	}
}

func (s *sampler) add(row *source.Row) {
	if row.Header.Open {
		s.learn(row.Header)
	}
	cells := make([]string, len(s.columns))
	for i, name := range row.Header.Names[:row.Header.Own] {
		cell := row.Cells[i]
		if len(cell) > maxSampleCell {
			cell = strings.ToValidUTF8(cell[:maxSampleCell], "")
		}
		at := i // of a table, where a name may stand twice
		if row.Header.Open {
			at = s.index[name]
		}
		cells[at] = strings.Clone(cell) // the row's other cells need not be kept
		s.bytes += len(cell)
	}
	s.rows = append(s.rows, cells)
}

// square gives every row all the columns: earlier ones lack those that came later.
func (s *sampler) square() {
	for i, cells := range s.rows {
		s.rows[i] = append(slices.Clip(cells), make([]string, len(s.columns)-len(cells))...)
	}
}
