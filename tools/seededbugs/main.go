// Command seededbugs tests the tests. It makes the mistakes of a table in leadferry, one at a time, and shows which
// test notices each. Every mistake would send a lead twice, lose a lead or reveal a secret.
//
//	go -C tools run ./seededbugs             # all; some minutes
//	go -C tools run ./seededbugs -only 6     # by number, several with commas
//
// It makes the mistakes in a copy of the working tree (the files that git knows), through go's -overlay, and runs the
// tests of the table. If the program cannot be built with a mistake, or tests do not end, the table is wrong. The last
// line counts the mistakes that were caught, "96 of 96 caught". The exit code is 1 if some were not.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"leadferry/tools/must"
)

func main() {
	must.Main("seededbugs", func(ctx context.Context, args []string) error {
		return run(ctx, args, os.Stdout, os.Stderr)
	})
}

func run(ctx context.Context, args []string, out, note io.Writer) (err error) {
	defer must.Catch(&err)
	set := flag.NewFlagSet("seededbugs", flag.ContinueOnError)
	set.SetOutput(note)
	only := set.String("only", "", "`BUGS` by number, with commas between (default: all)")
	must.Do(set.Parse(args))
	if set.NArg() > 0 {
		return errors.New("there are only flags")
	}
	some := must.Get(chosen(must.Get(bugs()), *only))
	dir := must.Get(os.MkdirTemp("", "leadferry-seededbugs-"))
	defer os.RemoveAll(dir)
	return must.Get(copySources(ctx, dir)).judge(ctx, some, out)
}

// copySources copies the tracked files of the working tree with their changes. So they can be edited meanwhile, and
// tests leave nothing there. It links the files beside the project that some tests read.
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
