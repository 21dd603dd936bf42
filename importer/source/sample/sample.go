// Package sample reads the first rows of a file, without titles above its header and totals below its rows. Package
// propose guesses a mapping from them. It refuses a file if it would miss the header or a lead. Its errors hold hints.
package sample

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"leadferry/importer/source"
	"leadferry/internal/spelling"
	"leadferry/mapping"
	"leadferry/mapping/propose"
)

// Limits of a sample, since a file may have wide rows and long cells.
const (
	maxSampleRows  = 10_000
	maxSampleCells = 2_000_000
	maxSampleCell  = 1000     // bytes of a cell that are kept
	maxSampleBytes = 64 << 20 // of all cells, and of standard input
	maxTitles      = 30       // lines that may be above a header
	maxTried       = 100      // rows to read below each line that may be the header
)

// Texts about a line that cannot be read.
const (
	noMapping  = "; no mapping was written, since a header or leads would be missed"
	quotesHint = "correct the quotes of this line; or write the mapping by hand, with source: {skip_rows: 1} for " +
		`a title above the header, {quote: none} where quotes are text, {escape: "\\"} where a backslash is before them`
)

// Read reads the first rows of a file, or of standard input, for a proposal. It leaves out titles above the header and
// totals below the rows, if more rows can be read then. It refuses a file with a row whose bytes or quotes cannot be
// read: this row may be the header, or hide a lead.
func Read(o source.Options, stdin io.Reader, name string) (propose.Input, error) {
	from, err := reading{name: name}, error(nil)
	if name == "-" {
		if from.piped, err = io.ReadAll(io.LimitReader(stdin, maxSampleBytes+1)); err != nil {
			return propose.Input{}, err
		}
		if len(from.piped) > maxSampleBytes {
			text := fmt.Sprintf("holds more than %d MiB", maxSampleBytes>>20)
			return propose.Input{}, refused("standard input", 0, text, "write it to a file first, and name that")
		}
	}
	s, err := from.sample(o)
	if err != nil {
		return propose.Input{}, err
	}
	if len(s.Rows) == 0 && s.Unread.Rows > 0 {
		return propose.Input{}, refused(name, s.Unread.Line, "no row can be read: "+s.unread.Text,
			cmp.Or(s.unread.Hint, "name its format with --format, or export it again"))
	}
	return s.Input, nil
}

// refused returns the error about a line of a file, with what to do.
func refused(file string, line int, text, hint string) error {
	return errors.New(spelling.Sentence(file, line, 0, text, hint))
}

// reading is a file that is read several times with different options.
type reading struct {
	name  string
	piped []byte // standard input
}

// sample reads the table in the file, without what is above and below it.
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
	return from.cutFooter(o, s), nil
}

// titles returns how many lines are above the header. The header is the first line with known names and rows that fit
// below it. If some of its columns have no name, it may name groups of columns: then the line below it is the header if
// more of its names are known. Without known names, it is the first line, if most rows fit it, else the best-fitting.
func (from reading) titles(o source.Options, usual *sample) (lines int, err error) {
	best, groups, group, header := 0.0, 0, false, []string(nil)
	for s := usual; o.SkipRows <= maxTitles; o.SkipRows++ {
		if o.SkipRows > 0 { // a line without names is no header; below a blank line, the same header is read again
			if s, err = from.read(o, maxTried); err != nil || slices.Equal(s.Columns, header) {
				continue
			}
		}
		header = s.Columns
		fit, isLead := s.share(), propose.BeginsWithLead(s.Columns, s.Rows)
		known := propose.Known(s.Columns)
		first, most := o.SkipRows == 0, known*2 >= len(s.Columns)
		names := known > max(1, groups) && (first || most) && (first && most && len(s.Columns) > 2 || fit >= 0.5)
		switch {
		case group && !names && known > 1 && most:
			return 0, refused(from.name, o.SkipRows+1, "this line names columns, too"+noMapping,
				"make one header line of both lines")
		case o.SkipRows > 0 && len(s.Rows)+s.Unread.Rows == 0, group && !names: // no more lines, or no other header
			return lines, nil
		case s.hidesCells() && (s.Unread.Rows > 0 || len(s.Columns) == 1):
			return 0, refused(from.name, o.SkipRows+1, "a quote of this line does not fit"+noMapping, quotesHint)
		case names && !group && slices.Contains(s.Columns, ""):
			lines, groups, group = o.SkipRows, known, true
		case isLead && first, names:
			return o.SkipRows, nil
		case !isLead && fit > best && usual.share() < 0.5:
			best, lines = fit, o.SkipRows
		}
	}
	return lines, nil
}

// noName matches words of footers that begin the name of no lead, unlike Total or Ende. What follows may change daily.
var noName = spelling.Form(`(?i) |^(?:exported|generated|copyright|confidential)$`)

// cutFooter leaves out a footer, if it has a word for totals and its pattern fits no row before it.
func (from reading) cutFooter(o source.Options, s *sample) *sample {
	if !s.totals || !s.Complete {
		return s
	}
	o.Footer = regexp.MustCompile(s.footer)
	without, err := from.read(o, maxSampleRows)
	if err != nil || len(without.Rows) < max(1, s.leads) {
		return s
	}
	return without
}

