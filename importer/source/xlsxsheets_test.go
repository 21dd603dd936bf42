package source_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"leadferry/importer/source"
	"leadferry/internal/testsupport/must"
)

// sheets makes a workbook of six sheets: hidden, very hidden, Übersicht, Leads, empty, chart.
func sheets(t *testing.T) string {
	const sheet = `<sheet name="%s" sheetId="%d" state="%s" r:id="rId%[2]d"/>`
	w := workbook{rows: inline("hidden") + inline("h1"), parts: map[string]string{}}
	var list strings.Builder
	targets := []string{"worksheet worksheets/sheet1.xml"}
	for i, s := range []struct{ name, state, kind string }{
		{"Sheet1", "hidden", ""},
		{"Deep", "veryHidden", "worksheet"},
		{"Übersicht", "visible", "worksheet"},
		{"Leads 2026", "visible", "worksheet"},
		{"Empty", "visible", "worksheet"},
		{"Chart", "visible", "chartsheet"},
	} {
		fmt.Fprintf(&list, sheet, s.name, i+1, s.state)
		if s.kind == "" {
			continue
		}
		part, rows := fmt.Sprintf("%ss/sheet%d.xml", s.kind, i+1), ""
		if s.name != "Empty" {
			rows = inline(fmt.Sprint("a", i-1)) + inline(fmt.Sprint("v", i-1))
		}
		targets = append(targets, s.kind+" "+part)
		w.parts["xl/"+part] = "<" + s.kind + mainNS + "><sheetData>" + rows + "</sheetData></" + s.kind + ">"
	}
	w.parts["xl/_rels/workbook.xml.rels"] = relations(targets...)
	w.parts["xl/workbook.xml"] = xmlHead + "<workbook" + mainNS + ` xmlns:r="` + relation + `"><bookViews><workbookView activeTab="2"/></bookViews><sheets>` + list.String() + "</sheets></workbook>"
	return w.file(t)
}

func TestSheetIsChosen(t *testing.T) {
	path := sheets(t)
	for _, test := range []struct{ sheet, want string }{
		{"", "2:v1\n"},
		{"leads 2026 ", "2:v2\n"},
		{"übersicht", "2:v1\n"},
		{"Sheet1", "2:h1\n"},
		{"Deep", "2:v0\n"},
	} {
		rows, warnings := readSheet(t, path, source.Options{Sheet: test.sheet})
		must.Same(t, test.want, show(rows), test.sheet)
		want := []string(nil)
		if test.sheet == "" {
			want = []string{`sheet "Übersicht" was read; the workbook also holds "Sheet1" (hidden), "Deep" (hidden), "Leads 2026", "Empty" (hint: choose one with --sheet NAME, or with source.sheet of the mapping)`}
		}
		must.Same(t, want, warnings, test.sheet)
	}
}

func TestSheetIsNotFound(t *testing.T) {
	path := sheets(t)
	for sheet, want := range map[string]string{
		"Lead":  `has no sheet of the name that was asked for; it has "Sheet1" (hidden), "Deep" (hidden), "Übersicht", "Leads 2026", "Empty"`,
		"Chart": `has no cells in sheet "Chart"`,
		"Empty": `is empty in sheet "Empty": it has no header`,
	} {
		openError(t, path, source.Options{Sheet: sheet}, want, sheet)
	}
	none := workbook{parts: map[string]string{"xl/workbook.xml": `<workbook xmlns:r="r"><sheets><sheet name="A" state="hidden" r:id="rId1"/></sheets></workbook>`}}
	openError(t, none.file(t), source.Options{}, `no sheet that is visible and holds cells; it has "A" (hidden)`)
}

func TestHeaderOfASheet(t *testing.T) {
	const good, empty = "2:1|2\n", ""
	for _, test := range []struct {
		name, rows, want string
		line             int
	}{
		{"numbers, dates as names", `<row><c><v>2025</v></c><c s="1"><v>46085</v></c></row>` + inline("1", "2"), good, 0},
		{"blank rows before", "<row/>" + inline("", " ") + inline("a", "b") + inline("1", "2"), "4:1|2\n", 0},
		{"blank rows only", "<row/><row/>" + inline("", " "), "is empty", 0},
		{"blank name", "<row/>" + inline("a", "", "c") + inline("1", "", "2"), "3:1||2\n", 0},
		{"one name twice", inline("a", " a") + inline("1", "2"), good, 0},
		{"header repeated, and rows without data", inline("a", "b") + inline("1", "2") + inline("", " ") + inline("a", "b "), good + "4:a|b \n", 0},
		{"header repeated, in another order", inline("a", "b") + inline("1", "2") + inline("b", "a") + inline("4", "3"), good + "3:a|b\n4:3|4\n", 0},
		{"rejects emptied and not filled", inline("a", "leadferry_outcome") + inline("", "invalid") + inline("", ""), "2!uncorrected\n", 0},
		{"error", `<row><c t="e"><v>#REF!</v></c></row>`, "the header cannot be read: the cell in column A holds the error #REF!", 1},
		{"too long", inline(strings.Repeat("x", 30), strings.Repeat("y", 30)), "more than 50 bytes", 1},
	} {
		w := workbook{rows: test.rows, formats: []string{"14"}}
		o := source.Options{MaxRecord: 50}
		f, err := source.Open(w.file(t), o)
		if err == nil {
			must.Same(t, test.want, show(rowsOf(t, f)), test.name)
			continue
		}
		must.Same(t, test.line, openError(t, w.file(t), o, test.want, test.name).Line, test.name)
	}
}

