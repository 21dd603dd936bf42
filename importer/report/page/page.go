// Package page is the page of a run in HTML: for those who look at a migration rather than
// read it. It answers, in this order, whether it worked, how many, how fast, what is left to
// do and what needs a person; then it shows the figures.
//
// A page is made from a report.Summary, whose lists are bounded, and of each of them as much
// as people look at; a run of a million rows has a page no larger than one of a thousand.
// Write makes the file of a finished run, Serve shows the same page while it goes on.
//
// Promises: no key and no cell of a row stands in a page, as none stands in the summary;
// texts from outside are cut, control characters are escaped, and html/template escapes the
// rest, so that no data become markup. Charts are SVG with a title and a description, what
// they show stands in a table too, and no colour says anything alone.
package page

import (
	"bytes"
	"cmp"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"

	"leadferry/importer/report"
	"leadferry/internal/page"
)

//go:embed run.html
var runText string

// run is made when the first page is: most starts of the program make none.
var run = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("run").Funcs(template.FuncMap{
		"comma": comma, "text": report.Escape, "command": command, "path": path,
		"clock": clock, "ms": milliseconds, "seconds": seconds, "bytes": humanize.Comma,
	}).Parse(runText))
})

// Write writes the page of a finished run. An error is w's.
func Write(w io.Writer, s *report.Summary) error {
	v, err := view(s, 0)
	if err != nil {
		return err
	}
	return page.Write(w, v)
}

// view is the page of a run of which total rows are to be read, 0 where nobody knows.
func view(s *report.Summary, total int) (page.View, error) {
	var b bytes.Buffer
	headline := s.Headline()
	if err := run().Execute(&b, &content{s, headline, total, timelineOf(s)}); err != nil {
		return page.View{}, err
	}
	return page.View{Title: report.Escape(headline[0]) + " · leadferry", Main: template.HTML(b.String())}, nil
}

func comma(n int) string { return humanize.Comma(int64(n)) }

// mostOfPath is how many characters of a path are shown: its end says more than its middle.
const mostOfPath = 120

func path(text string) string {
	shown := []rune(report.Escape(text))
	if len(shown) <= mostOfPath {
		return string(shown)
	}
	return string(shown[:mostOfPath/3]) + "…" + string(shown[len(shown)-mostOfPath*2/3:])
}

// command is a line for a shell, which is of no use when it is cut.
func command(line string) string { return report.EscapeLine(report.Shortened(line, 4096)) }

