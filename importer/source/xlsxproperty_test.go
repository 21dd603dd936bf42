package source_test

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"leadferry/importer/source"
)

// faults 95, 100
func TestRandomWorkbookIsReadBack(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var file sheetTable
		file.draw(rt)
		checkSheet(rt, file.book.bytes(t), file.cells, file.lines)
	})
}

// sheetTable is a workbook written by hand and the rows that must be read from it.
type sheetTable struct {
	book  workbook
	cells [][]string
	lines []int
	width int
}

func (f *sheetTable) draw(t *rapid.T) {
	f.width = rapid.IntRange(1, 30).Draw(t, "width")
	names := make([]string, f.width)
	for i := range names {
		names[i] = "c" + strconv.Itoa(i)
	}
	cell := rapid.StringOf(rapid.SampledFrom([]rune("ab0+ \r\n\t_x<&>\"é中😀\x01")))
	number, row := 0, names
	for range rapid.IntRange(1, 8).Draw(t, "rows") {
		number = f.write(t, number, row)
		row = rapid.SliceOfN(cell, f.width, f.width).Draw(t, "cells")
	}
	f.cells, f.lines = f.cells[1:], f.lines[1:]
}

// write writes a row behind the one before it, or some rows further down.
func (f *sheetTable) write(t *rapid.T, before int, row []string) int {
	number, at := before+1, ""
	if rapid.Bool().Draw(t, "placed") {
		number += rapid.IntRange(0, 3).Draw(t, "gap")
		at = fmt.Sprintf(` r="%d"`, number)
	}
	var out strings.Builder
	placed, filled := rapid.Bool().Draw(t, "cells placed"), false
	for i, text := range row {
		place := ""
		if placed {
			place = fmt.Sprintf(` r="%s%d"`, strings.Repeat("A", i/26)+string(rune('A'+i%26)), number)
		}
		filled = filled || strings.TrimSpace(text) != ""
		if text != "" || !placed {
			out.WriteString(f.cell(t, place, text))
		}
	}
	f.book.rows += "<row" + at + ">" + out.String() + "</row>"
	if filled {
		f.cells, f.lines = append(f.cells, row), append(f.lines, number)
	}
	return number
}

func (f *sheetTable) cell(t *rapid.T, place, text string) string {
	text = escape(strings.NewReplacer("_", "_x005F_", "\r", "_x000D_", "\x01", "_x0001_").Replace(text))
	switch rapid.IntRange(0, 2).Draw(t, "kind") {
	case 0:
		return "<c" + place + ` t="inlineStr"><is><t xml:space="preserve">` + text + "</t></is></c>"
	case 1:
		return "<c" + place + ` t="str"><v>` + text + "</v></c>"
	}
	f.book.texts = append(f.book.texts, "<r><t>"+text+"</t></r>")
	return fmt.Sprintf("<c%s t=\"s\"><v>%d</v></c>", place, len(f.book.texts)-1)
}

func checkSheet(t *rapid.T, data []byte, wantCells [][]string, wantLines []int) {
	file, err := source.Open("-", source.Options{Format: source.XLSX, Stdin: bytes.NewReader(data)})
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var cells [][]string
	var lines []int
	for row := new(source.Row); file.Next(row) == nil; {
		if row.Problem != nil {
			t.Fatalf("row %d: %s", row.Line, row.Problem.String())
		}
		cells, lines = append(cells, slices.Clone(row.Cells)), append(lines, row.Line)
	}
	if diff := cmp.Diff(wantCells, cells, cmpopts.EquateEmpty()); diff != "" {
		t.Fatal(diff)
	}
	if diff := cmp.Diff(wantLines, lines, cmpopts.EquateEmpty()); diff != "" {
		t.Fatal(diff)
	}
}
