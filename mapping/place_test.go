package mapping

import (
	"testing"

	"pgregory.net/rapid"
)

// A row that is moved, copied to another file or read by another run is the same row: the default key hangs on its
// data alone. fault 103
func TestTheDefaultKeyDoesNotHangOnThePlace(t *testing.T) {
	m := parse(t, "version: 1\n")
	b, values := cells{"id", "7", "name", "Ann"}.bind(t, m, false)
	rapid.Check(t, func(t *rapid.T) {
		place := func(name string) Env {
			return Env{File: rapid.String().Draw(t, name+" file"), Line: rapid.Int().Draw(t, name+" line"), Run: rapid.String().Draw(t, name+" run")}
		}
		var here, there Record
		if ps := append(b.Map(values, place("one"), &here), b.Map(values, place("other"), &there)...); ps != nil {
			t.Fatalf("problems: %v", ps)
		}
		if here.Key != there.Key {
			t.Fatalf("%s here, %s there", here.Key, there.Key)
		}
	})
}
