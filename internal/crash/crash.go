// Package crash turns a panic, which is a fault of the program itself, into an error that ends a run in order.
//
// Goroutines that read, judge or write rows do it through [Call]. A panic that nobody catches would end the process and
// print the stacks of all goroutines. No error holds the panic's value, which may quote a row. For faults that nothing
// can catch, signals.CrashApart makes the exit code differ from that of a usage error.
package crash

import (
	"fmt"
	"path"
	"runtime"
	"strings"
)

// Error is a fault of the program: what kind of panic it was and where.
type Error struct{ Kind, Place string }

// Error names the kind and the place, but no value.
func (e *Error) Error() string {
	return fmt.Sprintf("internal error (%s at %s)", e.Kind, e.Place)
}

// Call calls f and returns its error, or an *[Error] if it panics.
func Call(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = of(r)
		}
	}()
	return f()
}

// of describes a panic that has just been recovered.
func of(r any) *Error {
	e := &Error{Kind: fmt.Sprintf("%T", r), Place: "unknown"}
	var calls [32]uintptr
	frames := runtime.CallersFrames(calls[:runtime.Callers(0, calls[:])])
	panicked := false
	for f, more := frames.Next(); more; f, more = frames.Next() {
		own := strings.HasPrefix(f.Function, "runtime.")
		if panicked && !own {
			e.Place = fmt.Sprintf("%s:%d", path.Join(path.Base(path.Dir(f.File)), path.Base(f.File)), f.Line)
			break
		}
		panicked = panicked || own && strings.HasSuffix(f.Function, "panic")
	}
	return e
}
