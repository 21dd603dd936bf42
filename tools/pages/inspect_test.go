package pages

import (
	"context"
	_ "embed"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/audits"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

//go:embed checks.js
var layout string

// look is one way in which people see a page.
type look struct {
	name   string
	width  int64
	media  string // "" is a screen
	scheme string
	still  bool // scripts are switched off
}

func looks() []look {
	return []look{
		{name: "wide-light", width: 1280, scheme: "light"},
		{name: "wide-dark", width: 1280, scheme: "dark"},
		{name: "phone-light", width: 400, scheme: "light", still: true},
		{name: "phone-dark", width: 400, scheme: "dark"},
		{name: "print", width: 718, media: "print", scheme: "light"}, // A4 without Chromium's margins
		{name: "print-dark", width: 718, media: "print", scheme: "dark"},
	}
}

// inspect looks at a page in every way, and says what it finds: what stands beside the page or is cut off, text that is
// too small, lies on other text or on too like a ground, words in the console, breaches of the Content-Security-Policy,
// requests to elsewhere, and what axe takes for serious or critical.
func (b *browser) inspect(t *testing.T, name, address string) {
	t.Helper()
	for _, l := range looks() {
		for _, f := range b.look(t, l, name, address) {
			t.Errorf("%s, %s: %s", name, l.name, f)
		}
	}
}

// look opens a page in a new tab and returns what is wrong with it.
func (b *browser) look(t *testing.T, l look, name, address string) []string {
	t.Helper()
	ctx, w, shut := b.tab(t, l, address)
	defer shut()
	must(t, chromedp.Do(ctx, chromedp.Navigate(address)))
	picture(ctx, t, name+"-"+l.name)
	// What is folded away is read, too.
	_, err := chromedp.Run(ctx, chromedp.Evaluate[int](`[...document.querySelectorAll('details')].map(d => d.open = true).length`))
	must(t, err)
	found, err := chromedp.Run(ctx, chromedp.Evaluate[[]string](layout))
	must(t, err)
	return append(append(found, b.violations(ctx, t, l)...), w.said()...)
}

// tab is a new tab that sees pages as l says, until it is shut: Chromium has few connections for all that follow a page.
func (b *browser) tab(t *testing.T, l look, address string) (ctx context.Context, w *witness, shut func()) {
	t.Helper()
	tab, closeTab := chromedp.NewContext(b.ctx)
	t.Cleanup(closeTab)
	must(t, chromedp.Do(tab))
	ctx, cancel := context.WithTimeout(tab, patience)
	t.Cleanup(cancel)
	w = &witness{address: address}
	must(t, chromedp.Listen(ctx, w.hear))
	scheme := &emulation.MediaFeature{Name: "prefers-color-scheme", Value: l.scheme}
	called(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: l.media, Features: []*emulation.MediaFeature{scheme}})
	called(ctx, t, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: l.width, Height: 900, DeviceScaleFactor: 1, Mobile: l.width < 500})
	called(ctx, t, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: l.still})
	called(ctx, t, audits.Enable, cdp.Empty{})
	return ctx, w, func() { _ = chromedp.Cancel(tab) }
}

func called[P, R any](ctx context.Context, t *testing.T, c cdp.Command[P, R], params P) R {
	t.Helper()
	r, err := chromedp.Call(ctx, c, params)
	must(t, err)
	return r
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// picture writes what stands in the tab to the folder of pictures, where one is named.
func picture(ctx context.Context, t *testing.T, name string) {
	t.Helper()
	folder := os.Getenv("PAGES_SCREENSHOTS")
	if folder == "" {
		return
	}
	png, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
	must(t, err)
	must(t, os.MkdirAll(folder, 0o755))
	must(t, os.WriteFile(filepath.Join(folder, name+".png"), png, 0o644))
}

// violations are those that axe takes for serious or critical; the lesser ones are told in the log.
func (b *browser) violations(ctx context.Context, t *testing.T, l look) (found []string) {
	t.Helper()
	// It waits by timers, which are switched off with the scripts; and paper has one scheme.
	if b.axe == "" || l.still || l.media == "print" && l.scheme == "dark" {
		return nil
	}
	must(t, chromedp.Do(ctx, chromedp.Evaluate[chromedp.Void](b.axe+";0")))
	all, err := chromedp.Run(ctx, chromedp.Evaluate[[]violation](`axe.run(document, {resultTypes: ['violations']}).then(r => r.violations.map(v => (
		{id: v.id, impact: v.impact, help: v.help, nodes: v.nodes.map(n => n.target.flat().join(' ') + ': ' + n.failureSummary)})))`, chromedp.EvalAwaitPromise))
	must(t, err)
	for _, v := range all {
		if v.Impact == "serious" || v.Impact == "critical" {
			found = append(found, v.String())
		} else {
			t.Logf("%s: %v", l.name, v)
		}
	}
	return found
}

type violation struct {
	ID, Impact, Help string
	Nodes            []string
}

func (v violation) String() string {
	return fmt.Sprintf("axe, %s: %s: %s, %d times: %s", v.Impact, v.ID, v.Help, len(v.Nodes), strings.Join(v.Nodes[:min(3, len(v.Nodes))], "\n\t"))
}

// witness hears what a page says besides what it shows.
type witness struct {
	address string

	mu    sync.Mutex
	words []string
}

func (w *witness) said() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.words
}

func (w *witness) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.words = append(w.words, fmt.Sprintf(format, args...))
}

func (w *witness) hear(event any) {
	switch e := event.(type) {
	case *runtime.EventConsoleAPICalled:
		w.note("it speaks in the console: %s", e.Type)
	case *runtime.EventExceptionThrown:
		w.note("its script fails: %s", e.ExceptionDetails.Text)
	case *log.EventEntryAdded:
		w.note("the console says: %s", e.Entry.Text)
	case *audits.EventIssueAdded:
		w.note("Chromium has an issue with it: %s", e.Issue.Code)
	case *network.EventLoadingFailed:
		if !e.Canceled {
			w.note("%s cannot be loaded: %s %s", e.Type, e.ErrorText, e.BlockedReason)
		}
	case *network.EventRequestWillBeSent:
		page, _ := url.Parse(w.address)
		if to, err := url.Parse(e.Request.URL); err != nil || to.Scheme != page.Scheme || to.Host != page.Host || to.Scheme == "file" && to.Path != page.Path {
			w.note("it asks elsewhere: %s", e.Request.URL)
		}
	}
}

// first is where the first of some links on a page leads.
func (b *browser) first(t *testing.T, address, links string) string {
	t.Helper()
	ctx, _, shut := b.tab(t, looks()[0], address)
	defer shut()
	must(t, chromedp.Do(ctx, chromedp.Navigate(address)))
	to, err := chromedp.Run(ctx, chromedp.Evaluate[string](fmt.Sprintf("document.querySelector(%q).href", links)))
	must(t, err)
	return to
}
