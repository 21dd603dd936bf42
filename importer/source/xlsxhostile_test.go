package source_test

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"leadferry/importer/source"
	"leadferry/internal/testsupport/must"
)

func TestOtherContainersAreRefused(t *testing.T) { // faults 95
	parts := func(names ...string) string {
		all := map[string]string{}
		for _, name := range names {
			all[name] = "x"
		}
		return string(packed(t, all))
	}
	for _, test := range []struct{ name, data, want string }{
		{"old workbook", "\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1", "old Excel workbook"},
		{"Word", parts("[Content_Types].xml", "_rels/.rels", "word/document.xml"), ""},
		{"OpenDocument", parts("mimetype", "content.xml", "META-INF/manifest.xml"), ".ods"},
		{"binary workbook", parts("[Content_Types].xml", "_rels/.rels", "xl/workbook.bin"), ".xlsb"},
		{"archive", parts("a.txt", "b.txt"), "ZIP archive"},
		{"text", "a,b\n1,2\n", "not an Excel workbook"},
		{"nothing", "", ""},
	} {
		for _, path := range []string{write(t, "leads.xlsx", test.data), "-"} {
			o := source.Options{Format: source.XLSX, Stdin: strings.NewReader(test.data)}
			openError(t, path, o, test.want, test.name)
		}
	}
}

// damages returns damaged workbooks and the expected errors.
// With a line, the file is lost there; without one, it is refused.
func damages() map[string]struct {
	book workbook
	line int
	want string
} {
	type damage = struct {
		book workbook
		line int
		want string
	}
	const doctype = `<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]>`
	part := func(name, text string) damage {
		return damage{book: workbook{rows: inline("a"), parts: map[string]string{name: text}}, want: "it is damaged"}
	}
	row := func(text, want string) damage {
		return damage{workbook{rows: inline("a") + inline("1") + text}, 2, want}
	}
	const place = "not in its place"
	return map[string]damage{
		"no workbook":           part("xl/workbook.xml", "-"),
		"no relations":          part("_rels/.rels", "<Relationships/>"),
		"no sheet":              part("xl/worksheets/sheet1.xml", "-"),
		"no texts":              part("xl/sharedStrings.xml", "-"),
		"sheet is no sheet":     part("xl/worksheets/sheet1.xml", "<chartsheet/>"),
		"sheet is empty":        part("xl/worksheets/sheet1.xml", ""),
		"book is no XML":        part("xl/workbook.xml", "<workbook"),
		"texts are cut":         part("xl/sharedStrings.xml", "<sst><si><t>x"),
		"entities in the texts": part("xl/sharedStrings.xml", doctype+"<sst><si><t>&b;</t></si></sst>"),
		"UTF-16":                part("xl/worksheets/sheet1.xml", `<?xml version="1.0" encoding="UTF-16"?><worksheet/>`),
		"deep":                  part("xl/styles.xml", strings.Repeat("<a>", 100_000)),

		"unknown entity":     row("<row><c t=\"str\"><v>&secret;</v></c></row>", "its XML is broken"),
		"cut":                row("<row><c><v>1</v>", "its XML is broken"),
		"text never there":   row(`<row><c t="s"><v>1</v></c></row>`, "shared text"),
		"negative text":      row(`<row><c t="s"><v>-1</v></c></row>`, "shared text"),
		"text without end":   row(`<row><c t="s"><v>99999999999999999999</v></c></row>`, "shared text"),
		"text is no index":   row(`<row><c t="s"><v>secret</v></c></row>`, "shared text"),
		"style not there":    row(`<row><c s="1"><v>1</v></c></row>`, "number format"),
		"style is no index":  row(`<row><c s="x"><v>1</v></c></row>`, "number format"),
		"unknown kind":       row(`<row><c t="q"><v>1</v></c></row>`, "unknown kind"),
		"no boolean":         row(`<row><c t="b"><v>7</v></c></row>`, "unknown kind"),
		"row again":          row(`<row r="2"/>`, place),
		"row 0":              row(`<row r="0"/>`, place),
		"row beyond":         row(`<row r="1048577"/>`, place),
		"other row":          row(`<row><c r="A7"><v>1</v></c></row>`, place),
		"column beyond":      row(`<row><c r="XFE3"><v>1</v></c></row>`, place),
		"no column":          row(`<row><c r="3"><v>1</v></c></row>`, place),
		"no row":             row(`<row><c r="A"><v>1</v></c></row>`, place),
		"cells not in order": row(`<row><c r="C3"><v>1</v></c><c r="A3"><v>1</v></c></row>`, place),
		"one place twice":    row(`<row><c r="A3"><v>1</v></c><c r="A3"><v>2</v></c></row>`, place),
		"last column":        row(`<row><c r="XFD3"/><c><v>2</v></c></row>`, place),
		"long cell":          row("<row><c t=\"str\"><v>"+strings.Repeat("x", 13<<20)+"</v></c></row>", "too large"),
		"deep cell":          row("<row><c>"+strings.Repeat("<a>", 1000), "its XML is broken"),
	}
}

