package page

import (
	"net/url"
	"sync"
	"sync/atomic"

	"leadferry/importer/report"
	"leadferry/internal/page"
)

// Live is the page of a run that goes on. Whoever shows it figures waits for nobody: a page is
// made when a reader asks, once for all readers.
type Live struct {
	server *page.Server
	latest atomic.Pointer[snapshot]
}

// snapshot is a run at one moment.
type snapshot struct {
	summary *report.Summary
	total   int
	once    sync.Once
	view    page.View
}

// Serve begins to show a run at addr, an address with a port on loopback. An error says why it
// cannot be listened on. End must follow.
func Serve(addr string, s *report.Summary) (*Live, error) {
	l := new(Live)
	l.Show(s, 0)
	var err error
	if l.server, err = page.Serve(addr, l.site); err != nil {
		return nil, err
	}
	return l, nil
}

// URL is where a person sees the page, and nobody else does.
func (l *Live) URL() string { return l.server.URL() }

// Show tells how far the run is, of which total rows are to be read, 0 where nobody knows. The
// summary is the page's from then on.
func (l *Live) Show(s *report.Summary, total int) {
	l.latest.Store(&snapshot{summary: s, total: total})
}

// Shown is what was told last.
func (l *Live) Shown() *report.Summary { return l.latest.Load().summary }

// End shows how the run ended, if that is known, and ends the page once readers have it, within
// a second.
func (l *Live) End(s *report.Summary) error {
	if s != nil {
		l.Show(s, 0)
	}
	return l.server.Close()
}

// site is the one page that there is.
func (l *Live) site(at *url.URL) (page.View, bool) {
	if at.Path != "/" {
		return page.View{}, false
	}
	s := l.latest.Load()
	s.once.Do(func() {
		v, err := view(s.summary, s.total)
		if err == nil {
			s.view = v
		}
	})
	return s.view, true
}
