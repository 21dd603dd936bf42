package source_test

import (
	"strings"
	"testing"

	"leadferry/importer/source"
	"leadferry/internal/testsupport/must"
)

func TestTheDelimiterIsDetected(t *testing.T) {
	long := strings.Repeat("x", 70_000)
	for _, test := range []struct {
		name, data string
		o          source.Options
		delim      rune
		want       string
	}{
		{"comma", "a,b;c\n1,2\n", source.Options{}, ',', "2:1|2\n"},
		{"not in quotes", "\"a;;;\",b\n1,2\n", source.Options{}, ',', "2:1|2\n"},
		{"quoted header with commas", "\"Name, first\";\"Name, last\";\"City, state, country\"\nAnn;Lee;Rome\n", source.Options{}, ';', "2:Ann|Lee|Rome\n"},
		{"commas in cells", "a;price, EUR;note, text\n1;2,5;x, y\n", source.Options{}, ';', "2:1|2,5|x, y\n"},
		{"more commas in the header than bars", "a, b and, perhaps, c|d\n1|2\n3|4\n", source.Options{}, '|', "2:1|2\n3:3|4\n"},
		{"a drawn table", " a | b, c |d\n---+---+--\n|:--|--\n1 | 2|3\n", source.Options{}, '|', "4:1 | 2|3\n"},
		{"ragged rows", "a,b,c|d\n1,2,3|4\n1,2\n1,2,3\n1,2,3\n1,2,3|\n1,2,3\n1,2,3\n1,2,3\n", source.Options{}, ',', "2:1|2|3|4\n3!columns\n4:1|2|3\n5:1|2|3\n6:1|2|3|\n7:1|2|3\n8:1|2|3\n9:1|2|3\n"},
		{"a row longer than is looked at", "a,b;c\nx;" + long + ",2\n", source.Options{}, ',', "2:x;" + long + "|2\n"},
		{"line breaks in quotes", "a;b\n\"1,\n,2\";3\n", source.Options{}, ';', "2:1,\n,2|3\n"},
		{"said by Excel's line", "\"sep=~\"\na~b;;;\n1~2,5\n~\n", source.Options{}, '~', "3:1|2,5\n"},
		{"named, whatever it says", "sep=~\na~;b\n1;2\n", source.Options{Delimiter: ';'}, ';', "3:1|2\n"},
		{"tsv", "a,b\tc\n1\t2\n", source.Options{Format: source.TSV}, '\t', "2:1|2\n"},
		{"named", "a,b;c\n1;2\n", source.Options{Delimiter: ';'}, ';', "2:1|2\n"},
		{"of several bytes", "a¦b\n\"1\"¦2\n3¦4\n", source.Options{Delimiter: '¦'}, '¦', "2:1|2\n3:3|4\n"},
		{"without header", "1,5;2,5\n3,5;4,5\n", source.Options{NoHeader: true, Columns: []string{"a", "b"}}, ';', "1:1,5|2,5\n2:3,5|4,5\n"},
		{"without header, none fits", "1;2\n", source.Options{NoHeader: true, Columns: []string{"a", "b", "c"}}, ';', "1!columns\n"},
		{"rejects", "a¦leadferry_line¦leadferry_outcome¦leadferry_error\n1 2¦2¦invalid¦x, y\n", source.Options{Delimiter: '¦'}, '¦', "2:1 2\n"},
		{"rejects with blanks around", "a , b , leadferry_line , leadferry_outcome , leadferry_error\n1 2 , 3 , 2 , invalid , x y z\n", source.Options{}, ',', "2:1 2 | 3 \n"},
		{"rejects saved with another delimiter", "a,leadferry_line,leadferry_outcome,leadferry_error\n1,2,invalid,x;y\n", source.Options{Delimiter: ';'}, ',', "2:1\n"},
		{"names like those of rejects", "a,old_leadferry_line,old_leadferry_outcome,old_leadferry_error\n1,2,invalid,x\n", source.Options{}, ',', "2:1|2|invalid|x\n"},
		{"a name with a line break", "\"Kunden-\nName\";id\nAnn;1\n", source.Options{}, ';', "3:Ann|1\n"},
		{"a lone quote", "a;b \"\n1,5;2,5\n", source.Options{}, ';', "2:1,5|2,5\n"},
		{"inches", "a;b \"\n1;5\"\n2;6\",x,y,z\n", source.Options{}, ';', "2:1|5\"\n3:2|6\",x,y,z\n"},
		{"below a comment", "# once,\na;b\n1;2\n", source.Options{Frame: source.Frame{Comment: "#"}}, ';', "3:1|2\n"},
		{"rejects parted by blanks", "a leadferry_line leadferry_outcome leadferry_error\n1 2 invalid x\n", source.Options{Delimiter: ' '}, ' ', "2:1\n"},
	} {
		f := opened(t, write(t, "leads.txt", test.data), test.o)
		must.Same(t, test.delim, f.Info().Delimiter, "delimiter", test.name)
		must.Same(t, test.want, show(rowsOf(t, f)), test.name)
	}
}

func TestHeadersThatAreUnusual(t *testing.T) { // faults 93
	for _, test := range []struct {
		name, data, names, rows, warning string
	}{
		{"blank cells at the end", "id,b, ,\n1,2,,\n3,4\n5,6,\n7,8,x\n9,10,, \n11,12,,,x\n", "id|b", "2:1|2\n3:3|4\n4:5|6\n5:7|8\n6:9|10\n7!columns\n", "line 5 has a cell in a column without a name"},
		{"a column without a name at the beginning", ",id,b\n0,1,2\n,3,4\n1,5,6\n", "|id|b", "2:0|1|2\n3:|3|4\n4:1|5|6\n", "column 1 has no name in the header"},
		{"in the midst", "id,,b\n1,,2\n3,x,4\n", "id||b", "2:1||2\n3:3|x|4\n", "column 2 has no name in the header"},
		{"names that differ in case", "Email,b,EMAIL\n1,2,3\n", "Email|b|EMAIL", "2:1|2|3\n", ""},
		{"white space at the ends", " id , \u00A0b \n1,2\n", "id|b", "2:1|2\n", ""},
		{"line breaks in names", "id,\"E-mail\r\naddress\"\r\n1,2\r\n", "id|E-mail\naddress", "3:1|2\n", ""},
	} {
		f := opened(t, write(t, "leads.csv", test.data), source.Options{})
		must.Same(t, test.names, strings.Join(f.Header().Names, "|"), "columns", test.name)
		must.Same(t, test.rows, show(rowsOf(t, f)), test.name)
		if text := strings.Join(f.Warnings(), "\n"); !strings.Contains(text, test.warning) || test.warning == "" && text != "" {
			t.Errorf("%v: warnings %q, want %q", test.name, text, test.warning)
		}
	}
}
