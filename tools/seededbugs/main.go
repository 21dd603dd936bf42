// Command seededbugs tests the tests: it makes the mistakes of a table in leadferry, one at a
// time, each of which would send a lead twice, lose one or tell a secret, and shows which
// test notices it.
//
//	go -C tools run ./seededbugs             # all; some minutes
//	go -C tools run ./seededbugs -only 6     # by number or name, several with commas
//
// The mistakes are made in a copy of the working tree (of the files that git knows), through go's -overlay, and
// the tests are run that the table names for each. A mistake with which the program cannot be built, or with which
// tests do not end, is an error of the table. It ends with how many were caught, "89 of 89 caught", or with exit code 1.
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
	"path/filepath"
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
	if err := set.Parse(args); err != nil {
		return err
	}
	if set.NArg() > 0 {
		return errors.New("there are only flags")
	}
	all, err := bugs()
	if err != nil {
		return err
	}
	some, err := chosen(all, *only)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "leadferry-seededbugs-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	sources, err := copySources(ctx, dir)
	if err != nil {
		return err
	}
	return sources.judge(ctx, some, out, note)
}

// copySources copies the tracked files of the working tree with their changes, so that they can be edited meanwhile and tests leave
// nothing there. The files that some tests read beside the project are linked.
func copySources(ctx context.Context, dir string) (tree, error) {
	const script = `set -e
cd "$(git rev-parse --show-toplevel)"
mkdir "$0/main"
changed=$(git stash create)
git archive "${changed:-HEAD}" | tar -x -C "$0/main"
[ ! -d ../shared ] || ln -s "$PWD/../shared" "$0/shared"`
	if out, err := exec.CommandContext(ctx, "sh", "-c", script, dir).CombinedOutput(); err != nil {
		return "", fmt.Errorf("copy the sources: %w\n%s", err, out)
	}
	return tree(filepath.Join(dir, "main")), nil
}
