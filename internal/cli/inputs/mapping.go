package inputs

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"leadferry/importer"
	"leadferry/importer/report"
	"leadferry/importer/source"
	"leadferry/internal/cli/exit"
	"leadferry/internal/disk"
	"leadferry/internal/shell"
	"leadferry/internal/spelling"
	"leadferry/mapping"
)

const (
	maxMapping = 1 << 20  // bytes of a mapping file
	maxTable   = 64 << 20 // bytes of a table beside it
)

// noMapping refuses a command that none is named for.
func noMapping(names []string) error {
	hint := "name it with -m; leadferry init FILE writes one for a file"
	for _, name := range names {
		if slices.Contains([]string{".yaml", ".yml"}, filepath.Ext(name)) {
			hint = "write -m " + shell.Path(name)
		}
	}
	return exit.Usage("no mapping given", hint)
}

// readMapping reads a mapping file and the tables beside it. With mistakes in them, which
// are mapping.Errors, it gives the mapping as far as it could be read, or nil.
func readMapping(path string, told func(table string)) (*mapping.Mapping, report.File, error) {
	f, err := os.Open(path)
	var data []byte
	if err == nil {
		defer f.Close()
		data, err = io.ReadAll(io.LimitReader(f, maxMapping+1))
	}
	if err != nil {
		return nil, report.File{}, exit.Usage(fmt.Sprintf("the mapping cannot be read: %v", err), cmp.Or(disk.Held(err), "check the path after -m"))
	}
	if what := source.KindOf(path, data[:min(len(data), source.KindBytes)]); what != "" && what != source.KindMapping {
		return nil, report.File{}, exit.Usage(path+" is "+what+", not a mapping file",
			"-m takes the mapping, and files with rows stand without a flag; leadferry init FILE writes a mapping for a file")
	}
	sum := sha256.New()
	sum.Write(data)
	m, err := mapping.Parse(path, data, func(name, key, value string, add func(line int, key, value string)) error {
		file := filepath.Join(filepath.Dir(path), name)
		told(file)
		t := table{file: file, columns: [2]string{key, value}, add: add}
		err := t.read()
		io.WriteString(sum, t.sha256)
		return err
	})
	return m, report.File{Path: path, SHA256: hex.EncodeToString(sum.Sum(nil))}, err
}

// withMissing adds the columns that the inputs lack to the mistakes of a mapping file, so
// that all are told at once. Inputs that cannot be opened are told another time.
func withMissing(c *cli.Context, m *mapping.Mapping, mistakes mapping.Errors) error {
	names, err := Names(c)
	if err != nil {
		return mistakes
	}
	o, err := sourceOptions(c, m.Source)
	if err != nil {
		return mistakes
	}
	for _, name := range names {
		if name == "-" {
			continue
		}
		f, err := source.Open(name, o)
		if err != nil {
			continue
		}
		h := f.Header()
		lacks := m.Lacks(name, mapping.Columns{Names: h.Names, Own: h.Own, Open: h.Open})
		f.Close()
		if len(lacks) > 0 && !h.Open {
			if taken, header := (&layout{name: name}).header(o, m.IsHeader); header > 0 {
				lacks = mapping.Errors{importer.WrongHeader(name, c.String("mapping"), taken, header)}
			}
		}
		mistakes = mistakes.And(lacks)
	}
	return mistakes
}

// table is a file beside the mapping file that is being read.
type table struct {
	file    string
	columns [2]string // of the words, and of what they become
	places  [2]int
	add     func(line int, key, value string)
	sha256  string
	errs    mapping.Errors
}

// read gives the rows of a table that is CSV or a workbook. Its error is mapping.Errors.
func (t *table) read() error {
	if info, err := os.Stat(t.file); err == nil && info.Size() > maxTable {
		t.fail(0, fmt.Sprintf("the table is longer than %d MiB", maxTable>>20), "keep what the mapping needs")
		return t.errs
	}
	f, err := source.Open(t.file, source.Options{})
	if err != nil {
		t.refuse(err)
		return t.errs
	}
	defer f.Close()
	if format := source.Format(f.Info().Format); format == source.JSONL {
		t.fail(0, "the table is JSON", "save it as CSV in UTF-8, or as an Excel workbook (.xlsx)")
		return t.errs
	}
	t.find(f.Header().Names)
	if t.errs == nil {
		t.rows(f)
	}
	t.sha256 = f.Info().SHA256
	if t.errs == nil {
		return nil
	}
	return t.errs
}

func (t *table) fail(line int, text, hint string) {
	t.errs = append(t.errs, mapping.Error{File: t.file, Line: line, Text: text, Hint: hint})
}

// refuse takes down why the file cannot be read, or no further.
func (t *table) refuse(err error) {
	refusal, known := errors.AsType[*source.OpenError](err)
	if lost, ok := errors.AsType[*source.LostError](err); ok {
		refusal, known = (*source.OpenError)(lost), true
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		t.fail(0, "there is no such file", "put the table beside the mapping file")
	case known:
		t.fail(refusal.Line, cmp.Or(refusal.Text, "cannot be read"), ofTable(refusal.Hint))
	default:
		t.fail(0, "cannot be read", "let this user read it")
	}
}

// ofTable is a hint for a table, which no flag and nothing under source is about.
func ofTable(hint string) string {
	if strings.Contains(hint, "--") || strings.Contains(hint, "source") || strings.Contains(hint, "standard input") {
		return "save the table as CSV in UTF-8, or as an Excel workbook (.xlsx)"
	}
	return hint
}

// find looks for the columns.
func (t *table) find(names []string) {
	for i, column := range t.columns {
		t.places[i] = slices.Index(names, column)
		switch {
		case t.places[i] < 0:
			t.fail(0, fmt.Sprintf("the table has no column %q", column), cmp.Or(spelling.Hint(column, names), "it has "+spelling.List(names, mostNamed, strconv.Quote)))
		case slices.Contains(names[t.places[i]+1:], column):
			t.fail(0, fmt.Sprintf("the table has more than one column %q", column), "give each column a name of its own")
		}
	}
}

// mostNamed is how many columns a hint names.
const mostNamed = 8

// rows gives those of the table. A row that cannot be read is a mistake, and so is a cell.
func (t *table) rows(f *source.File) {
	size := 0
	for {
		var row source.Row
		err := f.Next(&row)
		if errors.Is(err, io.EOF) {
			return
		}
		if size += row.Size; err == nil && size > maxTable {
			t.fail(row.Line, fmt.Sprintf("the table has more than %d MiB once it is unpacked", maxTable>>20), "keep what the mapping needs")
			return
		}
		if err != nil {
			t.refuse(err)
			return
		}
		if t.take(&row); len(t.errs) > maxTableErrors {
			return
		}
	}
}

// maxTableErrors is how many rows are told that are wrong.
const maxTableErrors = 100

func (t *table) take(row *source.Row) {
	faults := slices.DeleteFunc(row.Faults, func(f source.Fault) bool { return !slices.Contains(t.places[:], f.Column) })
	switch {
	case row.Problem != nil:
		t.fail(row.Line, row.Problem.Text, cmp.Or(ofTable(row.Problem.Hint), "mend the row, or take it out"))
	case len(faults) > 0:
		t.fail(row.Line, faults[0].String(), "mend the cell, or take the row out")
	case !row.Repeats:
		t.add(row.Line, row.Cells[t.places[0]], row.Cells[t.places[1]])
	}
}
