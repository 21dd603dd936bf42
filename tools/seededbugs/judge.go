package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"
)

// finding says what came of a bug.
type finding struct {
	bug    *bug
	test   string // that noticed it; "": none
	late   bool   // by the whole suite, not by those of the table
	hung   bool   // tests did not end, which is not known to be a sign of it
	err    error  // it could not be tried
	passed time.Duration
}

// judge tries bugs and prints what notices each. An error says that not all were caught.
func (l *lab) judge(ctx context.Context, some []bug, out, note io.Writer) error {
	fmt.Fprintln(note, "without a bug")
	if err := l.copies[0].sound(ctx, some); err != nil {
		return err
	}
	fmt.Fprint(out, "| # | bug | imitates | caught by | time |\n|---|---|---|---|---|\n")
	caught, errs := 0, []error(nil)
	for f := range l.tryAll(ctx, some) {
		if f.err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", f.bug.name, f.err))
		} else if f.test != "" {
			caught++
		}
		fmt.Fprintf(out, "| %d | %s | %s | %s | %s |\n", f.bug.number, f.bug.name, f.bug.imitates, f.verdict(), f.passed.Round(time.Second))
	}
	fmt.Fprintf(out, "\n%d of %d caught\n", caught, len(some))
	if caught < len(some) {
		errs = append(errs, errors.New("not all bugs were caught"))
	}
	return errors.Join(errs...)
}

func (f *finding) verdict() string {
	switch {
	case f.err != nil:
		return "**could not be tried**"
	case f.late:
		return f.test + " (of the whole suite; those of the table missed it)"
	case f.test != "":
		return f.test
	case f.hung:
		return "**not caught**: tests do not end"
	}
	return "**not caught**"
}

// tryAll tries bugs in all copies at a time. The findings come as they are made.
func (l *lab) tryAll(ctx context.Context, some []bug) <-chan finding {
	todo, done := make(chan *bug), make(chan finding)
	go func() {
		defer close(todo)
		for i := range some {
			select {
			case todo <- &some[i]:
			case <-ctx.Done():
				return
			}
		}
	}()
	var group sync.WaitGroup
	for _, t := range l.copies {
		group.Go(func() {
			for b := range todo {
				began := time.Now()
				f := t.try(ctx, b)
				f.bug, f.passed = b, time.Since(began)
				done <- f
			}
		})
	}
	go func() {
		group.Wait()
		close(done)
	}()
	return done
}

// sound makes sure that the tests pass, and are there, where nothing is wrong.
func (t tree) sound(ctx context.Context, some []bug) error {
	byFolder := map[string][]string{}
	for _, b := range some {
		for _, c := range b.checks {
			byFolder[c.folder] = append(byFolder[c.folder], c.tests...)
		}
	}
	for folder, tests := range byFolder {
		slices.Sort(tests)
		tests = slices.Compact(tests)
		r, err := t.test(ctx, check{folder, tests})
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

// try makes the mistake, runs the tests and takes it out again.
func (t tree) try(ctx context.Context, b *bug) (f finding) {
	weed, err := t.plant(b)
	if err != nil {
		return finding{err: err}
	}
	defer func() { f.err = errors.Join(f.err, weed()) }()
	if err := t.build(ctx, b); err != nil {
		return finding{err: err}
	}
	for i, c := range append(slices.Clone(b.checks), check{folder: "."}) {
		r, err := t.test(ctx, c)
		switch {
		case err != nil:
			return finding{err: err}
		case r.hung && !b.hangs:
			f.hung = true
		case r.failed != "":
			f.test, f.late = r.failed, i == len(b.checks)
			return f
		}
	}
	return f
}

// build makes sure that the mistake is one that the compiler and go vet let pass.
func (t tree) build(ctx context.Context, b *bug) error {
	if text, err := t.goCommand(ctx, "build", "./..."); err != nil {
		return fmt.Errorf("the program cannot be built: %w\n%s", err, text)
	}
	args := []string{"vet"}
	for _, folder := range b.folders() {
		args = append(args, "./"+folder)
	}
	if text, err := t.goCommand(ctx, args...); err != nil {
		return fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, text)
	}
	return nil
}
