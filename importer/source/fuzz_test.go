package source_test

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/text/encoding/htmlindex"

	"leadferry/importer/source"
	"leadferry/internal/testsupport/must"
)

func FuzzCSV(f *testing.F) {
	for _, seed := range []string{
		"a,b\n1,2\n", "\xEF\xBB\xBFa;b\r\n\"1\r\n\";2\r\n", "a\n\"x\n\"y\n\"\n", "a,b\n1\r2,\x00\n\xFF,\n\n,,\n\x1A",
		"a,b\n\"1\nx\"y,2\n3,5\"\n", "a\r\n" + "0123456789012345678901234567890123456789012345678901234567890123456789\n1",
		"\"a,b\";c;\n\"1\";2;;\n", "a|A\tb, c\n1|2\t, 3\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) { fuzz(t, data, source.Options{Format: source.CSV}) })
}

// FuzzFrame skips the lines around any table.
func FuzzFrame(f *testing.F) {
	f.Add([]byte("title\n\nid,n\n#1\n1,\"a\\\"b\"\nTotal,2\nend"), uint8(2), uint8(1))
	f.Add([]byte("\"x\ny\"\n#\na\n\x1a"), uint8(1), uint8(0))
	f.Fuzz(func(t *testing.T, data []byte, skip, last uint8) {
		o := source.Options{Format: source.CSV, Backslash: skip%2 == 1}
		o.SkipRows, o.SkipFooter, o.Comment, o.Footer = int(skip%5), int(last%5), "#", regexp.MustCompile("^Total")
		fuzz(t, data, o)
	})
}

func FuzzJSON(f *testing.F) {
	for _, seed := range []string{
		`{"a":1}`, "{\"a\":{\"b\":[1,\"\\ud83d\\ude00\"]}}\n\n{\"a\":1,\"a\":2}\n[1]\n{\"a.b\":null} x", "{\"\\ud800\":1}\n{\"a\":\"\xFF\"}\n{\"a\":[{\"b\":",
		`{"leadferry":{},"leadferry_x":1,"a":[0,{"b":2}]}`,
		"[{\"a\":1},\n{\"a\" : \"x\\\"]\"} , 1,,{\"a\":[{\"b\":{}}]}]", "{\n\"x\":[1],\"records\":[{\"a\":1}\n,{}],\"y\":\"\"}\n", "[[{]}", `{"data":[]}`, "[1,x\x1a",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) { fuzz(t, data, source.Options{Format: source.JSONL}) })
}

// fuzz reads any bytes and checks what the reader promises about them.
func fuzz(t *testing.T, data []byte, o source.Options) {
	const limit = 64
	o.MaxRecord, o.Stdin, o.Paths = limit, bytes.NewReader(data), []string{"a.b", "a.1.b"}
	file, err := source.Open("-", o)
	if err != nil {
		checkOpenError(t, err)
		return
	}
	lines, packed := bytes.Count(data, []byte("\n"))+1, o.Encoding != "" || o.Format == source.XLSX
	line, row := 0, source.Row{}
	for {
		err := file.Next(&row)
		var lost *source.LostError
		if errors.As(err, &lost) && lost.Line >= line && (lost.Line <= lines || packed) {
			return
		}
		if errors.Is(err, io.EOF) {
			break
		}
		must.Do(t, err)
		// A list may hold several rows on a line.
		if row.Line < line || row.Line == line && o.Format != source.JSONL || row.Line > lines && !packed {
			t.Fatalf("line %d of %d after line %d", row.Line, lines, line)
		}
		line = row.Line
		checkRow(t, &row, o.Format, limit)
	}
	if file.Info().Bytes != int64(len(data)) {
		t.Fatalf("%d bytes read of %d", file.Info().Bytes, len(data))
	}
}

func checkOpenError(t *testing.T, err error) {
	var refusal *source.OpenError
	if !errors.As(err, &refusal) || refusal.Text == "" || !utf8.ValidString(err.Error()) {
		t.Fatalf("not a proper refusal: %q", err)
	}
}

