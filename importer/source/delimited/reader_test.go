package delimited

import (
	"strings"
	"testing"

	"leadferry/importer/source/lines"
	"leadferry/importer/source/rows"
)

// Rows of another width than the header with quotes in pairs, as PostgreSQL writes empty texts, are looked behind up to the
// next quote that tells something. That is done once for all of them: else a file of such rows takes its size squared.
func TestWhatWasLookedAtIsNotLookedAtAgain(t *testing.T) {
	found := &rows.Found{}
	in := lines.New(strings.NewReader("a,b,c\n"+strings.Repeat("1,\"\"\n", 100)), 1<<20)
	r, err := Open(in, rows.Options{Format: rows.CSV}, found)
	if err != nil {
		t.Fatal(err)
	}
	next := func() {
		t.Helper()
		row := rows.Row{Header: found.Header}
		if err := r.Next(&row); err != nil || row.Problem == nil || row.Problem.Code != "columns" {
			t.Fatalf("%v, %+v", err, row.Problem)
		}
	}
	next()
	text := in.Text() // which no reader does, but whoever looks again would see it
	copy(text[len(text)-3:], `x"`)
	next()
	if r.paired = 0; r.quoteOpens(0) {
		t.Error("the text was not changed")
	}
}
