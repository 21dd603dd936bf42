// Package web is the sandbox's page: its leads. It is for practice: to find the lead of a row in doubt by what is known
// of it, as in the service's console, and to copy its ID. It changes nothing.
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

// pages are parsed when the first is asked for: no other command waits for it.
var pages = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("").Funcs(template.FuncMap{
		"plain": plain, "name": nameOf, "text": sandbox.TextOf,
	}).Parse(text))
})

// View gives the page of an address, as a [page.Site] does; false where there is none. The sandbox listens at listening,
// which the page names.
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
	More    bool // than these
}

// nameOf is what a list calls a lead: its name, or what else a person would know it by.
func nameOf(l sandbox.Lead) string {
	for _, key := range append([]string{"name", "email", "phone"}, slices.Sorted(maps.Keys(l.Content))...) {
		if text := strings.TrimSpace(sandbox.TextOf(l.Content[key])); text != "" {
			return text
		}
	}
	return "(without content)"
}

// plain is a text of others as it can be shown: n characters at most, and what cannot be seen, or turns the text around,
// as U+FFFD.
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
