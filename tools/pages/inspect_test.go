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

// look is one way to see a page.
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

// inspect checks a page in every look. It reports content beside the page or cut off, text that is too small, overlaps
// other text or has too little contrast, console messages, breaches of the Content-Security-Policy, requests to other
// addresses, and serious or critical findings of axe.
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
	// Folded content is checked, too.
	_, err := chromedp.Run(ctx, chromedp.Evaluate[int](`[...document.querySelectorAll('details')].map(d => d.open = true).length`))
	must(t, err)
	found, err := chromedp.Run(ctx, chromedp.Evaluate[[]string](layout))
	must(t, err)
	return append(append(found, b.violations(ctx, t, l)...), w.said()...)
}

// tab opens a new tab with this look. Shut it soon: Chromium has few connections for later tabs.
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

// picture writes a screenshot of the tab to the folder PAGES_SCREENSHOTS, if it is set.
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

// violations returns the serious and critical findings of axe, and logs the lesser ones.
func (b *browser) violations(ctx context.Context, t *testing.T, l look) (found []string) {
	t.Helper()
	// axe needs timers, which are off if scripts are. On paper light and dark look the same.
	if b.axe == "" || l.still || l.media == "print" && l.scheme == "dark" {
		return nil
	}
	only := ""                                      // all rules
	if l.name == "wide-dark" || l.name == "print" { // only colours differ from wide-light
		only = ", runOnly: ['color-contrast']"
	}
	must(t, chromedp.Do(ctx, chromedp.Evaluate[chromedp.Void](b.axe+";0")))
	all, err := chromedp.Run(ctx, chromedp.Evaluate[[]violation](`axe.run(document, {resultTypes: ['violations']`+only+`}).then(r => r.violations.map(v => (
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

// witness notes console messages, errors and requests of a page.
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

// frame returns a page without faults, except for those in head and body.
func frame(head, body string) string {
	return `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>A page</title><meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<style>:root{color-scheme:light dark}svg{background:#fff}</style>` + head + `</head><body><main><h1>A page</h1>` + body + `</main></body></html>`
}

// fileURL writes a page to a file and returns its URL.
func fileURL(t *testing.T, html string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "page.html")
	must(t, os.WriteFile(path, []byte(html), 0o600))
	return (&url.URL{Scheme: "file", Path: path}).String()
}

const drawing = `<svg role="img" aria-label="A drawing" width="200" height="40" viewBox="0 0 200 40">`

// inspect finds each kind of fault in a page.
func TestInspectFindsFaults(t *testing.T) {
	t.Parallel()
	b := open(t)
	for name, c := range map[string]struct{ body, want string }{
		"too wide":            {`<div style="width:1300px">wide</div>`, "the page is "},
		"cut off":             {`<div style="width:3em;overflow:hidden;white-space:nowrap">cut off on the right</div>`, "is cut off on the right"},
		"squeezed":            {`<p style="width:2em;overflow-wrap:anywhere">squeezedwords</p>`, "is squeezed into"},
		"small text":          {`<p style="font-size:9px">small</p>`, "text of 9.0 pixels"},
		"a drawing scaled":    {`<svg role="img" aria-label="A drawing" width="50" height="10" viewBox="0 0 200 40"><text y="16">small</text></svg>`, "text of 4.0 pixels"},
		"text on text":        {drawing + `<text y="16">one</text><text x="5" y="20">other</text></svg>`, "stand on each other"},
		"text out of it":      {drawing + `<text x="190" y="16">outside</text></svg>`, "stands out of its drawing"},
		"faint in a drawing":  {drawing + `<rect width="200" height="40" fill="#00f" /><text y="16" fill="#000">faint</text></svg>`, "contrast of 2.4"},
		"faint":               {`<p style="color:#888;background:#999">faint</p>`, "axe, serious: color-contrast"},
		"no name":             {`<form><input></form>`, "axe, critical: label"},
		"a script that fails": {`<script>nothing()</script>`, "its script fails"},
		"a word":              {`<script>console.log("here")</script>`, "it speaks in the console"},
		"against the policy":  {`<img alt="A picture" src="data:image/gif;base64,R0lGODlhAQABAAAAACw=">`, "ContentSecurityPolicyIssue"},
		"something from afar": {`<link rel="stylesheet" href="http://127.0.0.1:1/x.css">`, "Content Security Policy"},
		"what is folded, too": {`<details><summary>More</summary><p style="font-size:9px">small</p></details>`, "text of 9.0 pixels"},
		"nothing":             {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if b.axe == "" && strings.HasPrefix(c.want, "axe") {
				t.Skip("axe is not there")
			}
			found := strings.Join(b.look(t, looks()[0], "self", fileURL(t, frame("", c.body))), "\n")
			if !strings.Contains(found, c.want) || c.want == "" && found != "" {
				t.Errorf("found %q, want %q", found, c.want)
			}
		})
	}
}

// A fault that appears only in one look is found in that look, and in no other.
func TestInspectSeesEveryLook(t *testing.T) {
	t.Parallel()
	b := *open(t)
	b.axe = "" // slow, and tested above
	for i, style := range []string{
		"@media (min-width:900px) and (prefers-color-scheme:light)", "@media (min-width:900px) and (prefers-color-scheme:dark)",
		"@media (max-width:450px) and (prefers-color-scheme:light)", "@media (max-width:450px) and (prefers-color-scheme:dark)",
		"@media print and (prefers-color-scheme:light)", "@media print and (prefers-color-scheme:dark)",
	} {
		page := fileURL(t, frame("<style>"+style+"{p{font-size:9px}}</style>", "<p>small</p>"))
		for j, l := range looks() {
			if found := b.look(t, l, "self", page); len(found) != 0 != (i == j) {
				t.Errorf("%s, %s: %q", style, l.name, found)
			}
		}
	}
}
