package source_test

import (
	"testing"

	"leadferry/importer/source"
)

func FuzzXLSX(f *testing.F) {
	f.Add(workbook{rows: inline("a", "b") + inline("1", "2")}.bytes(f))
	f.Add(workbook{texts: []string{"<t>x</t>"}, formats: []string{"14", "0.00"}, rows: `<row><c t="s"><v>0</v></c></row><row r="7" hidden="1"><c s="1"><v>46085.5</v></c><c s="2"><v>1</v></c></row>`}.bytes(f))
	f.Add([]byte("\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1E\x00n\x00"))
	f.Fuzz(func(t *testing.T, data []byte) { fuzz(t, data, source.Options{Format: source.XLSX}) })
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
		fuzz(t, book.bytes(t), source.Options{Format: source.XLSX})
	})
}
