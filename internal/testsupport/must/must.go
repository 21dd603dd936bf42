// Package must has the checks that tests repeat: an error that a test does not expect, and equal values.
package must

import "github.com/google/go-cmp/cmp"

// TB is a test, of the usual kind or of random ones.
type TB interface {
	Helper()
	Errorf(format string, args ...any)
	Fatal(args ...any)
}

// Do ends the test if there is an error.
func Do(t TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Same reports a difference of two values; about says what they are.
func Same(t TB, want, got any, about ...any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%v %s", about, diff)
	}
}
