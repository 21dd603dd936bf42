package crash

import (
	"errors"
	"io"
	"testing"
)

func TestPanicBecomesAnErrorWithoutItsValue(t *testing.T) {
	var none []string
	var nowhere *Error
	for want, f := range map[string]func() error{
		"internal error (string at crash/crash_test.go:13)":                 func() error { panic("planted") },
		"internal error (runtime.boundsError at crash/crash_test.go:14)":    func() error { return errors.New(none[len(none)]) },
		"internal error (runtime.errorString at crash/crash_test.go:15)":    func() error { return errors.New(nowhere.Kind) },
		"internal error (*errors.errorString at crash/crash_test.go:16)":    func() error { panic(io.EOF) },
		"internal error (*runtime.PanicNilError at crash/crash_test.go:17)": func() error { panic(nil) },
	} {
		err := Call(f)
		if e := (*Error)(nil); !errors.As(err, &e) || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if err := Call(func() error { return io.EOF }); err != io.EOF {
		t.Error(err)
	}
}
