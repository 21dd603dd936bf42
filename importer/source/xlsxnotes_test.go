package source_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"leadferry/importer/source"
)

// faults 100
func TestLostZerosAreToldOf(t *testing.T) {
	const sentence = `column %q looks like phone numbers, postal codes or other identifiers, but %s, first in row %d: zeros at the beginning may be lost (hint: format the column as text before data are entered)`
	text := func(s string) string { return `<c t="str"><v>` + s + "</v></c>" }
	number := func(s string) string { return "<c><v>" + s + "</v></c>" }
	for _, test := range []struct {
		name, header string
		cells        []string
		format       string
		cellCount    string
		row          int
	}{
		{"a row's own number", "id", []string{number("1")}, "", "", 0},
		{"long numbers under another name", "Kontakt", []string{number("4915112345678"), number("4915112345679")}, "", "2 cells hold numbers", 2},
		{"texts with zeros beside numbers", "Kontakt", []string{text("0151"), number("152")}, "", "1 cell holds a number", 3},
		{"texts only", "Phone", []string{text("0151"), text("152")}, "", "", 0},
		{"format with zeros", "PLZ", []string{number("1067")}, "00000", "", 0},
		{"amounts", "Revenue", []string{number("1500000"), number("1.5")}, "", "", 0},
		{"dates", "Number of phone", []string{number("46085")}, "14", "", 0},
		{"fractions", "Phone", []string{number("0.5")}, "", "", 0},
		{"error cells", "Phone", []string{`<c t="e"><v>#N/A</v></c>`}, "", "", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := workbook{rows: inline(test.header)}
			for _, cell := range test.cells {
				if test.format != "" {
					w.formats, cell = []string{test.format}, strings.Replace(cell, "<c", `<c s="1"`, 1)
				}
				w.rows += "<row>" + cell + "</row>"
			}
			_, warnings := readSheet(t, w.file(t), source.Options{})
			var want []string
			if test.cellCount != "" {
				want = []string{fmt.Sprintf(sentence, test.header, test.cellCount, test.row)}
			}
			if diff := cmp.Diff(want, warnings); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWhatIsNotSeenInExcelIsToldOf(t *testing.T) {
	row := func(hidden, name string, score int) string {
		return fmt.Sprintf(`<row hidden="%s"><c t="str"><v>%s</v></c><c t="str"><v>x</v></c><c><v>%d</v></c></row>`, hidden, name, score)
	}
	path := workbook{
		before: `<cols><col min="2" max="2" hidden="1"/></cols>`,
		rows:   inline("name", "note", "score") + row("1", "a", 1) + row("0", "", 2) + row("true", "c", 3) + `<row hidden="1"/>`,
		after:  `<mergeCells count="1"><mergeCell ref="A2:A3"/></mergeCells>`,
	}.file(t)
	rows, warnings := readSheet(t, path, source.Options{})
	if got := show(rows); got != "2:a|x|1\n3:|x|2\n4:c|x|3\n" {
		t.Errorf("%q", got)
	}
	want := []string{
		"2 rows of the sheet are hidden or filtered away in Excel, and read like all others",
		`the sheet hides column "note", which is read like all others`,
		"the sheet has 1 area of merged cells: only the first cell of each holds the value, the others are empty",
	}
	if diff := cmp.Diff(want, warnings); diff != "" {
		t.Error(diff)
	}
}

func TestWhatAFormatHidesIsToldOf(t *testing.T) {
	w := workbook{formats: []string{"0.00E+00", ";;;"}, rows: inline("sum", "secret") +
		inline("x", "x") + `<row><c s="1"><v>5</v></c><c s="2"><v>5</v></c></row><row><c s="1"><v>5</v></c></row>`}
	rows, warnings := readSheet(t, w.file(t), source.Options{})
	if got := show(rows); got != "2:x|x\n3:5|\n4:5|\n" {
		t.Errorf("%q", got)
	}
	want := []string{
		`column "secret": 1 cell holds a number, first in row 3, hidden by the format of the cell; such a cell counts as empty`,
	}
	if diff := cmp.Diff(want, warnings); diff != "" {
		t.Error(diff)
	}
}

func TestWarningsTellNoValues(t *testing.T) {
	w := workbook{rows: inline("phone") + `<row hidden="1"><c><v>4915155512</v></c></row>`}
	_, warnings := readSheet(t, w.file(t), source.Options{})
	if text := strings.Join(warnings, "\n"); len(warnings) != 2 || strings.Contains(text, "4915155512") {
		t.Errorf("%q", text)
	}
}

// Where Excel took some texts of a column for dates and left others, the former may be wrong.
func TestDatesBesideTextsAreToldOf(t *testing.T) {
	const date, text = `<c s="1"><v>46085</v></c>`, `<c t="str"><v>%s</v></c>`
	const sentence = `column "when": %s, first in row 3, that Excel did not take for dates as it did with others: in these day and month may be swapped, and they are written as 2026-03-04 (hint: step date of the mapping reads several layouts, as in "date:YYYY-MM-DD|DD.MM.YYYY")`
	for name, test := range map[string]struct {
		texts []string
		want  string
	}{
		"one":          {[]string{"13.04.2026"}, "1 text looks like a date"},
		"two":          {[]string{"13/4/26", "2026/04/13 10:11"}, "2 texts look like dates"},
		"ISO 8601":     {[]string{"2026-04-13", "2026-04-13T10:11:12"}, ""},
		"other things": {[]string{"1.2.3.4", "555-555-0101", "1/2", "2026", "10.000.000", "12-34.56", "1.2.", "1/2/2026x"}, ""},
	} {
		w := workbook{formats: []string{"dd.mm.yyyy"}, rows: inline("when") + "<row>" + date + "</row>"}
		for _, s := range test.texts {
			w.rows += "<row>" + fmt.Sprintf(text, s) + "</row>"
		}
		var want []string
		if test.want != "" {
			want = []string{fmt.Sprintf(sentence, test.want)}
		}
		if _, warnings := readSheet(t, w.file(t), source.Options{}); !cmp.Equal(want, warnings) {
			t.Errorf("%s: %s", name, cmp.Diff(want, warnings))
		}
	}
}

// What stands far behind the header's names is none of the table.
func TestHeaderWithACellFarAway(t *testing.T) {
	w := workbook{rows: `<row><c t="str"><v>a</v></c><c t="str"><v>b</v></c><c r="XFD1" t="str"><v>left</v></c></row>` +
		inline("1", "2") + `<row><c t="str"><v>3</v></c><c r="XFD3" t="str"><v>x</v></c></row>`}
	rows, warnings := readSheet(t, w.file(t), source.Options{})
	if got := show(rows); got != "2:1|2\n3!columns\n" {
		t.Errorf("%q", got)
	}
	const far = "cell XFD1 of the header stands far behind the others, and is taken for no column; a row that holds something there is not read"
	if !cmp.Equal([]string{far}, warnings) {
		t.Errorf("%q", warnings)
	}
	if want := "cell XFD3 holds something, but the header has only 2 columns"; rows[1].Problem.String() != want {
		t.Errorf("%q", rows[1].Problem.String())
	}
}
