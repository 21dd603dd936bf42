package source_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"leadferry/importer/source"
)

// faults 90, 91, 92, 100, m25, m26
func TestCSVRows(t *testing.T) {
	for _, test := range []struct{ name, data, want string }{
		{"plain", "a,b\n1,2\n3,4\n", "2:1|2\n3:3|4\n"},
		{"no final line end", "a,b\n1,2", "2:1|2\n"},
		{"CR LF", "a,b\r\n1,2\r\n3,4\r\n", "2:1|2\n3:3|4\n"},
		{"CR CR LF", "a,b\r\r\n1,2\r\r\n", "2:1|2\n"},
		{"mixed line ends", "a,b\r\n1,2\n3,4\r\n5,6", "2:1|2\n3:3|4\n4:5|6\n"},
		{"no rows", "a,b\n", ""},
		{"blank lines count as lines", "\n\na,b\n\n  \n1,2\n\r\n\n3,4\n\n", "6:1|2\n9:3|4\n"},
		{"byte order mark", "\xEF\xBB\xBFa,b\n1,2\n", "2:1|2\n"},
		{"byte order mark and quote", "\xEF\xBB\xBF\"a\",b\n1,2\n", "2:1|2\n"},
		{"Ctrl-Z at the end", "a,b\n1,2\n\x1A", "2:1|2\n"},
		{"Ctrl-Z after the last cell", "a,b\n1,2\x1A", "2:1|2\n"},
		{"Ctrl-Z elsewhere is text", "a,b\n1,\x1A\n", "2:1|\x1A\n"},
		{"nothing is trimmed or taken for a number", "a,b\n 01 ,1e5\n+49,00003\n", "2: 01 |1e5\n3:+49|00003\n"},
		{"only empty cells", "a,b\n,\n", "2:|\n"},
		{"one column", "a\n1\n\"\"\n2\n", "2:1\n3:\n4:2\n"},

		{"quoted", "a,b\n\"1,1\",\"2\"\n", "2:1,1|2\n"},
		{"doubled quotes", "a,b\n\"say \"\"hi\"\"\",\"\"\"\"\n", "2:say \"hi\"|\"\n"},
		{"line ends in quotes are kept", "a,b\n\"1\r\n1\",\"2\n\r2\"\n3,4\n", "2:1\r\n1|2\n\r2\n5:3|4\n"},
		{"blank lines in quotes are kept", "a,b\n\"\n\n\",2\n3,4\n", "2:\n\n|2\n5:3|4\n"},
		{"quoted at the end of the file", "a,b\n1,\"2\"", "2:1|2\n"},
		{"quoted before CR LF", "a,b\r\n1,\"2\"\r\n", "2:1|2\n"},
		{"bare quotes are text", "a,b\n5\" pipe,x\"y\"z\n", "2:5\" pipe|x\"y\"z\n"},
		{"a quote after a space is text", "a,b\n \"1\", \"2\"\n", "2: \"1\"| \"2\"\n"},
		{"text after the closing quote", "a,b\n\"1\"x,2\n3,4\n", "2!quote\n3:3|4\n"},
		{"space after the closing quote", "a,b\n\"1\" ,2\n3,4\n", "2!quote\n3:3|4\n"},
		{"backslash does not escape", "a,b\n\"x \\\"y\\\"\",2\n3,4\n", "2!quote\n3:3|4\n"},
		{"unclosed quote", "a,b\n\"1,2\n3,4\n5,6\n", "2!quote\n3:3|4\n4:5|6\n"},
		{"unclosed quote, closed by a later row", "a,b\n\"1,2\n3,\"4\"\n5,6\n", "2!quote\n3:3|4\n4:5|6\n"},
		{"quotes in doubt after an unclosed one", "a,b\n\"1\nx\"y,2\n3,5\"\n", "2!quote\n3!quote\n4:3|5\"\n"},
		{"the last line opens a quote", "a,b\n1,2\n3,\"", "2:1|2\n3!quote\n"},

		{"too few cells", "a,b,c\n1,2\n3,4,5\n", "2!columns\n3:3|4|5\n"},
		{"too many cells", "a,b\n1,2,3\n3,4\n", "2!columns\n3:3|4\n"},
		{"empty cells too many", "a,b\n1,2,,\n3,4,\"\"\n", "2:1|2\n3:3|4\n"},
		{"lone CR", "a,b\n1\r2,3\n4,5\n", "2!line_end\n3:4|5\n"},
		{"lone CR beside quotes", "a,b\n1\r2,\"3\"\n4,5\n", "2!line_end\n3:4|5\n"},
		{"NUL", "a,b\n1,\x00\n3,4\n", "2!nul\n3:3|4\n"},
		{"NUL in quotes", "a,b\n1,\"\x00\"\n3,4\n", "2!nul\n3:3|4\n"},
		{"bad UTF-8", "a,b\n1,caf\xE9\n3,4\n", "2!encoding\n3:3|4\n"},
		{"bad UTF-8 in quotes", "a,b\n1,\"caf\xE9\"\n3,4\n", "2!encoding\n3:3|4\n"},
		{"NUL before bad UTF-8", "a,b\n\x00,\xE9\n", "2!nul\n"},
		{"NUL behind bad UTF-8", "a,b\n\xE9,\x00\n", "2!encoding\n"},
		{"cut UTF-8 at the end", "a,b\n1,caf\xC3", "2!encoding\n"},
		{"the replacement character is text", "a,b\n1,\uFFFD\n", "2:1|\uFFFD\n"},

		{"columns of a rejects file are left out", "a,leadferry_line,b,leadferry_error\n1,7,2,x\n3,8\n", "2:1|2\n3!columns\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := show(readAll(t, test.data, source.Options{Format: source.CSV}))
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestProblemRowsKeepTheRecordAsRead(t *testing.T) {
	rows := readAll(t, "a,b,c\r\n\"1\r\n2\",3\r\n4,\"5\r\n6,7,8,9,\r\n", source.Options{Format: source.CSV})
	type row struct {
		Raw   string
		Cells []string
	}
	var got []row
	for _, r := range rows {
		got = append(got, row{r.Raw, r.Cells})
	}
	want := []row{
		{"\"1\r\n2\",3", []string{"1\r\n2", "3", ""}},
		{"4,\"5", []string{"", "", ""}},
		{"6,7,8,9,", []string{"6", "7", "8"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestProblemsTellThePlaceInTheFile(t *testing.T) {
	for _, data := range []string{"\xEF\xBB\xBFa,b\n1,2\n\n3,\x00", "\xEF\xBB\xBFa,b\n1,2\n\n3,\xFF"} {
		rows := readAll(t, data, source.Options{Format: source.CSV})
		text := rows[len(rows)-1].Problem.Text
		if !strings.Contains(text, "byte offset 14 of the file") {
			t.Errorf("no offset 14: %s", text)
		}
	}
}

// faults 94, m25, m28
func TestRecordsHaveALimit(t *testing.T) {
	long := strings.Repeat("x", 100)
	for _, test := range []struct{ name, data, want string }{
		{"as long as allowed", "a\n" + long[:63] + "\n1\n", "2:" + long[:63] + "\n3:1\n"},
		{"one byte longer", "a\n" + long[:64] + "\n1\n", "2!too_long\n3:1\n"},
		{"at the end of the file", "a\n1\n" + long, "2:1\n3!too_long\n"},
		{"much longer than a block", "a\n" + strings.Repeat(long, 10_000) + "\n1\n", "2!too_long\n3:1\n"},
		{"quoted and long", "a\n\"" + long + "\"\n1\n", "2!too_long\n3:1\n"},
		{"quoted over several lines", "a\n\"" + long[:50] + "\n" + long[:50] + "\n1\n", "2!quote\n3:" + long[:50] + "\n4:1\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			rows := readAll(t, test.data, source.Options{Format: source.CSV, MaxRecord: 64})
			if diff := cmp.Diff(test.want, show(rows)); diff != "" {
				t.Error(diff)
			}
			for _, r := range rows {
				if len(r.Raw) > 64 {
					t.Errorf("line %d: %d bytes of raw text", r.Line, len(r.Raw))
				}
			}
		})
	}
}

func TestRecordsHaveALimitOfLines(t *testing.T) {
	for breaks, want := range map[int]string{
		999:  "2:" + strings.Repeat("\n", 999) + "\n1002:1\n",
		1000: "2!quote\n1002!quote\n1003:1\n",
	} {
		data := "a\n\"" + strings.Repeat("\n", breaks) + "\"\n1\n"
		if diff := cmp.Diff(want, show(readAll(t, data, source.Options{Format: source.CSV}))); diff != "" {
			t.Errorf("%d line breaks: %s", breaks, diff)
		}
	}
}

func TestRecordsLongerThanABlockAreRead(t *testing.T) {
	cell := strings.Repeat("0123456789abcdef", 1<<15) // 512 KiB
	rows := readAll(t, "a,b\n"+cell+",1\n\""+cell+"\n\",2\n3,4\n", source.Options{Format: source.CSV})
	want := "2:" + cell + "|1\n3:" + cell + "\n|2\n5:3|4\n"
	if show(rows) != want {
		t.Error("a long cell was not read as it is")
	}
}
