package inputs

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"leadferry/importer/source"
	"leadferry/internal/cli/exit"
	"leadferry/mapping"
	"leadferry/mapping/propose"
)

// Bounds of what a proposal is made from: a file may have wide rows and long cells.
const (
	maxSampleRows  = 10_000
	maxSampleCell  = 1000     // bytes of a cell that are looked at
	maxSampleBytes = 64 << 20 // of the cells, and of standard input
	cellSize       = 32       // bytes that a cell takes beside its text
	maxTitles      = 30       // lines above a header that are looked for
	maxTried       = 100      // rows that are read to look for them
	maxTail        = 12       // last rows that may be below the table
)

// What is said of a line that cannot be read.
const (
	nothingWritten = "; no mapping was written, since a header or leads would be missed"
	quotesHint     = "mend the quotes of this line, or where quotes are text, write the mapping by hand with source: " +
		"{quote: none}"
)

// Sample reads the first rows of a file, or of standard input, for a proposal. Titles above the header and totals below
// the rows are left out where more can be read so. A row whose bytes or quotes cannot be read is refused: it may be the
// header, and the row behind it a lead.
func Sample(c *cli.Context, stdin io.Reader, name string) (propose.Input, error) {
	from, err := reading{name: name}, error(nil)
	if name == "-" {
		from.piped, err = io.ReadAll(io.LimitReader(stdin, maxSampleBytes+1))
		if err == nil && len(from.piped) > maxSampleBytes {
			err = exit.Usage(fmt.Sprintf("standard input holds more than %d MiB", maxSampleBytes>>20),
				"write it to a file first, and name that")
		}
		if err != nil {
			return propose.Input{}, err
		}
	}
	s, err := from.sample(sourceOptions(c, mapping.Source{}))
	if err != nil {
		return propose.Input{}, err
	}
	if len(s.Rows) == 0 && s.lost() > 0 {
		return propose.Input{}, exit.Usage(fmt.Sprintf("%s:%d: no row can be read: %s", name, s.Bad[0].Line,
			s.Bad[0].Why), "name the format of the file with --format, or export it again")
	}
	return s.Input, nil
}

// reading is a file that is read several times, in several ways.
type reading struct {
	name  string
	piped []byte // standard input
}

// sample is the file without what is above and below its table.
func (from reading) sample(o source.Options) (*sample, error) {
	s, err := from.read(o, maxSampleRows)
	if err != nil || s.Format == string(source.JSONL) {
		return s, err
	}
	if o.SkipRows, err = from.titles(o, s); err == nil && o.SkipRows > 0 {
		s, err = from.read(o, maxSampleRows)
	}
	if err != nil {
		return nil, err
	}
	if o.Footer = s.footer(); o.Footer != nil {
		without, err := from.read(o, maxSampleRows)
		least := max(1, len(s.Rows)-len(s.tail)) // of fewer, a lead is called like a sum
		if err == nil && len(without.Rows) >= least && without.lost() <= s.lost() {
			return without, nil
		}
	}
	return s, nil
}

// titles are how many lines there are above the header: that is the first line with names that are known and rows that
// fit below it. Without one it is the line below which most rows fit, if most do not fit below the first.
func (from reading) titles(o source.Options, usual *sample) (lines int, err error) {
	best := 0.0
	for s := usual; o.SkipRows <= maxTitles; o.SkipRows++ {
		if o.SkipRows > 0 {
			if s, err = from.read(o, maxTried); err != nil || len(s.Rows)+s.lost() == 0 {
				return lines, nil // no more lines
			}
		}
		fit, isLead := s.share(), propose.BeginsWithLead(s.Columns, s.Rows)
		known := propose.Known(s.Columns)
		names := known > 1 && (o.SkipRows == 0 || known*2 >= len(s.Columns))
		switch {
		case s.hidesCells() && (s.lost() > 0 || len(s.Columns) == 1):
			return 0, exit.Usage(fmt.Sprintf("%s:%d: a quote of this line does not fit%s", from.name, o.SkipRows+1,
				nothingWritten), quotesHint)
		case isLead && o.SkipRows == 0, names && fit >= 0.5:
			return o.SkipRows, nil
		case !isLead && fit > best && usual.share() < 0.5:
			best, lines = fit, o.SkipRows
		}
	}
	return lines, nil
}

// footer fits the first row below the table: the last rows hold little, and one of them begins with a word for totals.
// Rows before that one which do not fit are below the table, too. It is nil where there are none.
func (s *sample) footer() *regexp.Regexp {
	first := slices.IndexFunc(s.tail, func(l thinRow) bool { return propose.FooterWord(l.text) != "" })
	if first < 0 || !s.Complete {
		return nil
	}
	for first > 0 && s.tail[first-1].bad {
		first--
	}
	text := s.tail[first].text
	return regexp.MustCompile(`^"?` + regexp.QuoteMeta(cmp.Or(propose.FooterWord(text), text)))
}

