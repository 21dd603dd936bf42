package checkpoint_test

import (
	"slices"
	"strings"
	"testing"

	"leadferry/checkpoint"
)

// A digest depends on the ledger's secret, on what it is for, and on the whole name and value, and on nothing else. The
// same text, split differently into name and value, has another digest.
func TestDigestsTellTextsApart(t *testing.T) {
	long := strings.Repeat("long ", 200)
	all := func(secret string) (sums []string) {
		d := checkpoint.NewDigester([]byte(secret))
		text := func(b [4]byte) string { return string(b[:]) }
		for _, s := range []string{"", "email", long} {
			whole := d.Sum([]byte(s))
			sums = append(sums, text(d.SumName(s)), string(whole[:4]), string(d.Blocked(s)[:4]))
		}
		for _, s := range [][2]string{{"", ""}, {"email", ""}, {"", "email"}, {"email", "a"}, {"emai", "la"}, {"email", long}, {"email", long + "!"}, {long, "email"}} {
			sums = append(sums, text(d.SumValue(s[0], s[1])))
		}
		return sums
	}
	one, other := all("secret"), all("another")
	if again := all("secret"); !slices.Equal(one, again) {
		t.Errorf("%q, then %q", one, again)
	}
	both := append(one, other...)
	slices.Sort(both)
	if n := len(slices.Compact(slices.Clone(both))); n != len(both) {
		t.Errorf("%d of %d digests are different: %q", n, len(both), both)
	}
}
