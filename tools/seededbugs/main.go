// Command seededbugs tests the tests: it makes the mistakes of a table in leadferry, one at a
// time, each of which would send a lead twice, lose one or tell a secret, and shows which
// test notices it.
//
//	go -C tools run ./seededbugs             # all; some minutes
//	go -C tools run ./seededbugs -only 6     # by number or name, several with commas
//	go -C tools run ./seededbugs -j 2        # two at a time
//
// The mistakes are made in copies of the sources as they stand in the working tree. The
// quickest tests that are known to notice a mistake are run first, and where they do not,
// the whole suite is. A mistake with which the program cannot be built is an error of the
// table. It ends with how many were caught, "69 of 69 caught", or with exit code 1.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return
	}
	fmt.Fprintln(os.Stderr, "seededbugs:", err)
	os.Exit(1)
}

func run(ctx context.Context, args []string, out, note io.Writer) (err error) {
	set := flag.NewFlagSet("seededbugs", flag.ContinueOnError)
	set.SetOutput(note)
	only := set.String("only", "", "`BUGS` by number or name, with commas between (default: all)")
	workers := set.Int("j", 1, "how many at a time")
	if err := set.Parse(args); err != nil {
		return err
	}
	if set.NArg() > 0 || *workers < 1 {
		return errors.New("there are only flags, and -j is 1 at least")
	}
	some, err := chosen(bugs(), *only)
	if err != nil {
		return err
	}
	l, err := newLab(ctx, min(*workers, len(some)))
	defer func() { err = errors.Join(err, l.close()) }()
	if err != nil {
		return err
	}
	return l.judge(ctx, some, out, note)
}
