// Command seededbugs tests the tests: it makes the mistakes of a table in leadferry, one at a
// time, each of which would send a lead twice, lose one or tell a secret, and shows which
// test notices it.
//
//	go -C tools run ./seededbugs             # all; some minutes
//	go -C tools run ./seededbugs -only 6     # by number or name, several with commas
//	go -C tools run ./seededbugs -j 2        # two at a time
//
// The mistakes are made in a copy of the working tree, through go's -overlay. The quickest
// tests that are known to notice a mistake are run first, and where they do not, the whole
// suite is. A mistake with which the program cannot be built, or with which tests do not end,
// is an error of the table. It ends with how many were caught, "84 of 84 caught", or with
// exit code 1.
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
	dir, err := os.MkdirTemp("", "leadferry-seededbugs-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	sources, err := copySources(ctx, dir)
	if err != nil {
		return err
	}
	return sources.judge(ctx, some, *workers, out, note)
}

// copySources copies the files of the working tree, so that they can be edited meanwhile and tests leave nothing there.
// The files that some tests read beside the project are linked.
func copySources(ctx context.Context, dir string) (tree, error) {
	root, err := exec.CommandContext(ctx, "git", "rev-parse", "--show-toplevel").Output()
	if err != nil {
		return "", fmt.Errorf("git rev-parse: %w", err)
	}
	from, to := strings.TrimSpace(string(root)), filepath.Join(dir, "main")
	list := exec.CommandContext(ctx, "git", "ls-files", "-co", "--exclude-standard", "-z")
	list.Dir = from
	files, err := list.Output()
	if err != nil {
		return "", fmt.Errorf("git ls-files: %w", err)
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(files), "\x00"), "\x00") {
		info, err := os.Stat(filepath.Join(from, name))
		if errors.Is(err, os.ErrNotExist) {
			continue // removed, but not from git yet
		}
		if err != nil {
			return "", err
		}
		text, err := os.ReadFile(filepath.Join(from, name))
		if err == nil {
			err = os.MkdirAll(filepath.Join(to, filepath.Dir(name)), 0o700)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(to, name), text, info.Mode())
		}
		if err != nil {
			return "", err
		}
	}
	shared := filepath.Join(from, "..", "shared")
	if _, err := os.Stat(shared); err != nil {
		return tree(to), nil
	}
	return tree(to), os.Symlink(shared, filepath.Join(dir, "shared"))
}
