package page

import (
	"bytes"
	"html/template"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"leadferry/internal/testsupport/must"
)

// each calls f with every node of a page.
func each(t *testing.T, text string, f func(*html.Node)) {
	t.Helper()
	doc, err := html.Parse(strings.NewReader(text))
	must.Do(t, err)
	for n := range doc.Descendants() {
		f(n)
	}
}

func attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// The policy has the hashes of the page's script and style. If one byte differed, browsers would leave them out.
func TestPolicyAllowsWhatThePageHolds(t *testing.T) {
	var file, live bytes.Buffer
	v := View{Title: `A "title" </title><script>`, Main: template.HTML("<section id=a>x</section>")}
	must.Do(t, Write(&file, v))
	must.Do(t, writeLive(&live, v))
	for _, p := range []struct {
		name, text, policy string
		scripts            int
	}{{"file", file.String(), filePolicy(), 1}, {"live", live.String(), servedPolicy(), 1}} {
		scripts, styles := 0, 0
		each(t, p.text, func(n *html.Node) {
			switch {
			case n.Data == "style" && n.Type == html.ElementNode:
				styles++
				if !strings.Contains(p.policy, "style-src "+hashOf(n.FirstChild.Data)) {
					t.Errorf("%s: the style is not the one of its policy", p.name)
				}
			case n.Data == "script":
				scripts++
				if !strings.Contains(p.policy, "script-src "+hashOf(n.FirstChild.Data)) {
					t.Errorf("%s: the script is not the one of its policy", p.name)
				}
			case n.Data == "title" && n.Type == html.ElementNode && n.FirstChild.Data != v.Title:
				t.Errorf("%s: the title is %q", p.name, n.FirstChild.Data)
			case n.Data == "meta" && attribute(n, "http-equiv") == "Content-Security-Policy" && attribute(n, "content") != p.policy:
				t.Errorf("%s: the policy is %s", p.name, attribute(n, "content"))
			}
			for _, name := range []string{"style", "src", "href", "onload", "onclick"} {
				if attribute(n, name) != "" {
					t.Errorf("%s: %s has %s", p.name, n.Data, name)
				}
			}
		})
		if scripts != p.scripts || styles != 1 {
			t.Errorf("%s: %d scripts, %d styles", p.name, scripts, styles)
		}
	}
	if !strings.Contains(file.String(), `http-equiv="Content-Security-Policy"`) || strings.Contains(filePolicy(), "connect-src") {
		t.Error("a page in a file has no policy in it, or one that allows connections")
	}
	if strings.Contains(style, "url(") || strings.Contains(style, "@import") || strings.Contains(copying+follow, "fetch(") {
		t.Error("a page loads something")
	}
}