// read reads the first rows with these options.
func (from reading) read(o source.Options, most int) (*sample, error) {
	if from.name == "-" {
		o.Stdin = bytes.NewReader(from.piped)
	}
	f, err := source.Open(from.name, o)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	s := &sample{index: map[string]int{}}
	if err := s.take(f, most); err != nil {
		return nil, err
	}
	for i, cells := range s.Rows { // fill up rows that came before a new column
		s.Rows[i] = append(slices.Clip(cells), make([]string, len(s.Columns)-len(cells))...)
	}
	s.File, s.Warnings = from.name, append(f.Warnings(), s.Warnings...)
	if s.lone > 0 {
		const text = "rows with one cell only: %d, the last on line %d; if these are no leads, export without them, " +
			"or leave them out with skip_if"
		s.Warnings = append(s.Warnings, fmt.Sprintf(text, s.lone, s.loneLine))
	}
	s.Source = mapping.Source{
		Format: f.Info().Format, Sheet: o.Sheet, List: o.List, Delimiter: o.Delimiter, Columns: s.Columns,
		SkipRows: o.SkipRows, Footer: o.Footer,
	}
	if o.Encoding != "" {
		s.Encoding = f.Info().Encoding
	}
	return s, nil
}

// sample is what one reading of the file found: rows of any shape, and the columns that any of them has.
type sample struct {
	propose.Input
	index  map[string]int // of the columns
	bytes  int
	unread *source.Problem // of the first row that could not be read

	lone, loneLine int // how many rows of a wide table have only one cell, and the line of the last one

	footer string // a pattern for the first row of a possible footer
	leads  int    // how many rows are before the footer
	totals bool   // the footer has a word for totals
}

// hidesCells reports whether a quote in the header may hide a delimiter.
func (s *sample) hidesCells() bool {
	text := strings.Join(s.Columns, "")
	return s.Format != string(source.XLSX) && strings.Contains(text, `"`) && strings.ContainsAny(text, ";,\t|")
}

// share returns the share of the rows that could be read, from 0 to 1.
func (s *sample) share() float64 {
	return float64(len(s.Rows)) / float64(max(1, len(s.Rows)+s.Unread.Rows))
}

// take reads rows until a limit is reached or the file ends.
func (s *sample) take(f *source.File, most int) error {
	s.addColumns(f.Header())
	for len(s.Rows)+s.Unread.Rows < most && len(s.Rows)*len(s.Columns) < maxSampleCells && s.bytes < maxSampleBytes {
		var row source.Row // keeps its cells
		err := f.Next(&row)
		if len(row.Faults) > 0 { // without this, a column with only faults looks empty
			row.Problem = &row.Faults[0].Problem
		}
		switch lost, structure := errors.AsType[*source.LostError](err); {
		case errors.Is(err, io.EOF):
			s.Complete = true
			return nil
		case structure:
			return fmt.Errorf("%w\nhint: %s", lost, cmp.Or(lost.Hint, "correct the file, or fetch it again"))
		case row.Problem != nil && slices.Contains([]string{"encoding", "nul", "quote"}, row.Problem.Code):
			return refused(f.Info().Path, row.Line, row.Problem.Text+noMapping, cmp.Or(row.Problem.Hint, quotesHint))
		case row.Problem != nil:
			if s.Unread.Rows++; s.Unread.Rows == 1 {
				s.Unread.Line, s.Unread.Why, s.unread = row.Line, row.Problem.String(), row.Problem
			}
		case row.Repeats:
			s.Repeats++
		default:
			s.add(&row)
		}
		s.trackFooter(&row)
	}
	return nil
}

// trackFooter notes where a footer may begin: at a row that cannot be read or starts with a word for totals. After that
// word, rows with few cells belong to the footer, too. A row with more cells is a lead: no footer was before it.
func (s *sample) trackFooter(row *source.Row) {
	bad, cells := row.Problem != nil, row.Cells
	if bad {
		cells = strings.Split(row.Text, ",")
	}
	first, filled := "", 0
	for _, cell := range cells {
		if cell = strings.Trim(cell, "\" \t"); cell != "" {
			first, filled = cmp.Or(first, cell), filled+1
		}
	}
	if filled == 1 && !bad && len(s.Columns) > 3 {
		s.lone, s.loneLine = s.lone+1, row.Line
	}
	word := propose.FooterWord(first)
	totals := word != "" && (bad || filled*2 <= len(s.Columns))
	switch {
	case !bad && !totals && (!s.totals || filled*4 > len(s.Columns)):
		s.footer, s.totals, s.leads = "", false, len(s.Rows)
	case s.footer == "":
		words := strings.FieldsFunc(strings.Join(cells, " "), func(r rune) bool { return !unicode.IsLetter(r) })
		switch s.footer = `^"?` + regexp.QuoteMeta(strings.ToValidUTF8(first[:min(len(first), 100)], "")); {
		case len(words) > len(strings.Fields(word)) && noName().MatchString(word):
			s.footer = `^"?` + regexp.QuoteMeta(word) + `(?:\PL|$)`
		case word != "" && len(words) <= 50: // the whole row: a lead may be called Summers or Total Energies
			s.footer = `^"?` + strings.Join(words, `\PL+`) + `\PL*$`
		}
	}
	s.totals = s.totals || totals
}

// addColumns adds all columns of a table's header, or the new ones of an object.
func (s *sample) addColumns(h *source.Header) {
	for _, name := range h.Names[:h.Own] {
		if _, known := s.index[name]; !known || !h.Open {
			s.index[name] = len(s.Columns)
			s.Columns = append(s.Columns, name)
		}
	}
}

func (s *sample) add(row *source.Row) {
	if row.Header.Open {
		s.addColumns(row.Header)
	}
	cells := make([]string, len(s.Columns))
	for i, name := range row.Header.Names[:row.Header.Own] {
		cell := row.Cells[i]
		if len(cell) > maxSampleCell {
			cell = strings.ToValidUTF8(cell[:maxSampleCell], "")
		}
		at := i // a table may have two columns with the same name
		if row.Header.Open {
			at = s.index[name]
		}
		cells[at] = strings.Clone(cell) // so that the memory of the row can be freed
		s.bytes += len(cell)
	}
	s.Rows = append(s.Rows, cells)
}
