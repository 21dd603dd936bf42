package records

import (
	"testing"

	"leadferry/checkpoint"
	"leadferry/internal/rowkey"

	"pgregory.net/rapid"
)

// Whatever a key is, its record in the index is found by its fold and tells the key, and no other fold's record begins so.
func TestFoldsLeadBackToTheirKeys(t *testing.T) {
	d := checkpoint.NewDigester([]byte("secret"))
	key := rapid.OneOf(rapid.String(), rapid.StringMatching(`(ns/|/ns/|)0{0,9}[0-9]{0,6}`),
		rapid.StringMatching(`[A-Fa-f0-9]{8}-0000-4000-8000-[A-Fa-f0-9]{12}`), rapid.StringMatching(`(long.){0,9}[A-Ca-c \x{200B}]{0,6}@[xX]{0,3}`))
	rapid.Check(t, func(t *rapid.T) {
		one, other := key.Draw(t, "key"), key.Draw(t, "other")
		record, folded := FoldKey(d, one), rowkey.Fold(one)
		if folded == one || folded == "" {
			if record != nil {
				t.Fatalf("%q has a record", one)
			}
			return
		}
		prefix := string(FoldPrefix(d, folded))
		if string(record) != prefix+one {
			t.Fatalf("%q, by its fold %q, is %q", one, folded, record)
		}
		if with := FoldKey(d, other); with != nil && rowkey.Fold(other) != folded && len(with) >= len(prefix) && string(with[:len(prefix)]) == prefix {
			t.Fatalf("%q is found by the fold of %q", other, one)
		}
	})
}
