package delimited

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

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

// Wherever the text that was read ends, also within two quotes, no row is taken for a place where the file is lost.
func TestQuotesInPairsAtTheEndOfWhatWasRead(t *testing.T) {
	text := "a,b,c\n" + strings.Repeat("\"\",\"\"\n", 200)
	for limit := 16; limit < 32; limit++ {
		found := &rows.Found{}
		r, err := Open(lines.New(iotest.OneByteReader(strings.NewReader(text)), limit), rows.Options{Format: rows.CSV, Delimiter: ','}, found)
		if err != nil {
			t.Fatal(err)
		}
		for err == nil {
			err = r.Next(&rows.Row{Header: found.Header})
		}
		if !errors.Is(err, io.EOF) {
			t.Errorf("at most %d bytes a row: %v", limit, err)
		}
	}
}
