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
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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
