// Package must is for commands that cannot go on after an error. [Get] and [Do] panic with the error, and a deferred
// [Catch] turns the panic back into an error.
package must

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

type failure struct{ error }

// Do panics if there is an error.
func Do(err error) {
	if err != nil {
		panic(failure{err})
	}
}

// Get returns the value of a call, or panics with its error.
func Get[T any](value T, err error) T {
	Do(err)
	return value
}

// Catch must be deferred. It stores the error of Do or Get in err. Other panics continue.
func Catch(err *error) {
	switch why := recover().(type) {
	case nil:
	case failure:
		*err = why.error
	default:
		panic(why)
	}
}

// Main runs a command and exits with 1 after an error. Ctrl-C ends its context.
func Main(name string, run func(ctx context.Context, args []string) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}
