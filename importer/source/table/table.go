// Package table reads the tables beside a mapping file for package mapping, which reads no files itself. A table is any
// file that package source reads, except JSON, of at most 64 MiB.
package table

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"leadferry/importer/source"
	"leadferry/internal/spelling"
	"leadferry/mapping"
)

const (
	maxSize   = 64 << 20 // bytes of a table's rows
	mostNamed = 8        // columns that a hint names
)

const hint = "a table is a file in CSV, in UTF-8, or an Excel workbook (.xlsx), beside the mapping file"

// Read reads a table, and calls add with the line, the word and the value of each row. It stops at the first mistake.
func Read(file string, columns [2]string, add func(line int, key, value string)) (sha256 string, _ mapping.Errors) {
	fail := func(line int, text, do string) (string, mapping.Errors) {
		return "", mapping.Errors{{File: file, Line: line, Text: text, Hint: do}}
	}
	f, err := source.Open(file, source.Options{})
	if why, is := errors.AsType[*source.OpenError](err); is {
		return fail(why.Line, why.Text, hint)
	}
	defer f.Close()
	if f.Info().Format == string(source.JSONL) {
		return fail(0, "the table is JSON", hint)
	}
	var places [2]int
	names := f.Header().Names
	for i, column := range columns {
		places[i] = slices.Index(names, column)
		switch {
		case places[i] < 0:
			return fail(0, fmt.Sprintf("the table has no column %q", column),
				cmp.Or(spelling.Hint(column, names), "it has "+spelling.List(names, mostNamed, strconv.Quote)))
		case slices.Contains(names[places[i]+1:], column):
			return fail(0, fmt.Sprintf("the table has more than one column %q", column),
				"give each column a name of its own")
		}
	}
	for size := 0; ; {
		var row source.Row
		err := f.Next(&row)
		size += row.Size
		isOther := func(f source.Fault) bool { return !slices.Contains(places[:], f.Column) }
		faults := slices.DeleteFunc(row.Faults, isOther)
		switch lost, is := errors.AsType[*source.LostError](err); {
		case is:
			return fail(lost.Line, lost.Text, hint)
		case errors.Is(err, io.EOF):
			return f.Info().SHA256, nil
		case size > maxSize:
			return fail(row.Line, fmt.Sprintf("the table has more than %d MiB", maxSize>>20), "keep what you need")
		case row.Problem != nil:
			return fail(row.Line, row.Problem.Text, "correct the row, or take it out; "+hint)
		case len(faults) > 0:
			return fail(row.Line, faults[0].String(), "correct the cell, or take the row out")
		case !row.Repeats:
			add(row.Line, row.Cells[places[0]], row.Cells[places[1]])
		}
	}
}
