package propose

import (
	"fmt"
	"testing"

	"leadferry/mapping"
)

// BenchmarkPropose takes what init takes at most, of a wide file in which every
// cell differs.
func BenchmarkPropose(b *testing.B) {
	in := Input{File: "f.csv", Source: mapping.Source{Format: "csv"}}
	header := []string{"id", "First Name", "Email", "Phone", "Street", "Message", "Created", "Note"}
	for i := range 40 {
		in.Columns = append(in.Columns, fmt.Sprintf("%s %d", header[i%len(header)], i))
	}
	for i := range 10_000 {
		row := make([]string, len(in.Columns))
		for j := range row {
			cells := []string{"L-%d", "Anna %d", "ann%d@x.example", "+49 30 555%05d", "Hauptstraße %d", "Please call me about van %d, and soon.", "2026-01-02 10:%d", "Note %d"}
			row[j] = fmt.Sprintf(cells[j%len(cells)], i)
		}
		in.Rows = append(in.Rows, row)
	}
	for b.Loop() {
		propose(b, in)
	}
}
