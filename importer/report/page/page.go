// Package page is the page of a run in HTML: for those who look at a migration rather than read it. It answers, in this
// order, whether it worked, what became of the rows of the file and what to do next; then it shows the figures.
//
// A page is made from a report.Summary, whose lists are bounded, and of each of them as much
// as people look at; a run of a million rows has a page no larger than one of a thousand.
// Write makes the file of a finished run, Serve shows the same page while it goes on.
//
// Promises: no key and no cell of a row is in a page, as none is in the summary;
// texts from outside are cut, control characters are escaped, and html/template escapes the
// rest, so that no data become markup. Links lead to files of the run beside the page. What a bar shows is a number
// beside it, too, and no colour says anything alone.
package page

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dustin/go-humanize"

	"leadferry/importer/report"
	"leadferry/internal/page"
	"leadferry/internal/spelling"
)

//go:embed run.html
var runText string

// run is made when the first page is: most starts of the program make none.
var run = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("run").Funcs(template.FuncMap{
		"comma": comma, "text": spelling.Escape, "prose": prose, "command": spelling.EscapeLine,
		"clock": func(at time.Time) string { return at.UTC().Format("2 Jan 2006, 15:04:05 UTC") },
		"ms":    func(ms float64) string { return spelling.Duration(ms / 1000) },
		"rate":  func(perSecond float64) string { return humanize.CommafWithDigits(perSecond, 1) },
		"bytes": humanize.Comma, "seconds": spelling.Duration,
		"width": width, "longest": longest,
		"first": func(n int) int { return min(n, mostListed) }, "more": func(n int) int { return n - mostListed },
	}).Parse(runText))
})

// Write writes the page of a finished run. An error is w's.
func Write(w io.Writer, s *report.Summary) error {
	v, err := view(s)
	if err != nil {
		return err
	}
	return page.Write(w, v)
}

func view(s *report.Summary) (page.View, error) {
	var b bytes.Buffer
	if err := run().Execute(&b, &content{s}); err != nil {
		return page.View{}, err
	}
	return page.View{Title: spelling.Escape(s.Headline()[0]) + " · leadferry", Main: template.HTML(b.String())}, nil
}

func comma(n int) string { return humanize.Comma(int64(n)) }

// code is the form of commands in a text.
var code = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile("`([^`]+)`") })

// prose is a text for people: commands in it look like commands.
func prose(text string) template.HTML {
	escaped := template.HTMLEscapeString(spelling.Escape(text))
	return template.HTML(code().ReplaceAllString(escaped, "<code>$1</code>"))
}

// Live is the page of a run that goes on. Anyone who shows it figures waits for nobody: a page is made when a reader
// asks.
type Live struct {
	server *page.Server
	latest atomic.Pointer[report.Summary]
}

// Serve begins to show a run at addr, an address with a port on loopback. An error says why it
// cannot be listened on. End must follow.
func Serve(addr string, s *report.Summary) (l *Live, err error) {
	l = new(Live)
	l.Show(s)
	l.server, err = page.Serve(addr, l.site)
	return l, err
}

// URL is where a person sees the page, and nobody else does.
func (l *Live) URL() string { return l.server.URL() }

// Show says how far the run is. The summary is the page's from then on.
func (l *Live) Show(s *report.Summary) { l.latest.Store(s) }

// End shows how the run ended, if that is known, and ends the page once readers have it, within a second.
func (l *Live) End(s *report.Summary) error {
	if s != nil {
		l.Show(s)
	}
	return l.server.Close()
}

// site is the one page that there is.
func (l *Live) site(at *url.URL) (page.View, bool) {
	v, err := view(l.latest.Load())
	return v, err == nil && at.Path == "/"
}

// mostListed is how much of each list a page shows.
const mostListed = 200

// content is what the template shows: a method for each part of the page that is more than a figure of the summary. No
// list that a summary may have long is shown whole.
type content struct{ *report.Summary }

// Tables are what a run has to tell, but for what only its terminal may show.
func (c *content) Tables() []report.Section {
	return slices.DeleteFunc(c.Sections(), func(of report.Section) bool { return of.Private })
}

// longest is the largest count of a table.
func longest(lines []report.Line) (most int) {
	for _, l := range lines {
		most = max(most, l.Count)
	}
	return most
}

// width is that of a bar, in percent of the longest one. One row of a million may be the one that matters.
func width(count, most int) string {
	return fmt.Sprintf("%.1f", max(100*float64(count)/float64(most), 0.7))
}

// Beside is the address of a file that lies in the folder of the page, or "".
func (c *content) Beside(path string) *url.URL {
	for _, f := range c.Files {
		if f.Name == "page" && filepath.Dir(f.Path) == filepath.Dir(path) {
			return &url.URL{Path: filepath.Base(path)}
		}
	}
	return nil
}

// Ended is how many percent of the rows have an outcome, if that is known.
func (c *content) Ended() int { return 100 * min(c.Rows.Ended(), c.Total) / max(c.Total, 1) }
