package records

import (
	"strings"
	"testing"

	"leadferry/checkpoint"
	"leadferry/internal/rowkey"

	"pgregory.net/rapid"
)

// Whatever a key is, its record in the index leads back to it from its fold, and no other
// key has the same.
func TestFoldsLeadBackToTheirKeys(t *testing.T) {
	d := checkpoint.NewDigester([]byte("secret"))
	long := strings.Repeat("long.", 8)
	key := rapid.OneOf(rapid.String(), rapid.StringMatching(`(ns/|/ns/|)0{0,9}[0-9]{0,6}`),
		rapid.StringMatching(`[A-Fa-f0-9]{8}-0000-4000-8000-[A-Fa-f0-9]{12}`), rapid.StringMatching(`(`+long+`|)[A-Ca-c \x{200B}]{0,6}@[xX]{0,3}`))
	rapid.Check(t, func(t *rapid.T) {
		one, other := key.Draw(t, "key"), key.Draw(t, "other")
		record := FoldKey(d, one)
		folded := rowkey.Fold(one)
		if folded == one || folded == "" {
			if record != nil {
				t.Fatalf("%q has a record", one)
			}
			return
		}
		prefix := FoldPrefix(d, folded)
		if got := Unfolded(folded, record[len(prefix):]); got != one {
			t.Fatalf("%q, by its fold %q, is %q", one, folded, got)
		}
		if one != other && string(FoldKey(d, other)) == string(record) {
			t.Fatalf("%q and %q have one record", one, other)
		}
	})
}

// Damage that makes a record nonsense is no panic, and finds nobody.
func TestUnfoldingNonsense(t *testing.T) {
	for _, how := range []string{"", "\x01", "\x01\xff", "\x01\x09\x01", "\x01\x00\xff\xff\xff\xff\x7f", "\x09abc"} {
		if key := Unfolded("12", []byte(how)); len(key) > checkpoint.MaxKey {
			t.Errorf("%q: %d bytes", how, len(key))
		}
	}
}
