package source_test

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"leadferry/importer/source"
	"leadferry/internal/testsupport/must"
)

// table is a written file and the rows that must be read from it.
type table struct {
	text  strings.Builder
	cells [][]string
	lines []int
	runes []rune // for the cells; nil: some of all kinds
}

func TestRandomCSVIsReadBack(t *testing.T) { // faults 90, 92, m25, m26
	rapid.Check(t, func(t *rapid.T) {
		var file table
		delim := rapid.SampledFrom([]string{",", ";", "\t", "¦"}).Draw(t, "delimiter")
		file.drawCSV(t, delim)
		o := source.Options{Format: source.CSV, Delimiter: []rune(delim)[0]}
		file.check(t, o)
	})
}

func (f *table) drawCSV(t *rapid.T, delim string) {
	if f.runes == nil {
		f.runes = []rune("ab \"\"\n\r,;\t¦é中😀")
		if rapid.Bool().Draw(t, "mark") {
			f.text.WriteString("\xEF\xBB\xBF")
		}
	}
	width := rapid.IntRange(1, 4).Draw(t, "width")
	f.writeRow(t, delim, []string{"c1", "c2", "c3", "c4"}[:width])
	f.cells, f.lines = nil, nil
	cell := rapid.StringOf(rapid.SampledFrom(f.runes))
	for range rapid.IntRange(0, 8).Draw(t, "rows") {
		cells := rapid.SliceOfN(cell, width, width).Draw(t, "cells")
		if rapid.IntRange(0, 9).Draw(t, "long") == 0 { // longer than one block of the reader
			cells[0] += strings.Repeat("x", rapid.IntRange(131_000, 131_100).Draw(t, "length"))
		}
		f.writeRow(t, delim, cells)
	}
}

// writeRow writes a row as RFC 4180 says, now and then after a blank line.
func (f *table) writeRow(t *rapid.T, delim string, cells []string) {
	end := rapid.SampledFrom([]string{"\n", "\r\n"})
	if rapid.IntRange(0, 4).Draw(t, "blank") == 0 {
		f.text.WriteString(end.Draw(t, "end"))
	}
	f.start(cells)
	for i, cell := range cells {
		if i > 0 {
			f.text.WriteString(delim)
		}
		if mustQuote(cell, delim) || rapid.Bool().Draw(t, "quoted") {
			cell = `"` + strings.ReplaceAll(cell, `"`, `""`) + `"`
		}
		f.text.WriteString(cell)
	}
	f.text.WriteString(end.Draw(t, "end"))
}

// mustQuote leaves quotes in the middle of a cell bare, which this package allows.
func mustQuote(cell, delim string) bool {
	return strings.Trim(cell, " ") == "" || cell[0] == '"' ||
		strings.ContainsAny(cell, "\r\n") || strings.Contains(cell, delim)
}

// start notes that a row with these cells begins on the current line. It skips a row without any data.
func (f *table) start(cells []string) {
	seen := func(r rune) bool { return !unicode.IsSpace(r) && !unicode.Is(unicode.Cf, r) }
	if !slices.ContainsFunc(cells, func(cell string) bool { return strings.ContainsFunc(cell, seen) }) {
		return
	}
	f.cells = append(f.cells, cells)
	f.lines = append(f.lines, strings.Count(f.text.String(), "\n")+1)
}

func (f *table) check(t *rapid.T, o source.Options) {
	f.checkBytes(t, maybePacked(t, []byte(f.text.String())), o)
}

// checkBytes reads the bytes of a file in pieces of several sizes.
func (f *table) checkBytes(t *rapid.T, data []byte, o source.Options) {
	var in io.Reader = bytes.NewReader(data)
	switch rapid.IntRange(0, 3).Draw(t, "pieces") {
	case 0:
		in = iotest.HalfReader(in)
	case 1:
		in = iotest.DataErrReader(in)
	}
	o.Stdin = in
	file := opened(t, "-", o)
	var cells [][]string
	var lines []int
	for row := new(source.Row); file.Next(row) == nil; {
		if row.Problem != nil {
			t.Fatalf("line %d: %s", row.Line, row.Problem.String())
		}
		cells, lines = append(cells, slices.Clone(row.Cells)), append(lines, row.Line)
	}
	if diff := cmp.Diff(f.cells, cells, cmpopts.EquateEmpty()); diff != "" {
		t.Fatal(diff)
	}
	must.Same(t, f.lines, lines)
}

// A letter is a cell with lines that look like rows. If one quote is lost or added, or the file is cut, none of these
// lines becomes a row. Left out are files that are valid tables again: the added quote ends or begins a cell, or the
// lost one opened the letter. faults 90, 132
func TestNoRowComesOutOfADamagedLetter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var text strings.Builder
		text.WriteString("id,name,note,more\n")
		inside := rapid.SampledFrom([]string{"X,mary,line,x", "X,mary", "a \"\"word\"\"", "-", "X,\"\"y\"\",b,c", "5 o'clock, or so"})
		for i := range rapid.IntRange(1, 5).Draw(t, "rows") {
			fmt.Fprintf(&text, "R%d,", i)
			for cell := range 3 {
				kind := rapid.IntRange(0, 3).Draw(t, "kind")
				switch kind {
				case 0:
					text.WriteString("plain")
				case 1:
					text.WriteString(`"quoted, ""so"""`)
				case 2:
					text.WriteString(`"` + strings.Join(rapid.SliceOfN(inside, 2, 5).Draw(t, "letter"), "\n") + `"`)
				}
				if cell < 2 {
					text.WriteByte(',')
				}
			}
			text.WriteByte('\n')
		}
		data := text.String()
		at := rapid.IntRange(len("id,name,note,more\n"), len(data)-2).Draw(t, "at")
		switch rapid.IntRange(0, 2).Draw(t, "damage") {
		case 0:
			data = data[:at]
		case 1:
			if closes(data[at:]) || data[at-1] == ',' || data[at-1] == '\n' { // it may end a cell, or begin one
				return
			}
			data = data[:at] + `"` + data[at:]
		case 2:
			if data[at] != '"' || data[at-1] == ',' || data[at-1] == '\n' || strings.Contains(data[at-1:at]+data[at+1:at+2], `"`) && closes(data[at:]) {
				return
			}
			data = data[:at] + data[at+1:]
		}
		f, err := source.Open("-", source.Options{Format: source.CSV, Delimiter: ',', Stdin: strings.NewReader(data)})
		if err != nil {
			return
		}
		rows, _ := rowsUntil(f)
		for _, r := range rows {
			if r.Problem == nil && strings.HasPrefix(r.Cells[0], "X") {
				t.Fatalf("line %d came out of a letter: %q\n%s", r.Line, r.Cells, data)
			}
		}
	})
}

// closes reports whether the quotes at the beginning of text may end a cell.
func closes(text string) bool {
	rest := strings.TrimLeft(text, `"`)
	return rest == "" || rest[0] == ',' || rest[0] == '\n'
}
