// Package pages checks every page that the program makes or serves, in Chromium: on a wide screen, on a phone, light,
// dark and printed. [browser.inspect] says what it checks.
//
// Without chromium the tests are skipped. Environment variables:
//
//	PAGES_AXE          FOLDER of `npm install --prefix FOLDER axe-core`; without it, the checks by axe are left out
//	PAGES_SCREENSHOTS  a folder for a picture of each checked page
//	PAGES_REQUIRED     if not empty, tests fail if chromium or axe is missing
package pages

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// patience is how long one step of the browser may take on a busy machine.
const patience = 90 * time.Second

// browser is one Chromium for all tests. Each page gets its own tab.
type browser struct {
	ctx context.Context
	axe string // the script of axe, or ""
}

var (
	chromium     *browser
	chromiumErr  error
	chromiumOnce sync.Once
	closers      []func()
)

func TestMain(m *testing.M) {
	code := m.Run()
	for _, done := range closers {
		done()
	}
	os.Exit(code)
}

// open starts the browser for the first test. It skips the test if there is no browser.
func open(t *testing.T) *browser {
	t.Helper()
	chromiumOnce.Do(func() { chromium, chromiumErr = launch() })
	if chromiumErr != nil && os.Getenv("PAGES_REQUIRED") != "" {
		t.Fatal(chromiumErr)
	}
	if chromium == nil {
		t.Skip(chromiumErr)
	}
	return chromium
}

// launch starts the browser. If only axe is missing, it returns both the browser and an error.
func launch() (*browser, error) {
	path, err := exec.LookPath("chromium")
	if err != nil {
		return nil, fmt.Errorf("pages are checked in Chromium: %w", err)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.WSURLReadTimeout(patience))
	if os.Getuid() == 0 {
		options = append(options, chromedp.NoSandbox) // root cannot use Chromium's sandbox
	}
	allocator, end := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, cancel := chromedp.NewContext(allocator)
	closers = append(closers, func() { _ = chromedp.Cancel(ctx); cancel(); end() })
	if err := chromedp.Do(ctx); err != nil {
		return nil, fmt.Errorf("start %s: %w", path, err)
	}
	b := &browser{ctx: ctx}
	script, err := os.ReadFile(filepath.Join(os.Getenv("PAGES_AXE"), "node_modules/axe-core/axe.min.js"))
	if err != nil {
		return b, errors.New("PAGES_AXE names no folder with axe-core from npm: pages are checked without it")
	}
	b.axe = string(script)
	return b, nil
}

// build compiles the program once for all tests.
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

// desk is the folder of a person who uses the program. It contains all files that the program keeps.
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

// run runs the program, wants this exit code, and returns what the program printed.
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

// start starts a command that serves a page. It returns the page's address, from standard error, and what the command
// has printed to standard output so far. The command ends with the test.
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

// take adds the settings that a sandbox printed to the environment, as if they were pasted into a shell.
func (d *desk) take(settings string) {
	for line := range strings.Lines(settings) {
		if pair, found := strings.CutPrefix(strings.TrimSpace(line), "export "); found {
			d.env = append(d.env, strings.ReplaceAll(pair, "'", ""))
		}
	}
}
