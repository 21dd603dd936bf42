package records

import (
	"strings"
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

// A gist is what decoding the whole entry comes to.
func TestGistIsThatOfTheEntry(t *testing.T) {
	const id = "5f0c1a52-7d0b-4a3e-9a1e-3a1c6d1f0b77"
	text := rapid.SampledFrom([]string{"", "a", "ab", id, strings.ToUpper(id), id[1:], strings.Repeat("x", 126), strings.Repeat("x", 127), strings.Repeat("x", checkpoint.MaxKey), strings.Repeat("x", checkpoint.MaxKey+1)})
	rapid.Check(t, func(t *rapid.T) {
		e := checkpoint.Entry{
			Key: text.Filter(checkpoint.ValidKey).Draw(t, "key"), State: checkpoint.State(rapid.IntRange(1, int(checkpoint.NotMade)).Draw(t, "state")),
			Status: rapid.SampledFrom([]string{"", "inProgress", "escalated"}).Draw(t, "status"), LeadID: text.Draw(t, "lead"),
			Organization: text.Draw(t, "organization"), Location: text.Draw(t, "location"),
			ExternalID: text.Draw(t, "external"), WantLink: text.Draw(t, "wanted"),
		}
		w := NewWords()
		record := w.AppendKept(nil, &checkpoint.Kept{Entry: e})
		want := Gist{State: e.State, Status: KindOfStatus(e.Status)}
		want.Lead, want.Links = IndexKeys(&e)
		got, err := w.GistOf([]byte(e.Key), record)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Fatal(err, diff)
		}
		if _, err := w.GistOf([]byte(e.Key+"!"), record); err != ErrRecord {
			t.Fatal("under another key: ", err)
		}
	})
}
