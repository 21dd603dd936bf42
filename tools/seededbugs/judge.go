package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"time"

	"leadferry/tools/must"
)

// judge tries bugs and prints which test noticed each. It returns an error if not all were caught.
func (t tree) judge(ctx context.Context, some []bug, out io.Writer) (err error) {
	defer must.Catch(&err)
	dir := must.Get(os.MkdirTemp("", "leadferry-seededbugs-"))
	defer os.RemoveAll(dir)
	fmt.Fprint(out, "| # | bug | imitates | caught by |\n|---|---|---|---|\n")
	caught := 0
	for i := range some {
		b := &some[i]
		test, terr := t.try(ctx, b, dir)
		if terr != nil {
			test, err = "**could not be tried**", errors.Join(err, fmt.Errorf("%s: %w", b.Name, terr))
		} else if test != "" {
			caught++
		}
		fmt.Fprintf(out, "| %d | %s | %s | %s |\n", b.Number, b.Name, b.Imitates, cmp.Or(test, "**not caught**"))
	}
	fmt.Fprintf(out, "\n%d of %d caught\n", caught, len(some))
	if caught < len(some) {
		err = errors.Join(err, errors.New("not all bugs were caught"))
	}
	return err
}

// try makes the mistake, runs the tests that the table names, and returns the one that noticed it; "": none.
func (t tree) try(ctx context.Context, b *bug, dir string) (test string, err error) {
	defer must.Catch(&err)
	overlay := t.overlay(must.Get(t.changed(nil, b)), dir)
	if text, err := t.goCommand(ctx, overlay, "build", "./..."); err != nil {
		return "", fmt.Errorf("the program cannot be built: %w\n%s", err, text)
	}
	for _, folder := range slices.Sorted(maps.Keys(b.Caught)) {
		if test, err = t.test(ctx, overlay, folder, b.Caught[folder]); err != nil || test != "" {
			break
		}
	}
	return test, err
}

// In the output of go test -v: a failed test, with its subtests below it; and tests that cannot be built or do not end.
var (
	failedTest = regexp.MustCompile(`(?m)^ *--- FAIL: (\S+)`)
	noTest     = regexp.MustCompile(`(?m)^FAIL.*\[(?:build|setup) failed\]$|^panic: test timed out after `)
)

// test runs tests of a folder and returns one that failed; "": none.
func (t tree) test(ctx context.Context, overlay, folder string, tests []string) (failed string, err error) {
	text, err := t.goCommand(ctx, overlay, "test", "-v", "-count=1", "-failfast", "-timeout", "3m",
		"-run", pattern(tests), "./"+folder)
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case err == nil:
		return "", nil
	case noTest.Match(text):
		return "", fmt.Errorf("the tests of %s cannot be built, or do not end:\n%s", folder, text)
	}
	failed = "(behind its tests)" // a leak, or a panic
	for _, found := range failedTest.FindAllSubmatch(text, -1) {
		failed = string(found[1])
	}
	return folder + " " + failed, nil
}

// pattern matches tests and their subtests. go test wants a pattern for each part of a name.
func pattern(tests []string) string {
	return "^" + strings.NewReplacer("/", "$/^", "|", "$|^").Replace(strings.Join(tests, "|")) + "$"
}

// goCommand runs the go command with an overlay, which also applies to go commands in tests. It returns the output.
func (t tree) goCommand(ctx context.Context, overlay string, args ...string) ([]byte, error) {
	c := exec.CommandContext(ctx, "go", args...)
	c.Dir = string(t)
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
	c.WaitDelay = 20 * time.Second
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "LEADFERRY_") {
			c.Env = append(c.Env, v)
		}
	}
	if overlay != "" {
		c.Env = append(c.Env, "GOFLAGS="+strings.TrimSpace(os.Getenv("GOFLAGS")+" -overlay="+overlay))
	}
	return c.CombinedOutput()
}
