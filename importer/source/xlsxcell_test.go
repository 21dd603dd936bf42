package source_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"leadferry/importer/source"
	"leadferry/importer/source/sample"
	"leadferry/internal/testsupport/must"
)

// one reads a single cell below a header; a problem as "!text".
func one(t *testing.T, w workbook, cell string) string {
	t.Helper()
	w.rows = inline("a") + "<row>" + cell + "</row>"
	rows, _ := readSheet(t, w.file(t), source.Options{NoHeader: true, Columns: []string{"a"}})
	if len(rows) < 2 {
		return ""
	}
	if faults := rows[1].Faults; len(faults) > 0 {
		if p := faults[0]; p.Code != "cell" || p.Column != 0 || rows[1].Text == "" && rows[1].Cells[0] != "" {
			t.Errorf("fault %+v, text %q", p, rows[1].Text)
		}
		return "!" + faults[0].String()
	}
	return rows[1].Cells[0]
}

const noNumber = `!the cell in column A ("a") holds something else where a number has to be` +
	` (hint: open the workbook in Excel, which may repair it, and save it again)`

func TestCellsOfAllKinds(t *testing.T) { // faults 100
	w := workbook{texts: []string{
		"<t>plain</t>",
		`<r><t>rich </t></r><r><rPr><b/></rPr><t xml:space="preserve">te</t></r><r><t>xt</t></r>`,
		`<t>東京</t><rPh sb="0" eb="2"><t>トウキョウ</t></rPh><phoneticPr fontId="1"/>`,
		"<t>a_x000D_\nb_x0009_c_x005F_x000D__xD83D_ _xZZZZ_ _x00e9__x</t>",
		"",
		"<t>a&amp;b &lt;c&gt; &#233;</t>",
		"<t>_x0000_</t>",
	}}
	for _, test := range []struct{ cell, want string }{
		{`<c t="s"><v>0</v></c>`, "plain"},
		{`<c t="s"><v> 1 </v></c>`, "rich text"},
		{`<c t="s"><v>2</v></c>`, "東京"},
		{`<c t="s"><v>3</v></c>`, "a\r\nb\tc_x000D__xD83D_ _xZZZZ_ é_x"},
		{`<c t="s"><v>4</v></c>`, ""},
		{`<c t="s"><v>5</v></c>`, "a&b <c> é"},
		{`<c t="s"><v>6</v></c>`, "!the cell in column A (\"a\") holds a NUL character (hint: remove it)"},
		{`<c t="inlineStr"><is><r><t>in</t></r><r><t>line</t></r></is></c>`, "inline"},
		{`<c t="inlineStr"><is><t>1.</t></is><v>01.</v></c>`, "1."},
		{`<c t="inlineStr"><is><t> kept </t></is></c>`, " kept "},
		{`<c t="str"><f>A1&amp;"x"</f><v>ax_x0041_</v></c>`, "axA"},
		{`<c t="str"><f>""</f><v></v></c>`, ""},
		{`<c><f>1+1</f><v>2</v></c>`, "2"},
		{`<c t="b"><v>1</v></c>`, "TRUE"},
		{`<c t="d"><v>2026-03-04T10:11:12</v></c>`, "2026-03-04T10:11:12"},
		{`<c t="d"><v>soon</v></c>`, "soon"},
		{`<c><v></v></c>`, ""},
		{`<x:c xmlns:x="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><x:v>7</x:v></x:c>`, "7"},
		{`<c><v><!-- no --><![CDATA[7]]>0</v><extLst><v>9</v></extLst></c>`, "70"},
		{`<c t="e"><v>#N/A</v></c>`, `!the cell in column A ("a") holds the error #N/A (hint: correct its formula, or empty the cell)`},
		{`<c t="e"><v>secret</v></c>`, `!the cell in column A ("a") holds an error (hint: correct its formula, or empty the cell)`},
		{`<c><f>NOW()</f><v></v></c>`, `!the cell in column A ("a") holds a formula without its result (hint: open the workbook in Excel, which computes it, and save it again)`},
		{`<c t="str"><f>""</f><v></v></c>`, ``},
		{`<c><f>NOW()</f></c>`, `!the cell in column A ("a") holds a formula without its result (hint: open the workbook in Excel, which computes it, and save it again)`},
		{`<c t="s"><v>0</v></c><c r="B2" t="e"><v>#N/A</v></c>`, "plain"},
		{`<c><v>secret</v></c>`, noNumber},
		{`<c><v>0x10</v></c>`, noNumber},
		{`<c><v>1e999</v></c>`, noNumber},
	} {
		must.Same(t, test.want, one(t, w, test.cell), test.cell)
	}
}

