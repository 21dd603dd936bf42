package source_test

import (
	"errors"
	"io"
	"regexp"
	"strings"
	"testing"

	"leadferry/importer/source"
	"leadferry/internal/testsupport/must"
)

func framed(t *testing.T, data string, o source.Options) string {
	t.Helper()
	if o.Format == "" {
		o.Format = source.CSV
	}
	o.Stdin = strings.NewReader(data)
	f, err := source.Open("-", o)
	if err != nil {
		return err.Error()
	}
	rows, err := rowsUntil(f)
	text := show(rows)
	if !errors.Is(err, io.EOF) {
		return text + err.Error()
	}
	if f.Info().SHA256 == "" {
		t.Error("the file was not read to its end")
	}
	return text + strings.Join(f.Warnings(), "\n")
}

func frame(skip, last int, footer, comment string) source.Options {
	o := source.Options{}
	o.SkipRows, o.SkipFooter, o.Comment = skip, last, comment
	if footer != "" {
		o.Footer = regexp.MustCompile(footer)
	}
	return o
}

func TestLinesAroundATableAreSkipped(t *testing.T) {
	const notHere = "-: is empty: it has no header\nhint: the first line must name the columns; source.skip_rows leaves out the lines above it"
	const footer = "the lines from 4 on were left out as source.skip_footer says"
	for _, test := range []struct {
		name, data string
		o          source.Options
		want       string
	}{
		{"lines before the header", "Report\n\"of, 2026\n\nid,name\n1,Ann\n", frame(3, 0, "", ""), "5:1|Ann\n"},
		{"the delimiter is that of the table", "Report; of; 2026\nid,name\n1,Ann\n", frame(1, 0, "", ""), "3:1|Ann\n"},
		{"more lines than there are", "id\n1\n", frame(3, 0, "", ""), notHere},
		{"lines at the end", "id,name\n1,Ann\n2,Bob\n\nTotal \"2\n\nx\nend", frame(0, 5, "", ""), "2:1|Ann\n3:2|Bob\n" + footer},
		{"lines at the end, the last one ended", "id,name\n1,Ann\n2,Bob\n\n\n\n\nend\n", frame(0, 5, "", ""), "2:1|Ann\n3:2|Bob\n" + footer},
		{"the header is left out too", "id\n1\n", frame(0, 2, "", ""), "the lines from 1 on were left out as source.skip_footer says"},
		{"from the first row that fits", "id,name\n1,Ann\n\n\"Grand total\",2\n3,\"x", frame(0, 0, "^Grand total", ""), "2:1|Ann\nthe lines from 4 on were left out as source.footer says"},
		{"the cells that hold something", "id,name\n1,Ann\n,, Total\n", frame(0, 0, "^Total$", ""), "2:1|Ann\nthe lines from 3 on were left out as source.footer says"},
		{"a footer inside quotes is none", "id,name\n1,\"Ann\nTotal\"\n2,Bob\n", frame(0, 0, "^Total", ""), "2:1|Ann\nTotal\n4:2|Bob\nno row fits source.footer: is the file whole?"},
		{"comments", "# by\nid,name\n#1,Ann\n2,#Bob\n3,\"\n#4\"\n#", frame(0, 0, "", "#"), "4:2|#Bob\n5:3|\n#4\n"},
	} {
		must.Same(t, test.want, framed(t, test.data, test.o), test.name)
	}
}

func TestABackslashMayEscapeQuotes(t *testing.T) {
	escaped := source.Options{Backslash: true}
	const lost = "-:2: the quotes of this row do not fit: nobody knows where the next rows begin, so none was read"
	for _, test := range []struct {
		name, data string
		o          source.Options
		want       string
	}{
		{"a quote and a delimiter", `a,b` + "\n" + `"x\",y",2` + "\n", escaped, `2:x",y|2` + "\n"},
		{"a backslash at the end of a cell", `a,b` + "\n" + `"C:\\",2` + "\n", escaped, `2:C:\|2` + "\n"},
		{"any other backslash", `a,b` + "\n" + `"C:\new\",\` + "\n" + `",2\` + "\n", escaped, `2:C:\new",\` + "\n" + `|2\` + "\n"},
		{"doubled quotes", `a,b` + "\n" + `"x ""y""",""` + "\n", escaped, `2:x "y"|` + "\n"},
		{"outside quotes", `a,b` + "\n" + `\"x\",2` + "\n", escaped, `2:\"x\"|2` + "\n"},
		{"without the option, and lost", `a,b` + "\n" + `"x \"y",2` + "\n" + `"1","2"` + "\n", source.Options{}, lost},
	} {
		must.Same(t, test.want, framed(t, test.data, test.o), test.name)
	}
}

func TestRowsAroundTheTableOfASheetAreSkipped(t *testing.T) {
	w := workbook{rows: inline("Report") + "<row/>" + inline("id", "name") + inline("1", "Ann") + inline("2", "Bob") + "<row/>" + inline("Total", "2")}
	path := w.file(t)
	for _, test := range []struct {
		o    source.Options
		want string
	}{
		{frame(2, 3, "", ""), "4:1|Ann\n"},
		{frame(2, 0, "^Total 2$", ""), "4:1|Ann\n5:2|Bob\n"},
		{frame(2, 0, "^Bob", ""), "4:1|Ann\n5:2|Bob\n7:Total|2\n"},
	} {
		rows, warnings := readSheet(t, path, test.o)
		must.Same(t, test.want, show(rows), test.o.Frame)
		must.Same(t, 1, len(warnings), test.o.Frame, warnings, "warnings")
	}
}

func TestSkippingRowsOfJSONIsRefused(t *testing.T) {
	const want = "is JSON, which has no header, and no lines before or after its rows"
	openError(t, write(t, "a.jsonl", "{\"a\": 1}\n"), frame(1, 0, "", ""), want)
}

// Rejects are read as they were written, whatever the mapping says about its source: even if somebody saved them as a
// workbook, or if they are CSV and the source is a workbook. fault 132
func TestRejectsAreReadWhateverTheSourceOfTheMappingSays(t *testing.T) {
	header := []string{"id", "name", "leadferry_line", "leadferry_outcome", "leadferry_error", "leadferry_text"}
	saved := workbook{rows: inline(header...) + inline("7", "Ann", "4", "invalid", "no", "") + inline("8", "Bob", "5", "invalid", "no", "")}
	for _, o := range []source.Options{
		{Frame: source.Frame{SkipRows: 1}},
		{Frame: source.Frame{SkipFooter: 2}},
		{Frame: source.Frame{SkipRows: 9, SkipFooter: 9, Footer: regexp.MustCompile("Ann")}},
		{NoHeader: true, Columns: []string{"a", "b"}},
	} {
		rows, warnings := readSheet(t, saved.file(t), o)
		if got := show(rows); got != "2:7|Ann\n3:8|Bob\n" || len(warnings) > 0 {
			t.Errorf("%+v: %q, %q", o, got, warnings)
		}
	}
	text := strings.Join(header, ",") + "\n7,Ann,4,invalid,no,\n"
	f := opened(t, write(t, "rejects.csv", text), source.Options{Format: source.XLSX, Sheet: "Leads"})
	must.Same(t, []any{"2:7|Ann\n", "csv"}, []any{show(rowsOf(t, f)), f.Info().Format})
	text = "\"Phone\nhome\"," + text // whose name has a line break: what makes it rejects is on the second line
	f = opened(t, write(t, "rejects.csv", strings.Replace(text, "\n7", "\n030,7", 1)), frame(1, 1, "", ""))
	must.Same(t, "3:030|7|Ann\n", show(rowsOf(t, f)))
}