func checkRow(t *testing.T, row *source.Row, format source.Format, limit int) {
	limit *= 17             // a record of CSV may have one long cell in quotes
	longest := 4*limit + 16 // bytes that are no text become \xNN; the last ones may exceed the limit
	if len(row.Cells) != len(row.Header.Names) || row.Problem == nil && len(row.Raw) > limit || len(row.Raw) > longest || len(row.Text) > longest {
		t.Fatalf("%d cells for %d names, %d bytes of raw text, %d of text", len(row.Cells), len(row.Header.Names), len(row.Raw), len(row.Text))
	}
	if !utf8.ValidString(row.Text) || strings.ContainsRune(row.Text, 0) || row.Problem != nil && row.Text == "" {
		t.Fatalf("the text of a row is none: %q", row.Text)
	}
	if format == source.JSONL && (strings.Contains(row.Raw, "\n") || row.Problem == nil && !jsontext.Value(row.Raw).IsValid()) {
		t.Fatalf("raw text is no object on a line: %q", row.Raw)
	}
	size := 0
	for _, cell := range row.Cells[:row.Header.Own] {
		size += len(cell)
		if row.Problem == nil && !utf8.ValidString(cell) {
			t.Fatalf("a cell is no text: %q", cell)
		}
	}
	if size > limit {
		t.Fatalf("%d bytes in cells of a record of %d", size, limit)
	}
}

// fuzzLabels are tried with any bytes, one of each kind of encoding.
var fuzzLabels = []string{
	"utf-8", "utf-16le", "utf-16be", "windows-1252", "windows-1253", "windows-874", "iso-8859-7", "iso-8859-8-i", "koi8-u", "macintosh",
	"shift_jis", "euc-jp", "gb18030", "gbk", "big5", "euc-kr", "iso-2022-jp", "replacement", "x-user-defined", "junk",
}

func FuzzEncodings(f *testing.F) {
	for i := range fuzzLabels {
		f.Add(uint8(i), []byte("a,b\n1,caf\xE9\n\x81\x3F\x81\x30,\x84\x31\xA4\x37\n\x82,\xA0\n"))
		f.Add(uint8(i), []byte("a\x00\n\x00\xFD\xFF\n\x00\x00\xD8x\x00\n\x00"))
		f.Add(uint8(i), []byte("\xFF\xFEa\x00\n\x00\x3D\xD8\x00\xDE\n\x00\x00\xD8"))
		f.Add(uint8(i), []byte("a,b\n\xA4\xA2\x8F\xA4,\"\xB0\n\"\n\x1B$B\x0A\x0A,\x1B(B\n"))
	}
	f.Fuzz(func(t *testing.T, n uint8, data []byte) {
		label := fuzzLabels[int(n)%len(fuzzLabels)]
		o := source.Options{Format: source.CSV, Encoding: label}
		fuzz(t, data, o)
		checkDecoded(t, data, label)
	})
}

// checkDecoded compares the cells of a table with the text that x/text makes of all bytes at once.
func checkDecoded(t *testing.T, data []byte, label string) {
	file, err := source.Open("-", source.Options{Format: source.CSV, Encoding: label, Stdin: bytes.NewReader(data)})
	if err != nil {
		return
	}
	enc, err := htmlindex.Get(file.Info().Encoding)
	must.Do(t, err)
	if file.Info().Encoding == "gbk" {
		enc, _ = htmlindex.Get("gb18030")
	}
	text, _ := enc.NewDecoder().Bytes(data)
	for row := new(source.Row); file.Next(row) == nil; {
		for _, cell := range row.Cells {
			switch {
			case row.Problem != nil:
			case strings.Contains(cell, "\uFFFD"):
				t.Fatalf("%s: a replacement character: %q", label, cell)
			case !strings.Contains(cell, `"`) && !bytes.Contains(text, []byte(cell)):
				t.Fatalf("%s: %q is not in %q", label, cell, text)
			}
		}
	}
}

func FuzzPacked(f *testing.F) {
	for _, kind := range []string{"", "gzip", "zstd"} {
		for _, data := range []string{"a,b\n1,2\n", "{\"a\":1}\n", "", "PK\x03\x04", strings.Repeat("a,\"b\n", 1000)} {
			whole := packers[kind]([]byte(data))
			f.Add(whole)
			f.Add(packers["gzip"](whole))
			f.Add(whole[:len(whole)/2])
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if bytes.HasPrefix(data, []byte("PK")) {
			t.Skip("workbooks have a target of their own")
		}
		file, err := source.Open("-", source.Options{Format: source.CSV, Stdin: bytes.NewReader(data)})
		if err != nil {
			checkOpenError(t, err)
			return
		}
		_, err = rowsUntil(file)
		var lost *source.LostError
		if !errors.Is(err, io.EOF) && !errors.As(err, &lost) {
			t.Fatal(err)
		}
		if errors.Is(err, io.EOF) && file.Info().Bytes != int64(len(data)) {
			t.Fatalf("%d bytes read of %d", file.Info().Bytes, len(data))
		}
	})
}

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
