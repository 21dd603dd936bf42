// Package web is the sandbox's page: its leads, and the requests and faults as they come. It is for practice: to find
// the lead of a row in doubt by what is known of it, as in the service's console, and to copy its ID. It changes
// nothing. Secrets and tokens do not reach it: the sandbox keeps none with its requests.
package web

import (
	"bytes"
	"cmp"
	_ "embed"
	"fmt"
	"html/template"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/dustin/go-humanize"

	"leadferry/internal/page"
	"leadferry/leadapi/sandbox"
)

// Site is the page of one sandbox. Its methods may be called by many goroutines.
type Site struct {
	server  *sandbox.Server
	address string
}

// New returns the page of a server that listens at an address, which the page names.
func New(s *sandbox.Server, address string) *Site { return &Site{server: s, address: address} }

//go:embed page.html
var text string

// pages are parsed when the first is asked for: no other command waits for it.
var pages = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("").Funcs(template.FuncMap{
		"plain": plain, "clock": clock, "count": count, "name": nameOf, "lost": lost, "text": sandbox.TextOf,
	}).Parse(text))
})

// View gives the page of an address, as a [page.Site] does; false where there is none.
func (s *Site) View(at *url.URL) (page.View, bool) {
	query := at.Query()
	name, title, data, err := "list", "Leads of the sandbox", any(nil), error(nil)
	switch at.Path {
	case "/":
		data, err = s.list(at.Path, query.Get("q"), query.Get("before"))
	case requestsPath:
		title = "Requests of the sandbox"
		data, err = s.list(at.Path, query.Get("q"), "")
	case "/lead":
		var l *sandbox.Lead
		if l, err = s.server.Lead(query.Get("id")); l == nil && err == nil {
			return page.View{}, false
		} else if err == nil {
			about := s.server.Requests(requestsOnPage, func(r sandbox.Request) bool { return r.LeadID == l.ID })
			name, title = "lead", plain(nameOf(*l), 80)+", a lead of the sandbox"
			data = leadPage{*l, s.server, about}
		}
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

const (
	leadsOnPage    = 100
	requestsOnPage = 50
	mostQuery      = 200 // bytes
	shortestName   = 6   // bytes of an ID or a time: what is shorter is in any by chance
	requestsPath   = "/requests"
)

// listPage says what the sandbox has done as a whole, and lists leads, or requests.
type listPage struct {
	Server                    *sandbox.Server
	Path, Address             string
	Made, Answered            int
	Kinds, Hits               string // how many of each: create 12, update 3
	Unanswered, HitByAnyFault int

	Query string
	Paged bool // not the newest leads
	sandbox.Found
	Requests []sandbox.Request
}

type leadPage struct {
	sandbox.Lead
	Server   *sandbox.Server // knows the names of organizations
	Requests []sandbox.Request
}

// tally lists figures, and adds them up.
func tally(figures map[string]int) (list string, sum int) {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(figures)) {
		all = append(all, name+" "+count(figures[name]))
		sum += figures[name]
	}
	return cmp.Or(strings.Join(all, ", "), "none"), sum
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

// ShowsRequests says what is listed.
func (p *listPage) ShowsRequests() bool { return p.Path == requestsPath }

func (s *Site) list(path, query, before string) (*listPage, error) {
	p := &listPage{Server: s.server, Path: path, Address: s.address, Query: asked(query), Paged: before != ""}
	kinds := map[string]int{}
	for kind, answers := range s.server.Counts() {
		for _, times := range answers {
			kinds[kind] += times
		}
		p.Unanswered += answers[0]
	}
	p.Kinds, p.Answered = tally(kinds)
	p.Hits, p.HitByAnyFault = tally(s.server.Hits())
	var err error
	if p.Made, err = s.server.Made(); err != nil {
		return nil, err
	}
	if p.ShowsRequests() {
		words := strings.Fields(strings.ToLower(p.Query))
		p.Requests = s.server.Requests(requestsOnPage, func(r sandbox.Request) bool { return matches(r, words) })
		return p, nil
	}
	p.Found, err = s.server.Find(p.Query, before[:min(len(before), mostQuery)], leadsOnPage)
	return p, err
}

// asked is a query without what cannot be seen.
func asked(query string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(query[:min(len(query), mostQuery)], ""))
}

// lost reports whether a lead was made or changed, and the sender was not told so.
func lost(r sandbox.Request) bool { return r.LeadID != "" && (r.Status < 200 || r.Status > 299) }

// matches reports whether a request holds every word.
func matches(r sandbox.Request, words []string) bool {
	answer := strconv.Itoa(r.Status)
	if r.Status == 0 {
		answer = "no answer"
	}
	said := strings.ToLower(strings.Join([]string{r.Kind, answer, r.Reason, r.Fault}, "\n"))
	named := strings.ToLower(strings.Join([]string{r.Path, r.RequestID, r.LeadID, clock(r.At)}, "\n"))
	return !slices.ContainsFunc(words, func(w string) bool {
		return !strings.Contains(said, w) && (len(w) < shortestName || !strings.Contains(named, w))
	})
}

// plain is a text of others as it can be shown: cut at n characters, and those that cannot be seen or turn the text
// around by name.
func plain(text string, n int) string {
	var b strings.Builder
	for i, r := range text {
		switch {
		case n == 0:
			return b.String() + fmt.Sprintf("… (%s bytes more)", count(len(text)-i))
		case r == '\n' || r == '\t':
			b.WriteRune(r)
		case r < ' ':
			b.WriteRune('\u2400' + r)
		case unicode.IsControl(r) || unicode.Is(unicode.Cf, r) && r != '\u200d' || r == unicode.ReplacementChar:
			fmt.Fprintf(&b, "⟨%U⟩", r)
		default:
			b.WriteRune(r)
		}
		n--
	}
	return b.String()
}

// clock is a time as an export of the checkpoint writes it, with milliseconds.
func clock(at any) string {
	switch t := at.(type) {
	case time.Time:
		return t.UTC().Format("2006-01-02T15:04:05.000Z")
	case string:
		if parsed, err := time.Parse(time.RFC3339Nano, t); err == nil {
			return clock(parsed)
		}
	}
	return fmt.Sprint(at)
}

func count(n int) string { return humanize.Comma(int64(n)) }
