package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

const program = "leadferry"

// target is a system that is built for, in Go's words.
type target struct{ os, arch string }

var everyTarget = []target{
	{"linux", "amd64"},
	{"linux", "arm64"},
	{"darwin", "amd64"},
	{"darwin", "arm64"},
	{"windows", "amd64"},
	{"windows", "arm64"},
}

func (t target) String() string { return t.os + "/" + t.arch }

// binary is the program's file name.
func (t target) binary() string {
	if t.os == "windows" {
		return program + ".exe"
	}
	return program
}

func allTargets() string {
	names := make([]string, len(everyTarget))
	for i, t := range everyTarget {
		names[i] = t.String()
	}
	return strings.Join(names, ",")
}

func parseTargets(list string) ([]target, error) {
	var ts []target
	for name := range strings.SplitSeq(list, ",") {
		goos, arch, _ := strings.Cut(strings.TrimSpace(name), "/")
		t := target{goos, arch}
		if !slices.Contains(everyTarget, t) {
			return nil, fmt.Errorf("no target %q: there are %s", name, allTargets())
		}
		if slices.Contains(ts, t) {
			return nil, fmt.Errorf("target %s twice", t)
		}
		ts = append(ts, t)
	}
	return ts, nil
}

// builder knows what is built: a clone at a commit, and the version that its source names.
type builder struct {
	root, work string // the clone; a folder for what comes in between
	host       string // the program built for this machine, which is asked for version and completions
	version    string
	commit     string
	when       time.Time // of the commit: the time of every file in a release
}

// newBuilder looks at the clone that a folder lies in and builds the program for this machine. Whoever called it removes
// its folder work.
func newBuilder(ctx context.Context, folder string, changed bool) (*builder, error) {
	root, err := output(ctx, folder, "git", "rev-parse", "--show-toplevel")
	if err != nil {
		return nil, fmt.Errorf("a release is made from a git clone: %w", err)
	}
	b := &builder{root: root}
	dirty, err := output(ctx, root, "git", "status", "--porcelain")
	switch {
	case err != nil:
		return nil, err
	case dirty != "" && !changed:
		return nil, errors.New("the clone has changes that are in no commit, so nobody could make the same files again; commit them, or use -changed to try things out")
	}
	if b.commit, err = output(ctx, root, "git", "rev-parse", "HEAD"); err != nil {
		return nil, err
	}
	seconds, err := output(ctx, root, "git", "log", "-1", "--format=%ct")
	if err != nil {
		return nil, err
	}
	unix, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return nil, err
	}
	b.when = time.Unix(unix, 0).UTC()
	if b.work, err = os.MkdirTemp("", "leadferry-release-"); err != nil {
		return nil, err
	}
	if err := b.askTheProgram(ctx); err != nil {
		os.RemoveAll(b.work)
		return nil, err
	}
	return b, nil
}

// askTheProgram takes the version from the program itself: "leadferry version 0.1.0 …".
func (b *builder) askTheProgram(ctx context.Context) error {
	var err error
	if b.host, err = b.build(ctx, target{runtime.GOOS, runtime.GOARCH}); err != nil {
		return err
	}
	said, err := output(ctx, b.work, b.host, "--version")
	if err != nil {
		return err
	}
	words := strings.Fields(said)
	if len(words) < 3 || words[0] != program || words[1] != "version" {
		return fmt.Errorf("the program calls its version %q", said)
	}
	b.version = words[2]
	return nil
}

// build compiles the program for a target and returns its path. Commit and time are stamped into it by the Go tool.
func (b *builder) build(ctx context.Context, t target) (string, error) {
	path := filepath.Join(b.work, t.os+"-"+t.arch, t.binary())
	c := command(ctx, b.root, "go", "build", "-trimpath", "-buildvcs=true", "-ldflags=-s -w -buildid=", "-o", path, ".")
	c.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+t.os, "GOARCH="+t.arch, "GOAMD64=v1", "GOARM64=v8.0", "GOFLAGS=", "GOEXPERIMENT=")
	_, err := run1(c)
	return path, err
}

func command(ctx context.Context, folder, name string, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, name, args...)
	c.Dir = folder
	return c
}

// output is what a command prints, without the line's end.
func output(ctx context.Context, folder, name string, args ...string) (string, error) {
	return run1(command(ctx, folder, name, args...))
}

// run1 runs a command; an error tells what the command said.
func run1(c *exec.Cmd) (string, error) {
	var said bytes.Buffer
	c.Stderr = &said
	out, err := c.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s", strings.Join(c.Args, " "), err, strings.TrimSpace(said.String()))
	}
	return strings.TrimRight(string(out), "\n"), nil
}
