// Package must is for commands that can do nothing about an error but end with it: [Get] and [Do] panic with it, and
// [Catch], deferred, makes it the error of a function again.
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

// Do ends what is done where something goes wrong.
func Do(err error) {
	if err != nil {
		panic(failure{err})
	}
}

// Get is the value that a call gives, or the end.
func Get[T any](value T, err error) T {
	Do(err)
	return value
}

// Catch, when deferred, puts the error that ended a function into err. Other panics go on.
func Catch(err *error) {
	switch why := recover().(type) {
	case nil:
	case failure:
		*err = why.error
	default:
		panic(why)
	}
}

// Main runs a command, whose context ends with Ctrl-C, and ends the process.
func Main(name string, run func(ctx context.Context, args []string) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}
