package source_test

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"leadferry/importer/source"
	"leadferry/internal/testsupport/must"
)

// workbook is a workbook made by hand, even one that no program would write.
type workbook struct {
	rows    string            // inside sheetData
	after   string            // behind sheetData
	before  string            // before sheetData
	texts   []string          // shared, as XML inside of si
	formats []string          // codes of the styles 1, 2, …; a number is one that is built in
	from    string            // attributes of workbookPr
	parts   map[string]string // replaced or added; "-" leaves one out
}

const (
	xmlHead  = `<?xml version="1.0" encoding="UTF-8" standalone="yes"?>`
	mainNS   = ` xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"`
	relsNS   = ` xmlns="http://schemas.openxmlformats.org/package/2006/relationships"`
	relation = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
)

func relations(list ...string) string {
	var b strings.Builder
	for i, r := range list {
		kind, target, _ := strings.Cut(r, " ")
		fmt.Fprintf(&b, `<Relationship Id="rId%d" Type="%s/%s" Target="%s"/>`, i+1, relation, kind, target)
	}
	return xmlHead + "<Relationships" + relsNS + ">" + b.String() + "</Relationships>"
}

func (w workbook) bytes(t testing.TB) []byte {
	t.Helper()
	all := map[string]string{
		"[Content_Types].xml":        xmlHead + `<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>`,
		"_rels/.rels":                relations("officeDocument xl/workbook.xml"),
		"xl/_rels/workbook.xml.rels": relations("worksheet worksheets/sheet1.xml", "sharedStrings sharedStrings.xml", "styles styles.xml"),
		"xl/workbook.xml":            xmlHead + "<workbook" + mainNS + ` xmlns:r="` + relation + `"><workbookPr` + w.from + `/><sheets><sheet name="Leads" sheetId="1" r:id="rId1"/></sheets></workbook>`,
		"xl/worksheets/sheet1.xml":   xmlHead + "<worksheet" + mainNS + ">" + w.before + "<sheetData>" + w.rows + "</sheetData>" + w.after + "</worksheet>",
		"xl/sharedStrings.xml":       xmlHead + "<sst" + mainNS + "><si>" + strings.Join(w.texts, "</si><si>") + "</si></sst>",
		"xl/styles.xml":              w.styles(),
	}
	maps.Copy(all, w.parts)
	maps.DeleteFunc(all, func(_, part string) bool { return part == "-" })
	return packed(t, all)
}

func (w workbook) styles() string {
	var codes, cells strings.Builder
	for i, code := range w.formats {
		id := fmt.Sprint(i + 164)
		if strings.Trim(code, "0123456789") == "" && code[0] != '0' {
			id = code
		} else {
			fmt.Fprintf(&codes, `<numFmt numFmtId="%s" formatCode="%s"/>`, id, escape(code))
		}
		fmt.Fprintf(&cells, `<xf numFmtId="%s"/>`, id)
	}
	return xmlHead + "<styleSheet" + mainNS + "><numFmts>" + codes.String() + `</numFmts><cellXfs><xf numFmtId="0"/>` + cells.String() + "</cellXfs></styleSheet>"
}

func escape(text string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;").Replace(text)
}

func packed(t testing.TB, all map[string]string) []byte {
	t.Helper()
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		w, err := z.Create(name)
		if err == nil {
			_, err = io.WriteString(w, all[name])
		}
		must.Do(t, err)
	}
	must.Do(t, z.Close())
	return out.Bytes()
}

func (w workbook) file(t testing.TB) string {
	t.Helper()
	return write(t, "leads.xlsx", string(w.bytes(t)))
}

// inline returns a row of cells with these texts, one after another.
func inline(cells ...string) string {
	var b strings.Builder
	for _, text := range cells {
		b.WriteString(`<c t="inlineStr"><is><t>` + escape(text) + "</t></is></c>")
	}
	return "<row>" + b.String() + "</row>"
}

func readSheet(t testing.TB, path string, o source.Options) ([]source.Row, []string) {
	t.Helper()
	f := opened(t, path, o)
	rows := rowsOf(t, f)
	return rows, f.Warnings()
}

func TestWorkbookIsRead(t *testing.T) { // faults 95, 100
	const path = "testdata/excelize.xlsx" // another program has written it
	data := []byte(content(t, path))
	sum := sha256.Sum256(data)
	for _, name := range []string{path, "-"} {
		f := opened(t, name, source.Options{Format: source.XLSX, Stdin: bytes.NewReader(data)})
		must.Same(t, []string{"id", "name", "phone", "vip"}, f.Header().Names)
		want := "2:00017|Ada Brook|+49 151 2345|TRUE\n4:1e5| Zoë |0049151|FALSE\n5:=1+1|a\r\nb\tc|2026-03-04|\n"
		must.Same(t, want, show(rowsOf(t, f)))
		info := f.Info()
		if info.SHA256 != hex.EncodeToString(sum[:]) || info.Bytes != int64(len(data)) || info.Format != "xlsx" || info.Encoding != "" || info.Delimiter != 0 {
			t.Errorf("%+v", info)
		}
		if f.Changed() || info.Rows != 3 {
			t.Errorf("%+v", info)
		}
	}
}

func TestTextsOfAnotherProgramAreReadBack(t *testing.T) { // faults 100
	rows, _ := readSheet(t, "testdata/excelize.xlsx", source.Options{Sheet: "Texts"})
	const want = "2: a|a |  \n3:0|+0|00.0\n4:\n|a\nb\n|\t\n5:<&>|&lt;&amp;|<a/>\n6:\"'|é中😀|A\n7:|0|\n"
	must.Same(t, want, show(rows))
}
