package pages

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// build makes the program once for all tests.
var build = sync.OnceValues(func() (string, error) {
	folder, err := os.MkdirTemp("", "leadferry-pages-")
	if err != nil {
		return "", err
	}
	closers = append(closers, func() { os.RemoveAll(folder) })
	path := filepath.Join(folder, "leadferry")
	c := exec.Command("go", "build", "-o", path, ".")
	c.Dir = filepath.Join("..", "..")
	if out, err := c.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the program: %w\n%s", err, out)
	}
	return path, nil
})

// desk is a folder in which a person works with the program: everything that it keeps stands there.
type desk struct {
	t       *testing.T
	program string
	folder  string
	env     []string
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	path, err := build()
	must(t, err)
	d := &desk{t: t, program: path, folder: t.TempDir()}
	for _, pair := range os.Environ() {
		if name, _, _ := strings.Cut(pair, "="); !strings.HasPrefix(name, "LEADFERRY_") && !strings.HasSuffix(strings.ToLower(name), "_proxy") {
			d.env = append(d.env, pair)
		}
	}
	d.env = append(d.env, "XDG_STATE_HOME="+d.folder+"/state", "XDG_CONFIG_HOME="+d.folder+"/config")
	return d
}

func (d *desk) command(args ...string) *exec.Cmd {
	c := exec.CommandContext(d.t.Context(), d.program, args...)
	c.Dir, c.Env = d.folder, d.env
	return c
}

// run runs the program, which has to end with a code, and returns what it printed.
func (d *desk) run(code int, args ...string) string {
	d.t.Helper()
	out, err := d.command(args...).CombinedOutput()
	if got := exitCode(err); got != code {
		d.t.Fatalf("leadferry %s: exit code %d, want %d\n%s", strings.Join(args, " "), got, code, out)
	}
	return string(out)
}

func exitCode(err error) int {
	if err == nil {
		return 0
	}
	if exit, is := err.(*exec.ExitError); is {
		return exit.ExitCode()
	}
	return -1
}

func (d *desk) path(name string) string { return filepath.Join(d.folder, name) }

func (d *desk) write(name, text string) {
	d.t.Helper()
	must(d.t, os.WriteFile(d.path(name), []byte(text), 0o600))
}

// start begins something that serves a page, and returns its address when it is told on standard error, with what it has
// printed by then. It ends with the test.
func (d *desk) start(args ...string) (address, out string) {
	d.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	c := exec.CommandContext(ctx, d.program, args...)
	c.Dir, c.Env = d.folder, d.env
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
	written, err := os.CreateTemp(d.folder, "out-")
	must(d.t, err)
	defer written.Close()
	c.Stdout = written
	said, err := c.StderrPipe()
	must(d.t, err)
	must(d.t, c.Start())
	lines := bufio.NewScanner(said)
	for address == "" && lines.Scan() {
		_, address, _ = strings.Cut(lines.Text(), "page: ")
	}
	var rest sync.WaitGroup
	rest.Go(func() {
		for lines.Scan() {
		}
	})
	d.t.Cleanup(func() {
		cancel()
		rest.Wait()
		_ = c.Wait()
	})
	if address == "" {
		d.t.Fatalf("leadferry %s served no page", strings.Join(args, " "))
	}
	printed, err := os.ReadFile(written.Name())
	must(d.t, err)
	return address, string(printed)
}

// take gives the program the settings that a sandbox printed, as a shell does into which they are pasted.
func (d *desk) take(settings string) {
	for line := range strings.Lines(settings) {
		if pair, found := strings.CutPrefix(strings.TrimSpace(line), "export "); found {
			d.env = append(d.env, strings.ReplaceAll(pair, "'", ""))
		}
	}
}
