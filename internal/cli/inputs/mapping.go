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
	maxMapping     = 1 << 20  // bytes of a mapping file
	maxTable       = 64 << 20 // bytes of a table beside it
	maxTableErrors = 100
	mostNamed      = 8 // columns that a hint names
)

// ReadMapping reads a mapping file and the tables beside it, whose paths it returns with mistakes in them, too. Those
// are mapping.Errors; the mapping is there then as far as it could be read. Inputs are what the command names besides.
func ReadMapping(path string, inputs []string, o *importer.Options) (tables []string, err error) {
	if path == "" {
		hint := "name it with -m; leadferry init FILE writes one for a file"
		for _, name := range inputs {
			if slices.Contains([]string{".yaml", ".yml"}, filepath.Ext(name)) {
				hint = "write -m " + shell.Path(name)
			}
		}
		return nil, exit.Usage("no mapping given", hint)
	}
	f, err := os.Open(path)
	var data []byte
	if err == nil {
		defer f.Close()
		data, err = io.ReadAll(io.LimitReader(f, maxMapping+1))
	}
	if err != nil {
		return nil, exit.Usage(fmt.Sprintf("the mapping cannot be read: %v", err),
			cmp.Or(disk.Held(err), "check the path after -m"))
	}
	if what := source.KindOf(path, data[:min(len(data), source.KindBytes)]); what != "" && what != source.KindMapping {
		return nil, exit.Usage(path+" is "+what+", not a mapping file",
			"-m takes the mapping, and files with rows stand without a flag; leadferry init FILE writes a mapping "+
				"for a file")
	}
	sum := sha256.New()
	sum.Write(data)
	type adding = func(line int, key, value string)
	o.Mapping, err = mapping.Parse(path, data, func(name, key, value string, add adding) error {
		file := filepath.Join(filepath.Dir(path), name)
		tables = append(tables, file)
		t := table{file: file, columns: [2]string{key, value}, add: add}
		err := t.read()
		io.WriteString(sum, t.sha256)
		return err
	})
	o.MappingFile = report.File{Path: path, SHA256: hex.EncodeToString(sum.Sum(nil))}
	return tables, err
}

// table is a file beside the mapping file that is being read, in CSV or a workbook.
type table struct {
	file    string
	columns [2]string // of the words, and of what they become
	places  [2]int
	add     func(line int, key, value string)
	sha256  string
	errs    mapping.Errors
}

// read gives the rows of the table to add. Its error is mapping.Errors: all that is wrong with the table.
func (t *table) read() error {
	f, err := source.Open(t.file, source.Options{})
	if err == nil {
		defer f.Close()
		if f.Info().Format == string(source.JSONL) {
			t.fail(0, "the table is JSON", saveTable)
		} else if t.find(f.Header().Names); t.errs == nil {
			err = t.rows(f)
		}
		t.sha256 = f.Info().SHA256
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = &source.OpenError{Text: "there is no such file", Hint: "put the table beside the mapping file"}
	}
	opened, lost := (*source.OpenError)(nil), (*source.LostError)(nil)
	switch {
	case errors.As(err, &opened):
		t.fail(opened.Line, cmp.Or(opened.Text, "cannot be read"), ofTable(opened.Hint))
	case errors.As(err, &lost):
		t.fail(lost.Line, cmp.Or(lost.Text, "cannot be read"), ofTable(lost.Hint))
	case err != nil:
		t.fail(0, "cannot be read", "let this user read it")
	}
	if t.errs == nil {
		return nil
	}
	return t.errs
}

func (t *table) fail(line int, text, hint string) {
	t.errs = append(t.errs, mapping.Error{File: t.file, Line: line, Text: text, Hint: hint})
}

const saveTable = "save the table as CSV in UTF-8, or as an Excel workbook (.xlsx)"

// ofTable is a hint for a table, which no flag and nothing in source is about.
func ofTable(hint string) string {
	if strings.Contains(hint, "--") || strings.Contains(hint, "source") {
		return saveTable
	}
	return hint
}

// find looks for the columns.
func (t *table) find(names []string) {
	for i, column := range t.columns {
		t.places[i] = slices.Index(names, column)
		switch {
		case t.places[i] < 0:
			t.fail(0, fmt.Sprintf("the table has no column %q", column),
				cmp.Or(spelling.Hint(column, names), "it has "+spelling.List(names, mostNamed, strconv.Quote)))
		case slices.Contains(names[t.places[i]+1:], column):
			t.fail(0, fmt.Sprintf("the table has more than one column %q", column),
				"give each column a name of its own")
		}
	}
}

// rows reads those of the table. A row that cannot be read is a mistake, and so is a cell.
func (t *table) rows(f *source.File) error {
	size := 0
	for len(t.errs) < maxTableErrors {
		var row source.Row
		err := f.Next(&row)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if size += row.Size; size > maxTable {
			t.fail(row.Line, fmt.Sprintf("the table has more than %d MiB", maxTable>>20), "keep what the mapping needs")
			return nil
		}
		faults := slices.DeleteFunc(row.Faults,
			func(f source.Fault) bool { return !slices.Contains(t.places[:], f.Column) })
		switch {
		case row.Problem != nil:
			t.fail(row.Line, row.Problem.Text, cmp.Or(ofTable(row.Problem.Hint), "mend the row, or take it out"))
		case len(faults) > 0:
			t.fail(row.Line, faults[0].String(), "mend the cell, or take the row out")
		case !row.Repeats:
			t.add(row.Line, row.Cells[t.places[0]], row.Cells[t.places[1]])
		}
	}
	return nil
}
