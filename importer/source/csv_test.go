package source_test

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"leadferry/importer/source"
	"leadferry/internal/testsupport/must"
)

func TestCSVRows(t *testing.T) { // faults 90, 91, 92, 100, m25, m26
	for _, test := range []struct{ name, data, want string }{
		{"plain", "a,b\n1,2\n3,4\n", "2:1|2\n3:3|4\n"},
		{"no final line end", "a,b\n1,2", "2:1|2\n"},
		{"CR CR LF", "a,b\r\r\n1,2\r\r\n", "2:1|2\n"},
		{"mixed line ends", "a,b\r\n1,2\n3,4\r\n5,6", "2:1|2\n3:3|4\n4:5|6\n"},
		{"blank lines count as lines", "\n\na,b\n\n  \n1,2\n\r\n\n3,4\n\n", "6:1|2\n9:3|4\n"},
		{"byte order mark twice", "\xEF\xBB\xBF\xEF\xBB\xBF\"a\",b\n1,2\n", "2:1|2\n"},
		{"marks later", "a,b\n\xEF\xBB\xBF\"1\",2\n\xEF\xBB\xBF\n\xEF\xBB\xBF\xEF\xBB\xBF3,4", "2:1|2\n4:3|4\n"},
		{"Ctrl-Z at the end", "a,b\n1,2\n\x1A", "2:1|2\n"},
		{"Ctrl-Z after the last cell", "a,b\n1,2\x1A", "2:1|2\n"},
		{"Ctrl-Z elsewhere is text", "a,b\n1,\x1A\n", "2:1|\x1A\n"},
		{"nothing is trimmed or taken for a number", "a,b\n 01 ,1e5\n+49,00003\n", "2: 01 |1e5\n3:+49|00003\n"},
		{"one column", "a\n1\n\"\"\n2\n", "2:1\n4:2\n"},

		{"doubled quotes", "a,b\n\"say \"\"hi\"\"\",\"\"\"\"\n", "2:say \"hi\"|\"\n"},
		{"line ends in quotes are kept", "a,b\n\"1\r\n1\",\"2\n\r2\"\n3,4\n", "2:1\r\n1|2\n\r2\n5:3|4\n"},
		{"blank lines in quotes are kept", "a,b\n\"\n\n\",2\n3,4\n", "2:\n\n|2\n5:3|4\n"},
		{"quoted at the end of the file", "a,b\n1,\"2\"", "2:1|2\n"},
		{"bare quotes are text", "a,b\n5\" pipe,x\"y\"z\n", "2:5\" pipe|x\"y\"z\n"},
		{"a quote after a space is text", "a,b\n \"1\", \"2\"\n", "2: \"1\"| \"2\"\n"},
		{"quotes inside a cell in quotes", "a,b\n1,\"I want the \"sport\" seats\"\n3,4\n", "2!quote\n3:3|4\n"},

		{"too few cells", "a,b,c\n1,2\n3,4,5\n", "2!columns\n3:3|4|5\n"},
		{"a cell too many with quotes, and a bare quote behind it", "a,b\n\"Smith, J\",x,extra\n15\" screen,y\n", "2!columns\n3:15\" screen|y\n"},
		{"empty cells too many, as of an unquoted comma", "a,b,c\n1,x, y,\n3,4,\n", "2!columns\n3:3|4|\n"},
		{"an empty cell too many behind a line break", "a,b\n\"1\n\",2,\n3,4\n", "2!columns\n4:3|4\n"},
		{"lone CR", "a,b\n1\r2,3\n4,5\n", "2!line_end\n3:4|5\n"},
		{"lone CR beside quotes", "a,b\n1\r2,\"3\"\n4,5\n", "2!line_end\n3:4|5\n"},
		{"NUL", "a,b\n1,\x00\n3,4\n", "2!nul\n3:3|4\n"},
		{"NUL in quotes", "a,b\n1,\"\x00\"\n3,4\n", "2!nul\n3:3|4\n"},
		{"bad UTF-8", "a,b\n1,caf\xE9\n3,4\n", "2!encoding\n3:3|4\n"},
		{"bad UTF-8 in quotes", "a,b\n1,\"caf\xE9\"\n3,4\n", "2!encoding\n3:3|4\n"},
		{"NUL behind bad UTF-8", "a,b\n\xE9,\x00\n", "2!encoding\n"},
		{"cut UTF-8 at the end", "a,b\n1,caf\xC3", "2!encoding\n"},

		{"columns of a rejects file are left out", "a,leadferry_line,b,leadferry_error\n1,7,2,x\n3,8\n", "2:1|2\n3!columns\n"},
	} {
		got := show(readAll(t, test.data, source.Options{Format: source.CSV}))
		must.Same(t, test.want, got, test.name)
	}
}