// seconds is a time that something took, in words.
func seconds(s float64) string {
	d := time.Duration(min(max(s, 0), 1e8) * float64(time.Second))
	switch {
	case d < 10*time.Second:
		return fmt.Sprintf("%.3g s", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Hour:
		d = d.Round(time.Second)
		return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
	}
	d = d.Round(time.Minute)
	return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
}

func clock(at time.Time) string { return at.UTC().Format("2 Jan 2006, 15:04:05 UTC") }

func milliseconds(ms float64) string {
	switch {
	case ms >= 10_000:
		return fmt.Sprintf("%.1f s", ms/1000)
	case ms >= 100:
		return humanize.CommafWithDigits(ms, 0) + " ms"
	}
	return fmt.Sprintf("%.3g ms", ms)
}

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

// How much of each list a page shows.
const (
	mostDoubts = 200
	mostListed = 30
)

// content is what the template shows: a method for each part of the page that is more than a figure of the summary. No list that
// a summary may have long is shown whole.
type content struct {
	*report.Summary
	Sentences []string  // its headline
	Total     int       // rows that are to be read; 0: nobody knows
	Time      *timeline // nil: none was taken
}

// clipped is the beginning of a list, and how many it does not show.
type clipped[T any] struct {
	Items []T
	More  int
}

func clip[T any](items []T, most int) clipped[T] {
	n := min(len(items), most)
	return clipped[T]{items[:n], len(items) - n}
}

// FirstSteps, FirstInputs and FirstFiles are what a page shows of these lists.
func (c *content) FirstSteps() clipped[report.Step] { return clip(c.Steps(), mostListed) }

func (c *content) FirstInputs() clipped[report.Input] { return clip(c.Inputs, mostListed) }

func (c *content) FirstFiles() clipped[report.NamedFile] { return clip(c.Left(), mostListed) }

func (c *content) Running() bool { return c.Outcome == report.Running }

// Done is how many percent of the rows were read, if that is known.
func (c *content) Done() int { return 100 * min(c.Rows.Read, c.Total) / max(c.Total, 1) }

// verdict is how the run ended, in a word and a picture.
type verdict struct{ Class, Word string }

func (c *content) Verdict() verdict {
	switch {
	case c.Running():
		return verdict{"idle", "Running"}
	case c.Outcome == "interrupted":
		return verdict{"bad", "Interrupted"}
	case c.Outcome == "stopped":
		return verdict{"bad", "Stopped early"}
	case c.Rows.InDoubt > 0:
		return verdict{"warn", "Done, with rows in doubt"}
	case c.Outcome == "attention" || c.ExitCode != 0:
		return verdict{"warn", "Done, with something to look at"}
	}
	return verdict{"good", "It worked"}
}

// tile is the short answer to a question.
type tile struct{ Question, Figure, Note string }

// Tiles answer how many, how fast, what is left and what needs a person.
func (c *content) Tiles() []tile {
	s, n, need, total := c.Summary, c.Rows, c.Attention(), c.Total
	rows := tile{"How many", comma(n.Read), english.PluralWord(n.Read, "row read", "rows read")}
	if c.Running() && total > 0 {
		rows.Note = fmt.Sprintf("of %s rows, %d %%", comma(total), c.Done())
	} else if made := n.Created + n.Partial; made > 0 {
		rows.Note += ", " + comma(made) + english.PluralWord(made, " lead made", " leads made")
	}
	speed := tile{"How fast", rate(s.ThroughputRowsPerS) + " rows/s", "in " + seconds(s.DurationS)}
	if s.LatencyMs.P95 > 0 {
		speed.Note += "; 95 % of answers within " + milliseconds(s.LatencyMs.P95)
	}
	unsent := n.Pending + n.Failed + n.Partial
	left := tile{"What is left", comma(unsent), english.PluralWord(unsent, "row to send", "rows to send") + " by the next run"}
	switch {
	case s.DryRun:
		left = tile{"What is left", comma(n.Pending), english.PluralWord(n.Pending, "good row: nothing was sent", "good rows: nothing was sent")}
	case c.Running() && total > 0:
		left = tile{"What is left", comma(max(0, total-n.Read)), "rows to read"}
	case unsent == 0:
		left.Note = "every row had its turn"
	}
	return []tile{rows, speed, left, {"What needs a person", comma(need), wanting(s, need)}}
}

// wanting names the outcomes that want a person's eye.
func wanting(s *report.Summary, need int) string {
	if need == 0 {
		return "no row needs attention"
	}
	var words []string
	for _, o := range s.Outcomes() {
		if o.Attention && o.Rows > 0 {
			words = append(words, comma(o.Rows)+" "+strings.ReplaceAll(o.Name, "_", " "))
		}
	}
	return strings.Join(words, ", ")
}

func (c *content) Doubts() clipped[report.Doubt] {
	byPlace := func(a, b report.Doubt) int { return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line)) }
	list := clip(slices.SortedStableFunc(slices.Values(c.InDoubt), byPlace), mostDoubts)
	list.More = max(0, c.Rows.InDoubt-len(list.Items))
	return list
}

type answer struct {
	Status string
	Count  int
}

func (c *content) Answers() (list []answer) {
	for _, status := range slices.Sorted(maps.Keys(c.Requests.ByStatus)) {
		list = append(list, answer{status, c.Requests.ByStatus[status]})
	}
	return clip(list, mostListed).Items
}
