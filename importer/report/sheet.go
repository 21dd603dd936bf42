package report

import (
	"encoding/csv"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A sheet is one rejects file: rows of one header, or JSONL.
type sheet struct {
	out       *output
	csv       *csv.Writer // nil: JSONL
	delimiter rune
	names     []string
}

// newSheet begins a CSV file with the byte order mark by which Excel knows UTF-8,
// and the header.
func newSheet(out *output, delimiter rune, names []string) (*sheet, error) {
	s := &sheet{out: out, delimiter: delimiter, names: slices.Clone(names), csv: csv.NewWriter(out)}
	s.csv.Comma = delimiter
	if _, err := out.Write([]byte("\uFEFF")); err != nil {
		return nil, err
	}
	header := append(slices.Clone(names), notePrefix+"line", notePrefix+"outcome", notePrefix+"error", notePrefix+"text")
	return s, s.csv.Write(header)
}

func (s *sheet) fits(delimiter rune, names []string) bool {
	return s.csv != nil && s.delimiter == delimiter && slices.Equal(s.names, names)
}

func (s *sheet) write(rej *Reject) error {
	if s.csv == nil {
		_, err := s.out.Write(append(rej.object(), '\n'))
		return err
	}
	row := make([]string, len(s.names), len(s.names)+4)
	copy(row, rej.Cells)
	return s.csv.Write(append(row, strconv.Itoa(rej.Line), rej.Outcome, Cell(rej.Error), rej.Text))
}

func (s *sheet) flush() error {
	if s.csv != nil {
		s.csv.Flush()
		if err := s.csv.Error(); err != nil {
			return err
		}
	}
	return s.out.buffer.Flush()
}

// sheet finds or begins the rejects file for a row; nil means that none is wanted.
func (r *Run) sheet(in Input, names []string) (*sheet, error) {
	jsonl, delimiter := in.Format == "jsonl", in.Delimiter
	if delimiter == 0 {
		delimiter = ','
	}
	i := slices.IndexFunc(r.rejects, func(s *sheet) bool {
		return jsonl && s.csv == nil || !jsonl && s.fits(delimiter, names)
	})
	if i >= 0 {
		return r.rejects[i], nil
	}
	out, err := r.rejectsFile(in.Format)
	if out == nil || err != nil {
		return nil, err
	}
	s := &sheet{out: out}
	switch {
	case !jsonl:
		s, err = newSheet(out, delimiter, names)
	case in.Marked:
		_, err = out.Write([]byte("\uFEFF"))
	}
	r.rejects = append(r.rejects, s)
	return s, err
}

// rejectsFile opens the next rejects file: rejects.csv, rejects-2.csv and so on, or
// in this manner beside the named one.
func (r *Run) rejectsFile(format string) (*output, error) {
	if out := r.named; out != nil {
		r.named = nil
		return out, nil
	}
	extension := ".csv"
	if format == "jsonl" || format == "tsv" {
		extension = "." + format
	}
	path := r.path(r.files.Rejects, "rejects"+extension)
	if path == "" {
		return nil, nil
	}
	if n := len(r.rejects); n > 0 {
		path = fmt.Sprintf("%s-%d%s", strings.TrimSuffix(path, filepath.Ext(path)), n+1, extension)
	}
	return r.create(path)
}
