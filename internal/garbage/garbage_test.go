package garbage

import (
	"runtime/debug"
	"testing"
)

// The more a run keeps, the lower Reserve sets GOGC. It never raises it, and a GOGC of the user wins.
func TestReserve(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	const mib = 1 << 20
	for _, test := range []struct {
		user               string
		before, kept, want int
	}{{"", 220, mib, 220}, {"", 220, 16 * mib, 96}, {"", 220, 1 << 30, 10}, {"", 9, 1 << 30, 9}, {"99", 99, 1 << 30, 99}} {
		t.Setenv("GOGC", test.user)
		debug.SetGCPercent(test.before)
		if Reserve(test.kept); debug.SetGCPercent(100) != test.want {
			t.Errorf("%+v", test)
		}
	}
}
