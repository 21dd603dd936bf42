package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"
)

// Time limits for tests. Tests that take longer hang.
const (
	quickLimit = 3 * time.Minute
	wholeLimit = 15 * time.Minute
	killDelay  = 20 * time.Second // for a go command that was told to end
)

// finding says which test noticed a bug.
type finding struct {
	bug    *bug
	test   string // "": none
	late   bool   // by the whole suite, not by those of the table
	err    error  // it could not be tried
	passed time.Duration
}

// judge tries bugs, several at a time, and prints what notices each. An error says that not all were caught.
func (t tree) judge(ctx context.Context, some []bug, workers int, out, note io.Writer) error {
	dir, err := os.MkdirTemp("", "leadferry-seededbugs-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	fmt.Fprintln(note, "without a bug")
	if err := t.sound(ctx, some); err != nil {
		return err
	}
	fmt.Fprint(out, "| # | bug | imitates | caught by | time |\n|---|---|---|---|---|\n")
	caught, errs := 0, []error(nil)
	for f := range t.tryAll(ctx, some, workers, dir) {
		verdict := cmp.Or(f.test, "**not caught**")
		switch {
		case f.err != nil:
			verdict = "**could not be tried**"
			errs = append(errs, fmt.Errorf("%s: %w", f.bug.Name, f.err))
		case f.test != "":
			caught++
		}
		if f.late {
			verdict += " (of the whole suite; the tests of the table missed it)"
		}
		took := f.passed.Round(time.Second)
		fmt.Fprintf(out, "| %d | %s | %s | %s | %s |\n", f.bug.Number, f.bug.Name, f.bug.Imitates, verdict, took)
	}
	fmt.Fprintf(out, "\n%d of %d caught\n", caught, len(some))
	if caught < len(some) {
		errs = append(errs, errors.New("not all bugs were caught"))
	}
	return errors.Join(errs...)
}

// tryAll gives the findings as they are made.
func (t tree) tryAll(ctx context.Context, some []bug, workers int, dir string) <-chan finding {
	done := make(chan finding)
	free := make(chan struct{}, workers)
	go func() {
		defer close(done)
		var group sync.WaitGroup
		defer group.Wait()
		for i := range some {
			free <- struct{}{}
			group.Go(func() {
				began := time.Now()
				f := t.try(ctx, &some[i], dir)
				f.bug, f.passed = &some[i], time.Since(began)
				<-free
				done <- f
			})
		}
	}()
	return done
}

// sound makes sure that the tests pass, and are there, where nothing is wrong.
func (t tree) sound(ctx context.Context, some []bug) error {
	byFolder := map[string][]string{}
	for _, b := range some {
		for folder, tests := range b.Caught {
			byFolder[folder] = append(byFolder[folder], tests...)
		}
	}
	for folder, tests := range byFolder {
		slices.Sort(tests)
		tests = slices.Compact(tests)
		r, err := t.test(ctx, "", folder, tests)
		if err != nil {
			return err
		}
		if r.failed != "" {
			return fmt.Errorf("%s fails without a bug:\n%s", r.failed, r.text)
		}
		for _, name := range tests {
			if !r.passed[name] {
				return fmt.Errorf("%s %s is skipped here, or not there", folder, name)
			}
		}
	}
	return nil
}

// try makes the mistake and runs the tests of the table, and all of them where those miss it.
func (t tree) try(ctx context.Context, b *bug, dir string) (f finding) {
	overlay, err := t.overlay(b, dir)
	if err != nil {
		return finding{err: err}
	}
	if text, err := t.goCommand(ctx, overlay, "build", "./..."); err != nil {
		return finding{err: fmt.Errorf("the program cannot be built: %w\n%s", err, text)}
	}
	for _, folder := range append(slices.Sorted(maps.Keys(b.Caught)), "") {
		r, err := t.test(ctx, overlay, folder, b.Caught[folder])
		if err != nil || r.failed != "" {
			return finding{test: r.failed, late: r.failed != "" && folder == "", err: err}
		}
	}
	return f
}

// tested is what came of running tests.
type tested struct {
	failed string          // the first that failed, with its package; "": none. Tests that hang do not count
	passed map[string]bool // tests, subtests too
	text   string          // what those that failed printed
}

// test runs tests of a folder. Without a folder it runs all but that of the layout, which would find an import in the
// wrong place and not what is wrong with it.
func (t tree) test(ctx context.Context, overlay, folder string, tests []string) (tested, error) {
	args := []string{"test", "-json", "-count=1", "-failfast"}
	if folder != "" {
		args = append(args, "-timeout", quickLimit.String(), "-run", pattern(tests), "./"+folder)
	} else {
		args = append(args, "-timeout", wholeLimit.String(), "-skip", "^TestModuleKeepsItsLayout$", "./...")
	}
	text, err := t.goCommand(ctx, overlay, args...)
	if ctx.Err() != nil {
		return tested{}, ctx.Err()
	}
	r, rerr := readEvents(text)
	if rerr == nil && (err == nil) != (r.failed == "") {
		rerr = fmt.Errorf("go %s: %v\n%s", strings.Join(args, " "), err, text)
	}
	return r, rerr
}

// pattern fits tests and their subtests; go test takes a pattern for each part of a name.
func pattern(tests []string) string {
	return "^" + strings.NewReplacer("/", "$/^", "|", "$|^").Replace(strings.Join(tests, "|")) + "$"
}

// goCommand runs the go command, and each go command that tests start, with an overlay, and gives what it prints.
func (t tree) goCommand(ctx context.Context, overlay string, args ...string) ([]byte, error) {
	c := exec.CommandContext(ctx, "go", args...)
	c.Dir = string(t)
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
	c.WaitDelay = killDelay
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

// event is a line of go test -json.
type event struct{ Action, Package, Test, Output, FailedBuild string }

// readEvents reads the output of go test -json. Tests that cannot be built, or do not end, are an error.
func readEvents(text []byte) (tested, error) {
	r := tested{passed: map[string]bool{}}
	var said strings.Builder
	under := map[string]string{} // the test under way, by package
	for lines := bufio.NewReader(bytes.NewReader(text)); ; {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			r.text = said.String()
			return r, nil
		}
		var e event
		if json.Unmarshal(line, &e) != nil {
			said.Write(line)
			continue
		}
		said.WriteString(e.Output)
		if e.Action == "run" {
			under[e.Package] = e.Test
		}
		switch {
		case e.FailedBuild != "" || e.Action == "build-fail":
			return r, fmt.Errorf("the tests cannot be built:\n%s", text)
		case strings.HasPrefix(e.Output, "panic: test timed out after "):
			return r, fmt.Errorf("the tests do not end:\n%s", text)
		case e.Action == "pass" && e.Test != "":
			r.passed[e.Test] = true
			under[e.Package] = ""
		case e.Action == "fail" && r.failed == "":
			r.failed = strings.TrimPrefix(e.Package, "leadferry/") + " " + cmp.Or(e.Test, under[e.Package], "(behind its tests)")
		}
	}
}