const lost = `!the cell in column A ("a") holds a number of more than 15 digits: Excel keeps only 15 (hint: format the column as text and enter the number again)`

// A number keeps all its digits. Formats of codes and phone numbers are filled as Excel fills them. faults 100
func TestNumbersAsShown(t *testing.T) {
	for _, test := range []struct{ format, number, want string }{
		// The general format shortens long numbers where the column is narrow; the text does not.
		{"General", "4.9151234567E+11", "491512345670"},
		{"General", "999999999999999", "999999999999999"},
		{"General", "1000000000000000", lost},
		{"General", "0.1", "0.1"},
		{"General", "0.30000000000000004", "0.3"},
		{"General", "1E-7", "0.0000001"},
		{"General", "-0", "0"},
		{"49", "1234567890123456", lost},
		// With an exponent digits would be lost.
		{"11", "12345678901234", "12345678901234"},
		{"0.00E+00", "4915123456", "4915123456"},
		// Zeros of the format.
		{"00000", "1234", "01234"},
		{`00000\-0000`, "12345678", "01234-5678"},
		{`0#" "##" "##" "##" "##`, "2345678", "00 02 34 56 78"},
		{"0000000000", "1234567890123456", lost},
		// Conditions are not evaluated: here, the format for phone numbers that Excel offers for the United States.
		{`[<=9999999]###\-####;\(###\)\ ###\-####`, "5551234567", "5551234567"},
		{`(###) ###-####`, "5551234", "() 555-1234"},
		{`\+00\ 000\ 0000000`, "491511234567", "+49 151 1234567"},
		// Amounts.
		{"0.00", "1.005", "1.005"},
		{"#", "0", "0"},
		{"#,##0", "1234567", "1234567"},
		{"4", "-1234567.891", "-1234567.891"},
		{"0,", "1234567", "1234567"},
		{"9", "0.125", "12.5%"},
		{`[$$-409]#,##0.00;[Red]\-[$$-409]#,##0.00`, "-1234.5", "-1234.5"},
		{`_-* #,##0.00\ "€"_-;\-* #,##0.00\ "€"_-;_-* "-"??\ "€"_-;_-@_-`, "-7", "-7"},
		{`_-* #,##0.00\ "€"_-;\-* #,##0.00\ "€"_-;_-* "-"??\ "€"_-;_-@_-`, "0", "0"},
		{"0;-0;;@", "0", ""},
		{";;;", "5", ""},
		{`"+"0;\-0;;"x"@`, "-5", "-5"},
		{`0"; "0`, "12", "1; 2"},
		{"[DBNum1]00000", "1067", "01067"},
		// Slashes: fractions, which keep all their digits, and text between digits.
		{"# ?/?", "1.5", "1.5"},
		{"13", "3.14159265358979", "3.14159265358979"},
		{"# ?/?;(# ?/?)", "-2.75", "-2.75"},
		{"# ?/?%", "0.25", "25%"},
		{"0000/00/00", "20260304", "2026/03/04"},
		{"$0/mo", "12", "$12/mo"},
	} {
		w := workbook{formats: []string{test.format}}
		must.Same(t, test.want, one(t, w, `<c s="1"><v>`+test.number+`</v></c>`), test.number, test.format)
	}
}

const noDate = `!the cell in column A ("a") holds a number that is no date but has the format of one (hint: enter the date again, or change the format of the cell)`

