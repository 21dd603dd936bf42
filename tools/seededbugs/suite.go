package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// Time limits for tests. Who needs longer hangs.
const (
	quickLimit = 3 * time.Minute
	wholeLimit = 15 * time.Minute
	killDelay  = 20 * time.Second // for a go command that was told to end
)

// tested is what came of running tests.
type tested struct {
	failed string          // the first that failed, with its package; "": all is well
	hung   bool            // they did not end
	passed map[string]bool // tests, subtests too
	text   string          // what those that failed printed
}

// event is a line of go test -json.
type event struct{ Action, Package, Test, Output, FailedBuild string }

// test runs the tests of a check; of one without tests all but that of the layout, which
// would find an import in the wrong place and not what is wrong with it.
func (t tree) test(ctx context.Context, c check) (tested, error) {
	args := []string{"test", "-json", "-count=1", "-failfast"}
	if len(c.tests) > 0 {
		args = append(args, "-timeout", quickLimit.String(), "-run", c.pattern(), "./"+c.folder)
	} else {
		args = append(args, "-timeout", wholeLimit.String(), "-skip", "^TestModuleKeepsItsLayout$", "./"+c.folder+"/...")
	}
	text, err := t.goCommand(ctx, args...)
	if ctx.Err() != nil {
		return tested{}, ctx.Err()
	}
	r, rerr := readEvents(text)
	if rerr == nil && (err == nil) != (r.failed == "") {
		rerr = fmt.Errorf("go %s: %v\n%s", strings.Join(args, " "), err, text)
	}
	return r, rerr
}

// pattern fits the tests of a check, and their subtests; go test takes a pattern for each part of a name.
func (c check) pattern() string {
	return "^" + strings.NewReplacer("/", "$/^", "|", "$|^").Replace(strings.Join(c.tests, "|")) + "$"
}

// goCommand runs the go command and gives what it prints.
func (t tree) goCommand(ctx context.Context, args ...string) ([]byte, error) {
	c := exec.CommandContext(ctx, "go", args...)
	c.Dir = string(t)
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
	c.WaitDelay = killDelay
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "LEADFERRY_") {
			c.Env = append(c.Env, v)
		}
	}
	return c.CombinedOutput()
}

// readEvents reads the output of go test -json. Tests that cannot be built are an error.
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
		r.hung = r.hung || strings.HasPrefix(e.Output, "panic: test timed out after ")
		if e.Action == "run" {
			under[e.Package] = e.Test
		}
		switch {
		case e.FailedBuild != "" || e.Action == "build-fail":
			return r, fmt.Errorf("the tests cannot be built:\n%s", text)
		case e.Action == "pass" && e.Test != "":
			r.passed[e.Test] = true
			under[e.Package] = ""
		case e.Action == "fail" && r.failed == "":
			r.failed = strings.TrimPrefix(e.Package, "leadferry/") + " " + cmp.Or(e.Test, under[e.Package], "(behind its tests)")
		}
	}
}
