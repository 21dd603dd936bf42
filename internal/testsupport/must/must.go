// Package must ends a test where there is an error that is no part of what it tries.
package must

// TB is a test, of the usual kind or of random ones.
type TB interface {
	Helper()
	Fatal(args ...any)
}

// Do ends the test where there is an error.
func Do(t TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
