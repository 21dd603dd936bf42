// Package must ends a test after an error that is not part of what it tries.
package must

// TB is a test, of the usual kind or of random ones.
type TB interface {
	Helper()
	Fatal(args ...any)
}

// Do ends the test if there is an error.
func Do(t TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
