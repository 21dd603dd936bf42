package cli

import (
	"runtime"
	"testing"
)

// Processors are added once, and given back; a number that somebody set stands.
func TestProcessors(t *testing.T) {
	usual := runtime.GOMAXPROCS(0)
	for _, test := range []struct {
		set  string
		want int
	}{{"", usual + moreProcessors}, {"3", usual}} {
		t.Setenv("GOMAXPROCS", test.set)
		add, restore := processors()
		if got := runtime.GOMAXPROCS(0); got != usual {
			t.Errorf("%d before the first request, want %d", got, usual)
		}
		add()
		add()
		if got := runtime.GOMAXPROCS(0); got != test.want {
			t.Errorf("GOMAXPROCS=%s: %d, want %d", test.set, got, test.want)
		}
		restore()
		if got := runtime.GOMAXPROCS(0); got != usual {
			t.Errorf("%d afterwards, want %d", got, usual)
		}
	}
}
