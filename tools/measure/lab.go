package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"leadferry/tools/must"
)

// lab is what all numbers share: the program under test, its inputs, and a folder that close removes. Its methods panic
// with an error that take recovers.
type lab struct {
	options
	ctx     context.Context // its end stops all work
	root    string          // of the program's module
	dir     string
	program string // leadferry
	self    string // this command
	streams
	now    number // the number being measured
	fills  map[string]*filled
	sinks  []*service
	server *server // nil: not started
}

// newLab builds the program. The caller closes the lab, even after an error.
func newLab(ctx context.Context, o options, s streams) (l *lab, err error) {
	l = &lab{options: o, ctx: ctx, streams: s, fills: map[string]*filled{}}
	defer must.Catch(&err)
	root, err := exec.CommandContext(ctx, "git", "rev-parse", "--show-toplevel").Output()
	if err != nil {
		return l, fmt.Errorf("the sources of leadferry are not here: %w\nhint: start it in a clone, as go -C tools "+
			"run ./measure", err)
	}
	l.root = strings.TrimSpace(string(root))
	l.self = must.Get(os.Executable())
	l.dir = must.Get(filepath.Abs(must.Get(os.MkdirTemp("", "leadferry-measure-"))))
	l.say("building leadferry")
	l.program = l.path("leadferry")
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-tags", "urfave_cli_no_docs", "-ldflags", "-s -w",
		"-o", l.program, ".")
	build.Dir = l.root
	must.Get(perform(build))
	must.Do(os.WriteFile(l.path("plain.yaml"), []byte(mappingFile), 0o600))
	must.Do(os.WriteFile(l.path("linked.yaml"), []byte(mappingFile+linkLine), 0o600))
	return l, nil
}

// close ends the sinks and removes everything that was written.
func (l *lab) close() error {
	for _, s := range l.sinks {
		s.stop()
	}
	var all []error
	if l.server != nil {
		all = append(all, l.server.stop())
	}
	if l.dir != "" {
		all = append(all, os.RemoveAll(l.dir))
	}
	return errors.Join(all...)
}

func (l *lab) say(format string, args ...any) { fmt.Fprintf(l.err, format+"\n", args...) }

func (l *lab) path(name string) string { return filepath.Join(l.dir, name) }

// input returns the path of a file of leads, which it writes on first use.
func (l *lab) input(f leadFile) string {
	f.seed = 1
	if f.format == "" {
		f.format = "csv"
	}
	path := l.path(fmt.Sprintf("leads-%d-%d-%t.%s", f.from, f.to, f.random, f.format))
	if _, err := os.Stat(path); err != nil {
		must.Do(f.write(path))
	}
	return path
}

// peer runs another command of this program in its own process.
func (l *lab) peer(args ...string) trial {
	cmd := exec.CommandContext(l.ctx, l.self, args...)
	cmd.Env = append(cmd.Environ(), asMeasure)
	return must.Get(perform(cmd))
}
