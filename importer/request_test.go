package importer

import (
	"testing"

	"pgregory.net/rapid"

	"leadferry/checkpoint"
	"leadferry/mapping"
)

// A field's digests are the ledger's, under whichever name and as whichever kind, whatever stood
// in its place in the rows before.
func TestDigestsOfContent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := twinSums{}
		d := newDigester(l)
		fields := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) mapping.Field {
			f := mapping.Field{
				Name:  rapid.SampledFrom([]string{"a", "b"}).Draw(t, "name"),
				Value: rapid.StringMatching(`|[0-9]|x[0-9]{1,3}`).Draw(t, "value"),
			}
			if rapid.Bool().Draw(t, "number") {
				f.Kind = mapping.Number
			}
			return f
		}), 0, 100).Draw(t, "fields")
		for range 3 {
			fields = append(fields[min(1, len(fields)):], fields[:min(1, len(fields))]...)
			got := d.ofContent(&item{rec: mapping.Record{Content: fields}})
			for i := range fields {
				f := &fields[i]
				want := checkpoint.ContentDigest{Name: l.SumName(f.Name), Value: l.SumValue(f.Name, compared(f))}
				if got[i] != want {
					t.Fatalf("field %d: %x, want %x", i, got[i], want)
				}
			}
		}
	})
}