func TestSheetWithoutHeader(t *testing.T) {
	path := workbook{rows: "<row/>" + inline("1") + inline("2", "x", "y")}.file(t)
	rows, _ := readSheet(t, path, source.Options{NoHeader: true, Columns: []string{"a", "leadferry_line", "b"}})
	must.Same(t, "2:1|\n3:2|y\n", show(rows))
	openError(t, path, source.Options{NoHeader: true}, "no names")
}

func TestRowsAndCellsAreWhereTheirReferencesSay(t *testing.T) {
	text := func(at, value string) string { return `<c r="` + at + `" t="str"><v>` + value + `</v></c>` }
	for _, test := range []struct{ name, rows, want string }{
		{"gaps", `<row r="2">` + text("A2", "a") + text("b2", "b") + `</row><row r="9">` + text("B9", "x") + "</row>", "9:|x\n"},
		{"no places", inline("a", "b") + "<row/>" + inline("1") + `<row r="7"/>` + inline("", "2"), "3:1|\n8:|2\n"},
		{"other elements", inline("a") + `<row><extLst><c r="A1"><v>9</v></c></extLst><c t="str"><v>1</v></c></row><other/>` + inline("2"), "2:1\n3:2\n"},
		{"last row and column", inline("a") + `<row r="1048576">` + text("A1048576", "1") + text("XFD1048576", "") + "</row>", "1048576:1\n"},
	} {
		rows, _ := readSheet(t, workbook{rows: test.rows}.file(t), source.Options{})
		must.Same(t, test.want, show(rows), test.name)
	}
}

func TestLongRowsHarmNoNeighbours(t *testing.T) { // faults 94
	w := workbook{texts: []string{"<t>" + strings.Repeat("x", 60) + "</t>"}, rows: inline("a", "b")}
	w.rows += inline(strings.Repeat("y", 101)) + inline("1") + inline(strings.Repeat("y", 60), strings.Repeat("y", 60)) +
		`<row><c t="s"><v>0</v></c><c t="s"><v>0</v></c></row>` + inline("2", strings.Repeat("z", 99))
	rows, _ := readSheet(t, w.file(t), source.Options{MaxRecord: 100})
	want := "2!too_long\n3:1|\n4!too_long\n5!too_long\n6:2|" + strings.Repeat("z", 99) + "\n"
	must.Same(t, want, show(rows))
}

func TestHiddenRowsAreReadWithAWarning(t *testing.T) {
	row := func(hidden, name string, score int) string {
		return fmt.Sprintf(`<row hidden="%s"><c t="str"><v>%s</v></c><c t="str"><v>x</v></c><c><v>%d</v></c></row>`, hidden, name, score)
	}
	path := workbook{
		rows: inline("name", "note", "score") + row("1", "a", 1) + row("0", "", 2) + row("true", "c", 3) + `<row hidden="1"/>`,
	}.file(t)
	rows, warnings := readSheet(t, path, source.Options{})
	must.Same(t, "2:a|x|1\n3:|x|2\n4:c|x|3\n", show(rows))
	want := []string{
		"2 rows of the sheet are hidden or filtered away in Excel, and read like all others",
	}
	must.Same(t, want, warnings)
}

// The header has a cell far behind its other names.
func TestAHeaderCellFarAwayIsNoColumn(t *testing.T) {
	w := workbook{rows: `<row><c t="str"><v>a</v></c><c t="str"><v>b</v></c><c r="XFD1" t="str"><v>left</v></c></row>` +
		inline("1", "2") + `<row><c t="str"><v>3</v></c><c r="XFD3" t="str"><v>x</v></c></row>`}
	rows, warnings := readSheet(t, w.file(t), source.Options{})
	must.Same(t, "2:1|2\n3!columns\n", show(rows))
	const far = "the cell in column XFD of the header is far behind the others and is not taken as a column; a row that holds something there is not read"
	if !cmp.Equal([]string{far}, warnings) {
		t.Errorf("%q", warnings)
	}
	must.Same(t, "the cell in column XFD holds something, but the header has only 2 columns", rows[1].Problem.String())
}
