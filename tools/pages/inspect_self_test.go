package pages

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// frame is a page without faults, but for what a test puts into its head and body.
func frame(head, body string) string {
	return `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>A page</title><meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<style>:root{color-scheme:light dark}svg{background:#fff}</style>` + head + `</head><body><main><h1>A page</h1>` + body + `</main></body></html>`
}

// fileURL writes a page to a file of the test's.
func fileURL(t *testing.T, html string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "page.html")
	must(t, os.WriteFile(path, []byte(html), 0o600))
	return (&url.URL{Scheme: "file", Path: path}).String()
}

const drawing = `<svg role="img" aria-label="A drawing" width="200" height="40" viewBox="0 0 200 40">`

// A page with a fault is found out.
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

// A page may be well in one look and not in another.
func TestInspectSeesEveryLook(t *testing.T) {
	t.Parallel()
	b := *open(t)
	b.axe = "" // it is slow, and tried above
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
