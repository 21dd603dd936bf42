package report

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"reflect"
	"testing"

	"github.com/gocarina/gocsv"
	"pgregory.net/rapid"
)

// Whoever reads them cannot tell them from those of encoding/csv.
func TestLinesAreThoseOfEncodingCSV(t *testing.T) {
	syntax := rapid.StringOfN(rapid.RuneFrom([]rune("ab,\"\r\n \t\v\u0085\u00a0\u3000é😀\\.;-,\x00\xac")), 0, 40, -1)
	cell := rapid.OneOf(rapid.String(), syntax, rapid.SampledFrom([]string{"", `\.`, `\`, `\.x`, "\xff", "\x85", "1234567,", "12345678\"", "1234567812345678\n"}))
	rapid.Check(t, func(rt *rapid.T) {
		rows := rapid.SliceOf(rapid.SliceOf(cell)).Draw(rt, "rows")
		var got, want bytes.Buffer
		buffer := bufio.NewWriterSize(&got, rapid.IntRange(1, 100).Draw(rt, "buffer"))
		theirs := csv.NewWriter(&want)
		for _, row := range rows {
			must(t, lines{buffer}.Write(row))
			must(t, theirs.Write(row))
		}
		must(t, buffer.Flush())
		theirs.Flush()
		if got.String() != want.String() {
			rt.Fatalf("%q, not %q", got.String(), want.String())
		}
	})
}

// The reconciliation is to the byte what gocsv makes of the columns' tags.
func TestTheReconciliationHasTheCellsOfItsColumns(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		word := rapid.StringMatching(`([a-zA-Z0-9 ,";\x{e9}][a-zA-Z0-9 ,";=\x{e9}]{0,12})?`)
		batch := make([]Compared, rapid.IntRange(1, 5).Draw(rt, "rows"))
		for i := range batch {
			for cell := range reflect.ValueOf(&batch[i]).Elem().NumField() {
				reflect.ValueOf(&batch[i]).Elem().Field(cell).SetString(word.Draw(rt, "cell"))
			}
		}
		want, err := gocsv.MarshalString(batch)
		must(t, err)
		r, err := OpenRun(Files{Dir: dir, Reconciles: true})
		must(t, err)
		must(t, r.Reconciliation(batch))
		must(t, r.Finish(sample()))
		if got := read(t, r.reconciliation.path); got != want {
			rt.Fatalf("%q, not %q", got, want)
		}
	})
}

// Each byte at each place.
func TestQuotesAreThoseOfEncodingCSV(t *testing.T) {
	for at := range 17 {
		for b := range 256 {
			cell := []byte("seventeen letters")
			cell[at] = byte(b)
			var line bytes.Buffer
			w := csv.NewWriter(&line)
			must(t, w.Write([]string{string(cell)}))
			if w.Flush(); quoted(string(cell)) != (line.Bytes()[0] == '"') {
				t.Fatalf("%q: %v", cell, quoted(string(cell)))
			}
		}
	}
}

func BenchmarkResults(b *testing.B) {
	batch := make([]Result, 128)
	for i := range batch {
		batch[i] = Result{
			File: "leads-0-1000000-ordered.csv", Line: "123457", Row: "123456", Key: "x-000123456", Outcome: "unchanged",
			LeadID: "00000000-0000-4000-8000-000000123456", ExternalID: "x-000123456", OrganizationID: "00000000-0000-4000-8000-000000000001",
			Location: "Oak Hill", Status: "open", Attempts: "0",
		}
	}
	r, err := OpenRun(Files{Dir: b.TempDir(), Rejects: None, Summary: None})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := r.Results(batch); err != nil {
			b.Fatal(err)
		}
	}
}