func TestDamagedWorkbooksAreRefusedOrLost(t *testing.T) { // faults 95
	for name, test := range damages() {
		path := test.book.file(t)
		if test.line == 0 {
			openError(t, path, source.Options{}, test.want, name)
			continue
		}
		f := opened(t, path, source.Options{})
		rows, err := rowsUntil(f)
		var lost *source.LostError
		if !errors.As(err, &lost) || !strings.Contains(lost.Text, test.want) || lost.Line < test.line || lost.Line > 3 || len(rows) != 1 {
			t.Errorf("%v: %d rows, then %v", name, len(rows), err)
		}
		if strings.Contains(err.Error(), "secret") || lost.File != path {
			t.Error(name, err)
		}
		if again := f.Next(new(source.Row)); errors.Is(again, io.EOF) {
			t.Error(name, "the end came after the file was lost")
		}
	}
}

func TestArchivesAreBounded(t *testing.T) { // faults 95
	book := unpacked(t, workbook{rows: inline("a")}.bytes(t))
	for _, test := range []struct {
		name  string
		add   func(z *zip.Writer)
		want  string
		sheet bool // the part that is added is the sheet
	}{
		{"bomb", func(z *zip.Writer) {
			raw(t, z, &zip.FileHeader{Name: "xl/media/a", UncompressedSize64: 80 << 20, CompressedSize64: 1})
		}, "too large", false},
		{"many small bombs", func(z *zip.Writer) {
			for i := range 100 {
				raw(t, z, &zip.FileHeader{Name: fmt.Sprint("xl/media/", i), UncompressedSize64: 1 << 20, CompressedSize64: 1})
			}
		}, "too large", false},
		{"bomb in a large file", func(z *zip.Writer) {
			raw(t, z, &zip.FileHeader{Name: "xl/media/a", UncompressedSize64: 80 << 20, CompressedSize64: 1})
			for i := range 10 {
				raw(t, z, &zip.FileHeader{Name: fmt.Sprint(strings.Repeat("x", 60_000), i)})
			}
		}, "too large", false},
		{"many parts", func(z *zip.Writer) {
			for i := range 10_000 {
				raw(t, z, &zip.FileHeader{Name: fmt.Sprint("xl/media/", i)})
			}
		}, "too large", false},
		{"says it is large", func(z *zip.Writer) {
			raw(t, z, &zip.FileHeader{Name: "xl/media/a", UncompressedSize64: 2 << 30, CompressedSize64: 1})
		}, "too large", false},
		{"larger than it says", func(z *zip.Writer) {
			raw(t, z, &zip.FileHeader{Name: "xl/worksheets/sheet2.xml", UncompressedSize64: 0, CompressedSize64: 1})
		}, "archive is broken or cut", true},
		{"encrypted", func(z *zip.Writer) {
			raw(t, z, &zip.FileHeader{Name: "xl/worksheets/sheet2.xml", UncompressedSize64: 1, CompressedSize64: 1, Flags: 1})
		}, "encrypted", true},
		{"unknown method", func(z *zip.Writer) {
			raw(t, z, &zip.FileHeader{Name: "xl/worksheets/sheet2.xml", UncompressedSize64: 1, CompressedSize64: 1, Method: 99})
		}, "archive is broken or cut", true},
	} {
		var out bytes.Buffer
		z := zip.NewWriter(&out)
		for name, part := range book {
			if test.sheet && strings.HasSuffix(name, "workbook.xml.rels") {
				part = strings.Replace(part, "sheet1.xml", "sheet2.xml", 1)
			}
			create(t, z, name, part)
		}
		test.add(z)
		must.Do(t, z.Close())
		openError(t, write(t, "leads.xlsx", out.String()), source.Options{}, test.want, test.name)
	}
}

