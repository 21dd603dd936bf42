// Package must has what tests check again and again: an error that is not part of what they try, and equal values.
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

// Same tells where two values differ; about is what they are of.
func Same(t TB, want, got any, about ...any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%v %s", about, diff)
	}
}
