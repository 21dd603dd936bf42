package bolt

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"leadferry/checkpoint"
	"leadferry/internal/rowkey"
	"leadferry/internal/testsupport/must"
)

// Decoding an encoded entry gives back every field.
func TestEveryFieldComesBack(t *testing.T) {
	texts := rapid.SampledFrom([]string{"", "k", "other", "0b1c2d3e-0000-4000-8000-000000000001"})
	moments := rapid.Custom(func(t *rapid.T) (at time.Time) {
		if rapid.Bool().Draw(t, "some") {
			at = time.UnixMilli(rapid.Int64Range(-1e12, 1e13).Draw(t, "at")).UTC()
		}
		return at
	})
	statuses := rapid.SampledFrom([]string{"", "open", "unheard of"})
	entries := rapid.MakeCustom[checkpoint.Entry](rapid.MakeConfig{
		Types: map[reflect.Type]*rapid.Generator[any]{
			reflect.TypeFor[string](): texts.AsAny(), reflect.TypeFor[time.Time](): moments.AsAny(),
			reflect.TypeFor[int](): rapid.IntRange(0, 1<<40).AsAny(),
			reflect.TypeFor[checkpoint.State](): rapid.Custom(func(t *rapid.T) checkpoint.State {
				return checkpoint.State(rapid.IntRange(int(checkpoint.Created), int(checkpoint.NotMade)).Draw(t, "state"))
			}).AsAny(),
		},
	})
	rapid.Check(t, func(t *rapid.T) {
		e := entries.Draw(t, "entry")
		e.Status, e.Sought = statuses.Draw(t, "status"), statuses.Draw(t, "sought")
		if len(e.Content) == 0 {
			e.Content = nil
		}
		got, err := decodeKept(e.Key, encodeKept(&checkpoint.Kept{Entry: e}), nil)
		if must.Do(t, err); !cmp.Equal(e, got.Entry) {
			t.Fatal(cmp.Diff(e, got.Entry))
		}
	})
}

// For every key, the index record is found by the key's fold and contains the key. Records of other folds have another
// beginning.
func TestFoldsLeadBackToTheirKeys(t *testing.T) {
	key := rapid.OneOf(rapid.String(), rapid.StringMatching(`(ns/|/ns/|)0{0,9}[0-9]{0,6}`),
		rapid.StringMatching(`[A-Fa-f0-9]{8}-0000-4000-8000-[A-Fa-f0-9]{12}`), rapid.StringMatching(`(long.){0,9}[A-Ca-c \x{200B}]{0,6}@[xX]{0,3}`))
	rapid.Check(t, func(t *rapid.T) {
		one, other := key.Draw(t, "key"), key.Draw(t, "other")
		known := &checkpoint.KeptKey{Entry: &checkpoint.Kept{}}
		records, folded := foldsOf(one, known), rowkey.Fold(one)
		if folded == one || folded == "" {
			if records != nil {
				t.Fatalf("%q has a record", one)
			}
			return
		}
		prefix := string(checkpoint.AppendText(nil, folded))
		if records[0] != prefix+one {
			t.Fatalf("%q, by its fold %q, is %q", one, folded, records)
		}
		if with := foldsOf(other, known); with != nil && rowkey.Fold(other) != folded && strings.HasPrefix(with[0], prefix) {
			t.Fatalf("%q is found by the fold of %q", other, one)
		}
	})
}
