package records

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"leadferry/checkpoint"
)

// Contents come back as they were, whichever names the one before had at the same places.
func TestContentsOfOtherNames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := NewWords()
		for range 20 {
			e := checkpoint.Entry{Key: "k", State: checkpoint.Created, Content: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) (d checkpoint.ContentDigest) {
				d.Name[3] = rapid.ByteRange('a', 'e').Draw(t, "name")
				d.Value[0] = rapid.Byte().Draw(t, "value")
				return d
			}), 1, 6).Draw(t, "content")}
			record := w.AppendKept(nil, &checkpoint.Kept{Entry: e})
			var got checkpoint.Entry
			if err := w.Decode("k", record, &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(e, got); diff != "" {
				t.Fatal(diff)
			}
		}
	})
}