// read reads the first rows in one way.
func (from reading) read(o source.Options, most int) (*sample, error) {
	if from.name == "-" {
		o.Stdin = bytes.NewReader(from.piped)
	}
	f, err := openInput(from.name, o)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	s := &sample{index: map[string]int{}}
	if err := s.take(f, most); err != nil {
		return nil, err
	}
	for i, cells := range s.Rows { // earlier ones lack the columns that came later
		s.Rows[i] = append(slices.Clip(cells), make([]string, len(s.Columns)-len(cells))...)
	}
	s.File, s.Warnings = from.name, f.Warnings()
	s.Source = mapping.Source{
		Format: f.Info().Format, Sheet: o.Sheet, List: o.List, Delimiter: o.Delimiter, Columns: s.Columns,
		SkipRows: o.SkipRows, Footer: o.Footer,
	}
	if o.Encoding != "" {
		s.Encoding = f.Info().Encoding
	}
	return s, nil
}

// sample is a file as far as it was read in one way: rows of any shape below the columns that any of them has.
type sample struct {
	propose.Input
	index map[string]int // of the columns
	bytes int
	codes []string  // of the problems in Bad
	tail  []thinRow // the last rows, if none of them holds as much as a lead
}

// thinRow is a row that holds little, or does not fit: text is its first cell that is not empty.
type thinRow struct {
	text string
	bad  bool
}

// hidesCells reports whether a quote in the header may hide what parts its cells.
func (s *sample) hidesCells() bool {
	text := strings.Join(s.Columns, "")
	return strings.Contains(text, `"`) && strings.ContainsAny(text, ";,\t|")
}

// share is the part of the rows that could be read.
func (s *sample) share() float64 { return float64(len(s.Rows)) / float64(max(1, len(s.Rows)+s.lost())) }

// lost is how many rows could not be read.
func (s *sample) lost() (n int) {
	for _, u := range s.Bad {
		n += u.Rows
	}
	return n
}

// take takes rows as long as there is room.
func (s *sample) take(f *source.File, most int) error {
	s.learn(f.Header())
	for len(s.Rows)+s.lost() < most && s.bytes < maxSampleBytes {
		var row source.Row // keeps its cells
		err := f.Next(&row)
		switch lost, structure := errors.AsType[*source.LostError](err); {
		case errors.Is(err, io.EOF):
			s.Complete = true
			return nil
		case structure:
			return exit.Usage(lost.Error(), cmp.Or(lost.Hint, "mend the file, or fetch it again"))
		case err != nil:
			return err
		case row.Problem != nil && slices.Contains([]string{"encoding", "nul", "quote"}, row.Problem.Code):
			return exit.Usage(fmt.Sprintf("%s:%d: %s%s", f.Info().Path, row.Line, row.Problem.Text, nothingWritten),
				cmp.Or(row.Problem.Hint, quotesHint))
		case row.Problem != nil:
			s.lose(&row)
		case row.Repeats:
			s.Repeats++
		default:
			s.add(&row)
		}
		s.noteTail(&row)
	}
	return nil
}

// noteTail keeps a row that may be below the table.
func (s *sample) noteTail(row *source.Row) {
	bad, cells := row.Problem != nil, row.Cells
	if bad {
		cells = strings.Split(row.Text, ",")
	}
	text, filled := "", 0
	for _, cell := range cells {
		if cell = strings.Trim(cell, "\" \t"); cell != "" {
			text = cmp.Or(text, cell)
			filled++
		}
	}
	text = strings.Clone(text[:min(len(text), maxSampleCell)])
	if bad || filled*4 <= len(s.Columns) || filled*2 <= len(s.Columns) && propose.FooterWord(text) != "" {
		s.tail = append(s.tail[max(0, len(s.tail)+1-maxTail):], thinRow{text, bad})
	} else {
		s.tail = nil
	}
}

// lose counts a row that cannot be read by its kind of problem.
func (s *sample) lose(row *source.Row) {
	i := slices.Index(s.codes, row.Problem.Code)
	if i < 0 {
		i, s.codes = len(s.codes), append(s.codes, row.Problem.Code)
		s.Bad = append(s.Bad, propose.Unread{Why: row.Problem.String(), Line: row.Line})
	}
	s.Bad[i].Rows++
}

// learn takes the columns of a header, or those that an object has and none before it.
func (s *sample) learn(h *source.Header) {
	for _, name := range h.Names[:h.Own] {
		if _, known := s.index[name]; !known || !h.Open {
			s.index[name] = len(s.Columns)
			s.Columns = append(s.Columns, name)
		}
	}
}

func (s *sample) add(row *source.Row) {
	if row.Header.Open {
		s.learn(row.Header)
	}
	cells := make([]string, len(s.Columns))
	for i, name := range row.Header.Names[:row.Header.Own] {
		cell := row.Cells[i]
		if len(cell) > maxSampleCell {
			cell = strings.ToValidUTF8(cell[:maxSampleCell], "")
		}
		at := i // of a table, where a name may be there twice
		if row.Header.Open {
			at = s.index[name]
		}
		cells[at] = strings.Clone(cell) // the row's other cells need not be kept
		s.bytes += len(cell) + cellSize
	}
	s.Rows = append(s.Rows, cells)
}
