// Package web is the sandbox's page: its leads, how each came to be what it is, and the requests and faults as they come.
// It is for practice: to find the lead of a row in doubt by what one knows of it, as one would in the service's console,
// and to copy its ID.
//
// It shows, and changes nothing. Secrets and tokens do not reach it: the sandbox keeps none with its requests.
package web

import (
	"bytes"
	_ "embed"
	"html/template"
	"net/url"
	"sync"
	"time"

	"leadferry/internal/page"
	"leadferry/leadapi/sandbox"
)

// Site is the page of one sandbox. Its methods may be called by many goroutines.
type Site struct {
	server  *sandbox.Server
	address string

	mu   sync.Mutex // one View is made at a time
	kept map[string]kept
}

// New returns the page of a server that listens at an address, which the page names.
func New(s *sandbox.Server, address string) *Site {
	return &Site{server: s, address: address, kept: map[string]kept{}}
}

// kept is the last View of an address. It is good for as long as nothing happened to the sandbox.
type kept struct {
	view  page.View
	found bool
	after int // requests that were answered before it was made
	made  time.Time
	cost  time.Duration
}

const (
	mostKept = 200 // addresses
	share    = 10  // a View takes one part in so many of the time of those who wait for it
)

// View gives the page of an address, as a [page.Site] does.
func (s *Site) View(at *url.URL) (page.View, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key, after := at.RequestURI(), s.server.Answered()
	if k, ok := s.kept[key]; ok && (k.after == after || time.Since(k.made) < share*k.cost) {
		return k.view, k.found
	}
	if len(s.kept) >= mostKept {
		clear(s.kept)
	}
	k := kept{after: after, made: time.Now()}
	k.view, k.found = s.render(at)
	k.cost = time.Since(k.made)
	s.kept[key] = k
	return k.view, k.found
}

//go:embed page.html
var text string

// pages are parsed when the first is asked for: no other command waits for it.
var pages = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("").Funcs(template.FuncMap{"plain": plain, "clock": clock, "count": count}).Parse(text))
})

// render makes the page of an address; false where there is none.
func (s *Site) render(at *url.URL) (page.View, bool) {
	var data any
	var err error
	name, title := "", ""
	switch query := at.Query(); at.Path {
	case "/":
		name, title = "leads", "Leads of the sandbox"
		data, err = s.leads(query.Get("q"), query.Get("before"))
	case "/requests":
		name, title = "requests", "Requests to the sandbox"
		data = s.requests(query.Get("q"))
	case "/lead":
		var l *leadPage
		if l, err = s.lead(query.Get("id")); l == nil && err == nil {
			return page.View{}, false
		} else if l != nil {
			title = plain(l.name(), 80) + ", a lead of the sandbox"
		}
		name, data = "lead", l
	default:
		return page.View{}, false
	}
	if err != nil {
		name, title, data = "failed", "The sandbox cannot be read", err.Error()
	}
	var b bytes.Buffer
	if err := pages().ExecuteTemplate(&b, name, data); err != nil {
		b.Reset()
		b.WriteString("<h1>This page could not be made</h1>\n")
	}
	return page.View{Title: title, Main: template.HTML(b.String()), Form: true}, true
}