func TestProblemRowsKeepTheRecordAsRead(t *testing.T) {
	rows := readAll(t, "a,b,c\r\n\"1 2\",3\r\n4,5,\"6 \x00\"\r\n6,7,8,9,\r\n", source.Options{Format: source.CSV})
	type row struct {
		Text  string
		Cells []string
	}
	var got []row
	for _, r := range rows {
		got = append(got, row{r.Text, r.Cells})
	}
	want := []row{
		{"\"1 2\",3", []string{"", "", ""}},
		{`4,5,"6 \x00"`, []string{"", "", ""}},
		{"6,7,8,9,", []string{"", "", ""}},
	}
	must.Same(t, want, got)
}

func TestRecordsHaveALimit(t *testing.T) { // faults 94, m25, m28
	long := strings.Repeat("x", 100)
	for _, test := range []struct{ name, data, want string }{
		{"as long as allowed", "a\n" + long[:63] + "\n1\n", "2:" + long[:63] + "\n3:1\n"},
		{"one byte longer", "a\n" + long[:64] + "\n1\n", "2!too_long\n3:1\n"},
		{"at the end of the file", "a\n1\n" + long, "2:1\n3!too_long\n"},
		{"quoted, long", "a\n\"" + strings.Repeat(long, 10) + "\"\n1\n", "2:" + strings.Repeat(long, 10) + "\n3:1\n"},
	} {
		rows := readAll(t, test.data, source.Options{Format: source.CSV, MaxRecord: 64})
		must.Same(t, test.want, show(rows), test.name)
		for _, r := range rows {
			if len(r.Text) > 17*64 {
				t.Errorf("%v: line %d: %d bytes of text", test.name, r.Line, len(r.Text))
			}
		}
	}
}

// A file is lost where nobody knows whether the next line is inside quotes. faults m25, 90, 132
func TestNoRowBeginsInsideQuotes(t *testing.T) {
	letter := strings.Repeat("mary,1\n", 1500)
	long := strings.Repeat("x", 1100)
	for _, test := range []struct {
		name, data, want string
		line             int // where the file is lost; 0: nowhere
	}{
		{"a letter of 1,500 lines", "a,b\n1,\"" + letter + "\"\n2,3\n", "2:1|" + letter + "\n1503:2|3\n", 0},
		{"cut inside a letter", "a,b\n1,2\n1,\"" + letter, "2:1|2\n", 3},
		{"never closed", "a,b\n1,2\n\"3,4\n5,6\n", "2:1|2\n", 3},
		{"text after the closing quote", "a,b\n1,2\n\"3\"x,4\n5,6\n", "2:1|2\n", 3},
		{"a quote too many before rows with quotes", "a,b\n\"1\"x,2\n\"3\",4\n", "", 2},
		{"a row of several lines with another number of cells", "a,b\n1,\"x\ny\",3\n4,5\n", "", 2},
		{"closed by a later cell", "a,b\n\"1,2\n3,\"4\"\n5,6\n", "", 2},
		{"opened on a later line of the row", "a,b\n\"1\n\",\"2\n3,4\n", "", 3},
		{"an inch mark in a letter", "a,b\n1,\"a 5\" pipe\nmary,1\nend\"\n2,3\n", "", 2},
		{"a quoted word at the end of a line", "a,b\n1,\"this is \"Bob\"\nmary,1\nend\"\n2,3\n", "", 2},
		{"a cell more than there are columns, over two lines", "a,b\n8,\"x\n9,\", Bob\nmary,1\nend\",2\n", "", 2},
		{"text behind a quote opens another", "a,b\n\"1\" x,\"2\nmary,1\n\"\n", "", 2},
		{"longer than any cell", "a,b\n1,2\n3,\"" + strings.Repeat("x", 500) + "\n" + long + "\"\n4,5\n", "2:1|2\n", 3},
	} {
		o := source.Options{Format: source.CSV, Stdin: strings.NewReader(test.data)}
		if strings.Contains(test.data, long) {
			o.MaxRecord = 64
		}
		f := opened(t, "-", o)
		rows, err := rowsUntil(f)
		must.Same(t, test.want, show(rows), test.name)
		var lost *source.LostError
		switch {
		case test.line == 0 && !errors.Is(err, io.EOF), test.line > 0 && !errors.As(err, &lost):
			t.Errorf("%v: ended with %v", test.name, err)
		case test.line > 0 && (lost.Line != test.line || !strings.Contains(lost.Hint, "quote: none")):
			t.Errorf("%v: lost on line %d, want %d: %v (%s)", test.name, lost.Line, test.line, lost, lost.Hint)
		}
	}
}