// unpacked gives the parts of an archive.
func unpacked(t *testing.T, data []byte) map[string]string {
	t.Helper()
	archive, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	must.Do(t, err)
	all := map[string]string{}
	for _, f := range archive.File {
		part, err := fs.ReadFile(archive, f.Name)
		must.Do(t, err)
		all[f.Name] = string(part)
	}
	return all
}

func create(t *testing.T, z *zip.Writer, name, data string) {
	t.Helper()
	w, err := z.Create(name)
	if err == nil {
		_, err = io.WriteString(w, data)
	}
	must.Do(t, err)
}

// raw adds a part of one byte whose header may lie.
func raw(t *testing.T, z *zip.Writer, h *zip.FileHeader) {
	t.Helper()
	w, err := z.CreateRaw(h)
	if err == nil {
		_, err = w.Write([]byte("x"))
	}
	must.Do(t, err)
}

// No row of a workbook that was damaged on its way may be sent. faults 95
func TestDamagedSheetIsRefusedBeforeItsFirstRow(t *testing.T) {
	var rows strings.Builder
	for i := range 20_000 {
		rows.WriteString(inline(fmt.Sprint("value ", i*i)))
	}
	data := workbook{rows: rows.String()}.bytes(t)
	archive, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	must.Do(t, err)
	sheet := archive.File[slices.IndexFunc(archive.File, func(f *zip.File) bool { return f.Name == "xl/worksheets/sheet1.xml" })]
	start, err := sheet.DataOffset()
	must.Do(t, err)
	data[start+int64(sheet.CompressedSize64)*9/10] ^= 0xFF
	openError(t, write(t, "leads.xlsx", string(data)), source.Options{}, "damaged")
}

// A cut or altered workbook is refused or lost, or the damage changes nothing. faults 95
func TestBrokenWorkbooksMakeNoOtherRows(t *testing.T) {
	whole := workbook{texts: []string{"<t>text</t>"}, formats: []string{"00000"}, rows: inline("name", "zip", "c") +
		`<row><c t="s"><v>0</v></c><c s="1"><v>1234</v></c></row>` + inline("x", "y", "z")}.bytes(t)
	want := "2:text|01234|\n3:x|y|z\n"
	got := func(data []byte) (string, error) {
		f, err := source.Open("-", source.Options{Format: source.XLSX, Stdin: bytes.NewReader(data)})
		if err != nil {
			return "", err
		}
		rows, err := rowsUntil(f)
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return show(rows), err
	}
	if rows, err := got(whole); rows != want || err != nil {
		t.Fatalf("%q, %v", rows, err)
	}
	for size := 0; size < len(whole); size += 7 {
		if rows, err := got(whole[:size]); err == nil {
			t.Errorf("cut at %d: %q", size, rows)
		}
	}
	for at := range whole {
		data := bytes.Clone(whole)
		data[at] ^= 0xFF
		if rows, err := got(data); err == nil && rows != want {
			t.Errorf("byte %d altered: %q", at, rows)
		}
	}
}
