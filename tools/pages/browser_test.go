// Package pages looks at every page that the program makes or serves, in Chromium: as wide as a desk's screen and as a
// phone's, light, dark and printed. What it looks for is in [browser.inspect].
//
// It runs where chromium can be found, and is skipped elsewhere. Of the environment it takes
//
//	PAGES_AXE          the folder that `npm install --prefix FOLDER axe-core` was given; without it axe is left out
//	PAGES_SCREENSHOTS  a folder for a picture of each page as it was looked at
//	PAGES_REQUIRED     anything: what is missing fails the tests instead of skipping them
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

// patience is how long one step of a browser may take: a machine with much else to do is slow.
const patience = 90 * time.Second

// browser is one Chromium for all tests; each page is looked at in a tab of its own.
type browser struct {
	ctx context.Context
	axe string // the text of its script; "" where it is not there
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

// open starts the browser for the first test that asks, and skips where there is none.
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

// launch starts it. Without axe it comes with an error that says so.
func launch() (*browser, error) {
	path, err := exec.LookPath("chromium")
	if err != nil {
		return nil, fmt.Errorf("pages are looked at in Chromium: %w", err)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.WSURLReadTimeout(patience))
	if os.Getuid() == 0 {
		options = append(options, chromedp.NoSandbox) // Chromium's own cannot be had by root
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
		return b, errors.New("PAGES_AXE names no folder with axe-core from npm: pages are looked at without it")
	}
	b.axe = string(script)
	return b, nil
}

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

// start begins something that serves a page, and returns its address when it is told on standard error, with what it
// has printed by then. It ends with the test.
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