func TestRowsWithoutDataAreSkipped(t *testing.T) { // faults 132
	for _, test := range []struct {
		name, data, want string
		format           source.Format
		blank            int
	}{
		{"separators", "a,b\n,\n1,2\n,,,\n , \t\n\u00A0,\u200B\n3,4\n", "3:1|2\n7:3|4\n", source.CSV, 4},
		{"fewer cells than columns", "a,b,c\n,\n1,2,3\n", "3:1|2|3\n", source.CSV, 1},
		{"dashes alone, as sqlcmd draws", "a,b\n---,-\n1,-\n-,\n", "3:1|-\n4:-|\n", source.CSV, 1},
		{"words for nothing", "a,b\nNULL, n/a \n1,NULL\n", "3:1|NULL\n", source.CSV, 1},
		{"something behind the columns", "a,b\n,,x\n", "2!columns\n", source.CSV, 0},
		{"objects", `{"a":""}` + "\n" + `{"a":null,"b":" "}` + "\n" + `{"a":"NULL"}` + "\n" + `{"a":0}`, "4:0\n", source.JSONL, 3},
		{"elements", `[{"a":""},{"a":1},{"a":null}]`, "1:1\n", source.JSONL, 2},
		{"no members", "{}\n{\"leadferry_line\":7}\n{\"a\":1}\n", "1!json\n2!json\n3:1\n", source.JSONL, 0},
	} {
		o := source.Options{Format: test.format, Null: []string{"NULL", "n/a"}, Stdin: strings.NewReader(test.data)}
		f := opened(t, "-", o)
		must.Same(t, test.want, show(rowsOf(t, f)), test.name)
		must.Same(t, test.blank, f.Info().Blank, "blank rows", test.name)
	}
}

func TestARowThatRepeatsTheHeaderIsRecognized(t *testing.T) { // faults 132
	long := strings.Repeat("long", 20)
	for _, test := range []struct {
		data    string
		options source.Options
		repeats string
	}{
		{"id,name\n1,Ann\nid,name\n2,Bob\n", source.Options{}, ".x."},
		{"id,name\n id , name,\n\uFEFFid,name\n\uFEFF\uFEFF\"id\",\"name\"\n", source.Options{}, "xxx"},
		{"id,name\nID,Name\n1,name\n", source.Options{}, "x."},
		{"id,name\n1,Ann\nName,ID\n", source.Options{}, ".x"},
		{"id\u200b,name\n\ufeffid,name\u200b\n1,Ann\n", source.Options{}, "x."},
		{"id,name,a,b\nid,name,x,y\n", source.Options{NoQuotes: true}, "."},
		{"id,name,a,b\nid,1,x,y\nx,name,a,b\n", source.Options{}, ".."},
		{"id,name\n1,Ann\nname,id\n", source.Options{}, ".x"},
		{"a,b\na,a\nb,b\n", source.Options{}, ".."},
		{"name\nName\nname\n", source.Options{}, ".x"},
		{"id,name\n1,Ann\n", source.Options{NoHeader: true, Columns: []string{"id", "name"}}, "x."},
		{"kind,größe\n\u212aIND,GRÖSSE\n\u212aIND,GRÖßE\n", source.Options{}, ".x"}, // a Kelvin sign has three bytes
		{"\u212aind," + long + "\nKIND," + long + "\n" + long + ",kind\n", source.Options{}, "xx"},
		{"id,leadferry_line\nid,leadferry_line\n1,7\n", source.Options{}, "x."},
	} {
		test.options.Format = source.CSV
		got := ""
		test.options.Stdin = strings.NewReader(test.data)
		f := opened(t, "-", test.options)
		rows, err := rowsUntil(f)
		for _, r := range rows {
			if r.Repeats {
				got += "x"
			} else {
				got += "."
			}
		}
		if !errors.Is(err, io.EOF) {
			got += "lost"
		}
		must.Same(t, test.repeats, got, test.data)
	}
}

