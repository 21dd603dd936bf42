// Package page shows a run as an HTML page, for people who would rather look than read. The page says first how the run
// ended, then what to do next, then it shows the figures.
//
// A page is made from a report.Summary. It shows the first items of each list, so that a run of a million rows has no
// larger page than one of a thousand. Write writes the page of a finished run, Serve shows it during the run.
//
// Promises: like the summary, a page holds no key and no cell of a row. Texts from outside are cut, control characters
// are escaped, and html/template escapes the rest, so that no data become markup. Links lead to files of the run beside
// the page. Each bar has its number beside it, and nothing is shown by colour alone.
package page

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"net/url"
	"path/filepath"
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

// run is parsed when the first page is made: most starts of the program make none.
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

// Write writes the page of a finished run. It returns an error of w, or of the template.
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

var code = spelling.Form("`([^`]+)`")

// prose returns a text for people as HTML. Text in backquotes becomes code.
func prose(text string) template.HTML {
	escaped := template.HTMLEscapeString(spelling.Escape(text))
	return template.HTML(code().ReplaceAllString(escaped, "<code>$1</code>"))
}

// Live is the page of a running run. Show never waits: a page is made when a reader asks for it.
type Live struct {
	server *page.Server
	latest atomic.Pointer[report.Summary]
}

// Serve begins to show a run at addr, a loopback address with a port. Call End afterwards.
func Serve(addr string, s *report.Summary) (l *Live, err error) {
	l = new(Live)
	l.Show(s)
	l.server, err = page.Serve(addr, l.site)
	return l, err
}

// URL is the address of the page. It holds a token: anyone who has it sees the page.
func (l *Live) URL() string { return l.server.URL() }

// Show shows a newer summary. The page keeps it: do not change it afterwards.
func (l *Live) Show(s *report.Summary) { l.latest.Store(s) }

// End shows how the run ended, if s is not nil. It closes the page once readers have it, within a second.
func (l *Live) End(s *report.Summary) error {
	if s != nil {
		l.Show(s)
	}
	return l.server.Close()
}

// site returns the page for the path /, the only one that exists.
func (l *Live) site(at *url.URL) (page.View, bool) {
	v, err := view(l.latest.Load())
	return v, err == nil && at.Path == "/"
}

// mostListed is how many items of each list a page shows.
const mostListed = 200

// content is the data of the template: the summary, and a method for each part that has to be computed.
type content struct{ *report.Summary }

// Tables returns the sections of a run, except those that only a terminal may show.
func (c *content) Tables() []report.Section {
	return slices.DeleteFunc(c.Sections(), func(of report.Section) bool { return of.Private })
}

// longest returns the largest count of a table, which has at least one line.
func longest(lines []report.Line) int {
	return slices.MaxFunc(lines, func(a, b report.Line) int { return a.Count - b.Count }).Count
}

// width returns the width of a bar in percent of the longest. A short bar stays visible: a single row may matter.
func width(count, most int) string {
	return fmt.Sprintf("%.1f", max(100*float64(count)/float64(most), 0.7))
}

// Beside returns the relative address of a file that is in the folder of the page, or nil for any other file.
func (c *content) Beside(path string) *url.URL {
	for _, f := range c.Files {
		if f.Name == "page" && filepath.Dir(f.Path) == filepath.Dir(path) {
			return &url.URL{Path: filepath.Base(path)}
		}
	}
	return nil
}

// Ended returns the percentage of the rows that have an outcome; 0 if the total is not known.
func (c *content) Ended() int { return 100 * min(c.Rows.Ended(), c.Total) / max(c.Total, 1) }