func TestDatesAsShown(t *testing.T) { // faults 100
	for _, test := range []struct{ format, number, want string }{
		// Formats whose look depends on the language of the system become ISO 8601.
		{"14", "46085", "2026-03-04"},
		{"18", "46085.424444444441", "10:11:12"},
		{"21", "0.99999999", "00:00:00"},
		{"22", "46085.424444444441", "2026-03-04 10:11:12"},
		{"22", "46085.99999999", "2026-03-05 00:00:00"},
		{"57", "46085.5", "2026-03-04 12:00:00"},
		{`[$-F800]dddd\,\ mmmm\ dd\,\ yyyy`, "46085", "2026-03-04"},
		// The calendar's ends, and the leap day that 1900 did not have.
		{"14", "0", noDate},
		{"14", "1", "1900-01-01"},
		{"14", "60", noDate},
		{"14", "2958465", "9999-12-31"},
		{"14", "2958466", noDate},
		{"14", "-1", noDate},
		{"yyyy-mm-dd", "20260304", noDate},
		// The workbook's own formats.
		{`yyyy\-mm\-dd\ hh:mm:ss`, "46085.424444444441", "2026-03-04 10:11:12"},
		{`yyyy-mm-dd"T"hh:mm:ss.000`, "46085.424444444441", "2026-03-04 10:11:12.000"},
		{`[$-409]m/d/yy\ h:mm\ AM/PM;@`, "46085.424444444441", "2026-03-04 10:11:12"},
		{"[$-407]d. mmmm yyyy", "46085", "2026-03-04"},
		{"yyyymmddhhmmss", "46085.424444444441", "2026-03-04 10:11:12"},
		{"[<1]h:mm;yyyy-mm-dd", "0.5", "12:00:00"},
		// Months and minutes share a letter.
		{"m/d h:m", "46085.424444444441", "2026-03-04 10:11:12"},
		{`[h]"h "m`, "1.424444444441", "34:11:12"},
		// Hours of a 12-hour clock.
		{"h:mm AM/PM", "0.01", "00:14:24"},
		// Rounded to what is shown of a second.
		{"h:mm:ss", "0.999999", "00:00:00"},
		{"ss.0", "0.0000096", "00:00:00.8"},
		{"mm:ss.000", "46085.42443865741", "10:11:11.500"},
		// Years of another calendar.
		{`[$-411]ggge"年"m"月"d"日"`, "46085", "2026-03-04"},
		// Durations go beyond the day.
		{"[h]:mm:ss", "0.0006944444444", "00:01:00"},
		{"47", "0.000011574", "00:00:01.0"},
		{"[s]", "1", "24:00:00"},
	} {
		w := workbook{formats: []string{test.format}}
		must.Same(t, test.want, one(t, w, `<c s="1"><v>`+test.number+`</v></c>`), test.number, test.format)
	}
}

func TestDatesCountedFrom1904(t *testing.T) { // faults 100
	w := workbook{formats: []string{"14", "yyyy-mm-dd", "d.m.yyyy ddd", "[h]:mm"}, from: ` date1904="1"`}
	for cell, want := range map[string]string{
		`<c s="1"><v>44623</v></c>`:   "2026-03-04",
		`<c s="1"><v>0</v></c>`:       "1904-01-01",
		`<c s="1"><v>2957004</v></c>`: noDate,
		`<c s="3"><v>59</v></c>`:      "1904-02-29",
		`<c s="4"><v>1.5</v></c>`:     "36:00:00",
	} {
		must.Same(t, want, one(t, w, cell), cell)
	}
}

func TestRowsWithAFaultKeepTheirCells(t *testing.T) {
	w := workbook{rows: inline("a", "b") + `<row><c t="inlineStr"><is><t>x</t></is></c><c t="e"><v>#N/A</v></c></row>` + inline("y", "z", "more")}
	rows, _ := readSheet(t, w.file(t), source.Options{})
	if diff := cmp.Diff("2:x|#N/A\n3!columns\n", show(rows)); diff != "" {
		t.Fatal(diff)
	}
	must.Same(t, []string{"x,#N/A", "y,z,more"}, []string{rows[0].Text, rows[1].Text})
	if len(rows[0].Faults) != 1 || rows[0].Faults[0].Column != 1 || len(rows[1].Faults) > 0 {
		t.Errorf("faults %+v and %+v", rows[0].Faults, rows[1].Faults)
	}
	must.Same(t, `the cell in column C holds something, but the header has only 2 columns`, rows[1].Problem.String())
	if _, err := sample.Read(source.Options{}, nil, w.file(t)); !strings.Contains(fmt.Sprint(err), "error #N/A\nhint: correct its") {
		t.Errorf("init says %v", err)
	}
}

// Programs that cannot compute write 0 as the result of every formula, and ask Excel to compute it when it opens the
// workbook. That 0 is no result. A 0 that Excel computed is one.
func TestAResultThatExcelHasNotComputedIsAFault(t *testing.T) {
	const formula = `<c><f>A1&amp;"@x.example"</f><v>0</v></c>`
	w := workbook{}
	must.Same(t, "0", one(t, w, formula), "computed")
	w.parts = map[string]string{"xl/workbook.xml": xmlHead + "<workbook" + mainNS + ` xmlns:r="` + relation +
		`"><sheets><sheet name="Leads" sheetId="1" r:id="rId1"/></sheets><calcPr calcId="124519" fullCalcOnLoad="1"/></workbook>`}
	for cell, want := range map[string]string{
		formula: `!the cell in column A ("a") holds a formula with the result 0, which Excel may not have computed` +
			` yet (hint: open the workbook in Excel, which computes it, and save it again)`,
		`<c><v>0</v></c>`:                    "0",
		`<c><f>1+1</f><v>2</v></c>`:          "2",
		`<c t="b"><f>1&gt;2</f><v>0</v></c>`: "FALSE",
		`<c t="str"><f>""</f><v></v></c>`:    "",
	} {
		must.Same(t, want, one(t, w, cell), cell)
	}
}