// A second export in the file may have its columns in another order, which then counts.
func TestTheOrderOfARepeatedHeaderCounts(t *testing.T) {
	rows := readAll(t, "id,First,last\n1,Ann,Lee\nid,LAST,first\n2,Ray,Bob\nfirst,last,id\nCid,Roe,3\nid,first,last\n4,Dan,Poe\n", source.Options{Format: source.CSV})
	rows = slices.DeleteFunc(rows, func(r source.Row) bool { return r.Repeats })
	must.Same(t, "2:1|Ann|Lee\n4:2|Bob|Ray\n6:3|Cid|Roe\n8:4|Dan|Poe\n", show(rows))
}

// The outcome of a rejects row says whether its row has, or may have, a lead. faults 127
func TestRejectsSayWhichRowsMayHaveALead(t *testing.T) {
	for outcome, want := range map[string]bool{"in_doubt": true, " partial ": true, "changed": true, "invalid": false, "rejected": false, "unmatched": false, "": false} {
		for format, data := range map[source.Format]string{
			source.CSV: "id,leadferry_outcome\n1," + outcome + "\n", source.JSONL: `{"id":1,"leadferry":{"outcome":"` + strings.TrimSpace(outcome) + `"}}`,
		} {
			if rows := readAll(t, data, source.Options{Format: format}); len(rows) != 1 || (rows[0].Outcome != "") != want {
				t.Errorf("%s, %s: %+v", format, outcome, rows)
			}
		}
	}
}

// A row in a rejects file that has a lead ID was answered by a person.
func TestAnswersOfPeopleInRejectsAreNoticed(t *testing.T) {
	rows := readAll(t, "id,leadferry_outcome,leadferry_lead_id\n1,in_doubt,x\n2,in_doubt,\n3,rejected, \n", source.Options{Format: source.CSV})
	if len(rows) != 3 || !rows[0].Answered || rows[1].Answered || rows[2].Answered {
		t.Errorf("%+v", rows)
	}
}

func TestUncorrectedRejectsAreNoRows(t *testing.T) { // faults 132
	const note = "leadferry_line,leadferry_outcome,leadferry_error,leadferry_text"
	for _, test := range []struct {
		name, data, want string
		options          source.Options
	}{
		{"CSV", "id,name," + note + "\n,,7,invalid,no,\"1,\"\"Ann\"\n2,Bob,8,rejected,no,\n", "2!uncorrected 1,\"Ann\n3:2|Bob\n", source.Options{}},
		{"filled, with text", "id,name," + note + "\n1,Ann,7,invalid,no,x\n", "2!uncorrected x\n", source.Options{}},
		{"emptied and not filled", "id,name," + note + "\n,,7,invalid,no, \n,,,,,\n", "2!uncorrected ,,7,invalid,no, \n", source.Options{}},
		{"of a file without header", "id,name," + note + "\n2,Bob,8,rejected,no,\n", "2:2|Bob\n", source.Options{NoHeader: true, Columns: []string{"id", "name"}}},
		{"of a file without quotes", "id,name," + note + "\n,\"5\"\" pipe\",8,rejected,no,\n", "2:|5\" pipe\n", source.Options{NoQuotes: true}},
		{"JSONL", `{"leadferry":{"line":1,"text":"{\"a\":"}}` + "\n" + `{"a":1,"leadferry":{"line":1,"text":""}}`, "1!uncorrected {\"a\":\n2:1\n", source.Options{Format: source.JSONL}},
		{"JSONL of CSV", `{"a":1,"leadferry_text":"x"}`, "1!uncorrected x\n", source.Options{Format: source.JSONL}},
		{"a list", `[{"a":1,"leadferry":{"text":"x"}}]`, "1!uncorrected x\n", source.Options{Format: source.JSONL}},
		{"longer than a row", `{"leadferry":{"text":"` + strings.Repeat("x", 100) + `"}}`, "1!uncorrected " + strings.Repeat("x", 100) + "\n", source.Options{Format: source.JSONL, MaxRecord: 64}},
	} {
		if test.options.Format == "" {
			test.options.Format = source.CSV
		}
		got := ""
		for _, r := range readAll(t, test.data, test.options) {
			line, _ := strings.CutSuffix(show([]source.Row{r}), "\n")
			if r.Problem != nil {
				line += " " + r.Text
			}
			got += line + "\n"
		}
		must.Same(t, test.want, got, test.name)
	}
}

func TestQuotesAreTextIfTheSourceHasNoQuotes(t *testing.T) {
	rows := readAll(t, "a\tb\n\"1\t2\"\n\"\t5\" pipe\n", source.Options{Format: source.TSV, NoQuotes: true})
	must.Same(t, "2:\"1|2\"\n3:\"|5\" pipe\n", show(rows))
}
