// Command seededbugs tests the tests: it makes the mistakes of a table in leadferry, one at a
// time, each of which would send a lead twice, lose one or tell a secret, and shows which
// test notices it.
//
//	go -C tools run ./seededbugs             # all; some minutes
//	go -C tools run ./seededbugs -only 6     # by number or name, several with commas
//	go -C tools run ./seededbugs -j 2        # two at a time
//
// The mistakes are made in copies of single files, which the go command takes for those of
// the working tree (-overlay); leave the sources alone meanwhile. The quickest tests that
// are known to notice a mistake are run first, and where they do not, the whole suite is.
// A mistake with which the program cannot be built, or with which tests do not end, is an
// error of the table. It ends with how many were caught, "69 of 69 caught", or with exit code 1.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
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

func run(ctx context.Context, args []string, out, note io.Writer) error {
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
	all, err := bugs()
	if err != nil {
		return err
	}
	some, err := chosen(all, *only)
	if err != nil {
		return err
	}
	root, err := exec.CommandContext(ctx, "git", "rev-parse", "--show-toplevel").Output()
	if err != nil {
		return fmt.Errorf("git rev-parse: %w", err)
	}
	return tree(strings.TrimSpace(string(root))).judge(ctx, some, *workers, out, note)
}
