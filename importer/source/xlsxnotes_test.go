package source_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"leadferry/importer/source"
)

func TestWhatIsNotSeenInExcelIsToldOf(t *testing.T) {
	row := func(hidden, name string, score int) string {
		return fmt.Sprintf(`<row hidden="%s"><c t="str"><v>%s</v></c><c t="str"><v>x</v></c><c><v>%d</v></c></row>`, hidden, name, score)
	}
	path := workbook{
		rows: inline("name", "note", "score") + row("1", "a", 1) + row("0", "", 2) + row("true", "c", 3) + `<row hidden="1"/>`,
	}.file(t)
	rows, warnings := readSheet(t, path, source.Options{})
	same(t, "2:a|x|1\n3:|x|2\n4:c|x|3\n", show(rows))
	want := []string{
		"2 rows of the sheet are hidden or filtered away in Excel, and read like all others",
	}
	same(t, want, warnings)
}

// What stands far behind the header's names is none of the table.
func TestHeaderWithACellFarAway(t *testing.T) {
	w := workbook{rows: `<row><c t="str"><v>a</v></c><c t="str"><v>b</v></c><c r="XFD1" t="str"><v>left</v></c></row>` +
		inline("1", "2") + `<row><c t="str"><v>3</v></c><c r="XFD3" t="str"><v>x</v></c></row>`}
	rows, warnings := readSheet(t, w.file(t), source.Options{})
	same(t, "2:1|2\n3!columns\n", show(rows))
	const far = "cell XFD1 of the header is far behind the others and is not taken as a column; a row that holds something there is not read"
	if !cmp.Equal([]string{far}, warnings) {
		t.Errorf("%q", warnings)
	}
	same(t, "cell XFD3 holds something, but the header has only 2 columns", rows[1].Problem.String())
}
