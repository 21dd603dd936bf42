package source_test

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"leadferry/importer/source"
	"leadferry/internal/testsupport/must"
)

func FuzzXLSX(f *testing.F) {
	f.Add(workbook{rows: inline("a", "b") + inline("1", "2")}.bytes(f))
	f.Add(workbook{texts: []string{"<t>x</t>"}, formats: []string{"14", "0.00"}, rows: `<row><c t="s"><v>0</v></c></row><row r="7" hidden="1"><c s="1"><v>46085.5</v></c><c s="2"><v>1</v></c></row>`}.bytes(f))
	f.Add([]byte("\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1E\x00n\x00"))
	f.Fuzz(fuzzWorkbook)
}

func FuzzXLSXSheet(f *testing.F) {
	for _, sheet := range []string{
		"<worksheet><sheetData>" + inline("a", "b") + inline("1", "2") + "</sheetData></worksheet>",
		`<worksheet><cols><col min="1" max="2" hidden="1"/></cols><sheetData><row r="1"><c r="A1" t="s"><v>0</v></c><c r="C1" s="1"><v>1</v></c></row><row><c t="e"><v>#N/A</v></c></row></sheetData><mergeCells><mergeCell ref="A1:B2"/></mergeCells></worksheet>`,
		`<x:worksheet xmlns:x="y"><x:sheetData><x:row r="1048576"><x:c r="XFD1048576" t="b"><x:v>1</x:v></x:c></x:row></x:sheetData></x:worksheet>`,
		`<worksheet><sheetData><row><c t="inlineStr"><is><r><t>_x0041_</t></r><rPh><t>y</t></rPh></is></c></row><row><c><f/></c><c s="2"><v>1e5</v></c></row>`,
	} {
		f.Add([]byte(sheet))
	}
	f.Fuzz(func(t *testing.T, sheet []byte) {
		book := workbook{texts: []string{"<t>x</t>"}, formats: []string{"14", "#,##0.00"}, parts: map[string]string{"xl/worksheets/sheet1.xml": string(sheet)}}
		fuzzWorkbook(t, book.bytes(t))
	})
}

// fuzzWorkbook reads anything at all and holds the reader to what it promises.
func fuzzWorkbook(t *testing.T, data []byte) {
	const limit = 256
	file, err := source.Open("-", source.Options{Format: source.XLSX, MaxRecord: limit, Stdin: bytes.NewReader(data)})
	if err != nil {
		return
	}
	defer file.Close()
	line, row := 0, source.Row{}
	for {
		err := file.Next(&row)
		var lost *source.LostError
		if errors.Is(err, io.EOF) || errors.As(err, &lost) {
			break
		}
		must.Do(t, err)
		if row.Line <= line || row.Line > 1<<20 || row.Raw != "" {
			t.Fatalf("line %d after line %d, raw text %q", row.Line, line, row.Raw)
		}
		line = row.Line
		size := 0
		for _, cell := range row.Cells {
			size += len(cell)
		}
		if len(row.Cells) != len(row.Header.Names) || size > limit {
			t.Fatalf("%d cells of %d bytes for %d names", len(row.Cells), size, len(row.Header.Names))
		}
	}
	if file.Info().Bytes != int64(len(data)) {
		t.Fatalf("%d bytes read of %d", file.Info().Bytes, len(data))
	}
}
