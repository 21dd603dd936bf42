// Package web shows the sandbox's leads on a page, for practice: find the lead of a row in doubt by what you know of
// it, as in the service's console, and copy its ID. The page changes nothing.
package web

import (
	"bytes"
	_ "embed"
	"fmt"
	"html"
	"html/template"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
	"unicode"

	"leadferry/internal/page"
	"leadferry/leadapi/sandbox"
)

//go:embed page.html
var text string

// pages are parsed for the first page, so that no other command has to wait for them.
var pages = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("").Funcs(template.FuncMap{
		"plain": plain, "name": nameOf, "text": sandbox.TextOf,
	}).Parse(text))
})

// View returns the page of an address, as a [page.Site] does; false: there is none. The page shows listening, the
// address of the sandbox.
func View(s *sandbox.Server, listening string, at *url.URL) (page.View, bool) {
	if at.Path != "/" {
		return page.View{}, false
	}
	p := listPage{Server: s, Address: listening, Query: plain(at.Query().Get("q"), mostQuery)}
	var err error
	var b bytes.Buffer
	if p.Leads, p.More, err = s.Find(p.Query, leadsOnPage); err == nil {
		err = pages().ExecuteTemplate(&b, "list", p)
	}
	if err != nil {
		b.Reset()
		fmt.Fprintf(&b, "<h1>The sandbox cannot be read</h1>\n<p>%s</p>\n", html.EscapeString(err.Error()))
	}
	return page.View{Title: "Leads of the sandbox", Main: template.HTML(b.String()), Form: true}, true
}

const (
	leadsOnPage = 100
	mostQuery   = 200 // characters
)

// listPage lists leads.
type listPage struct {
	Server  *sandbox.Server // knows the names of organizations
	Address string
	Query   string
	Leads   []sandbox.Lead
	More    bool // there are more than these
}

// nameOf returns what a list calls a lead: its name, or something else that a person may know it by.
func nameOf(l sandbox.Lead) string {
	for _, key := range append([]string{"name", "email", "phone"}, slices.Sorted(maps.Keys(l.Content))...) {
		if text := strings.TrimSpace(sandbox.TextOf(l.Content[key])); text != "" {
			return text
		}
	}
	return "(without content)"
}

// plain makes a text of others safe to show: at most n characters, and U+FFFD for characters that are invisible or
// change the direction of the text.
func plain(text string, n int) string {
	shown := []rune(strings.Map(func(r rune) rune {
		if !unicode.IsGraphic(r) && r != '\n' && r != '\t' {
			return unicode.ReplacementChar
		}
		return r
	}, text))
	if len(shown) > n {
		return string(shown[:n]) + "…"
	}
	return string(shown)
}
