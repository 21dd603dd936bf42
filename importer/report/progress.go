package report

import (
	"cmp"
	"fmt"
	"io"
	"log/slog"
	"math"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/dustin/go-humanize"
	"github.com/schollz/progressbar/v3"

	"leadferry/internal/spelling"
)

// ProgressOptions say where and how progress is shown. Without a Terminal it goes to Log, and Out gets nothing.
type ProgressOptions struct {
	Out      io.Writer    // standard error
	Terminal bool         // Out is one
	Width    func() int   // of the terminal, which may change
	Log      *slog.Logger // which leaves empty texts out
	Total    int          // rows that are to be read; 0 = not known
}

// Progress shows how far a run has come: a bar on a terminal, else a log line every 10 seconds. The time left counts
// only rows that are left to send. Its methods may be called by several goroutines.
type Progress struct {
	options ProgressOptions

	began     time.Time // with the first row sent
	mu        sync.Mutex
	bar       *progressbar.ProgressBar
	line      string  // that is on the terminal
	perSecond float64 // rows sent since then
	logged    time.Time
}

const (
	logEvery = 10 * time.Second
	barWidth = 10 // leaves room for the facts beside it where a terminal has 80 characters
)

// NewProgress begins to show progress. The bar is drawn into a text, which is shown as wide as the terminal is now:
// what fills a line cannot be drawn over. It guesses no time left, since it would do so while nothing moves, too; a
// spinner that turns by itself would have a goroutine that nobody waits for.
func NewProgress(o ProgressOptions) *Progress {
	bar := progressbar.NewOptions(cmp.Or(o.Total, -1),
		progressbar.OptionSetWriter(io.Discard), progressbar.OptionSetTheme(progressbar.ThemeASCII),
		progressbar.OptionSetWidth(barWidth), progressbar.OptionShowCount(),
		progressbar.OptionShowDescriptionAtLineEnd(),
		progressbar.OptionSetPredictTime(false), progressbar.OptionSetElapsedTime(false),
		progressbar.OptionShowTotalBytes(o.Total > 0), progressbar.OptionSetSpinnerChangeInterval(0),
	)
	now := time.Now()
	return &Progress{options: o, began: now, bar: bar, logged: now}
}

// show puts another line on the terminal; "" leaves nothing. That a terminal is gone is noticed where it matters.
func (p *Progress) show(line string) {
	room := max(1, p.options.Width()-1)
	if line = spelling.Shorten(line, room); line == p.line {
		return
	}
	text := fmt.Sprintf("\r%-*s", min(utf8.RuneCountInString(p.line), room), line)
	if p.line = line; line == "" {
		text += "\r"
	}
	_, _ = io.WriteString(p.options.Out, text)
}

// Update shows how far the run is. Where nothing is sent, what counts is rows read.
func (p *Progress) Update(s *Summary) {
	p.mu.Lock()
	defer p.mu.Unlock()
	done, sent := s.Rows.Ended(), s.Sent
	if s.DryRun {
		done, sent = s.Rows.Read, s.Rows.Read
	}
	now, eta := time.Now(), ""
	if sent == 0 { // known rows say nothing of how fast others are
		p.began = now
	}
	if passed := now.Sub(p.began).Seconds(); passed >= 1 {
		p.perSecond = float64(sent) / passed
	}
	if p.options.Total > 0 && s.Paused == "" && p.perSecond >= 0.01 { // else nobody can tell
		eta = spelling.Duration(math.Ceil(float64(max(0, p.options.Total-done)) / p.perSecond))
	}
	switch {
	case p.options.Terminal:
		p.draw(s, eta, done)
	case now.Sub(p.logged) >= logEvery:
		p.logged = now
		p.log(s, eta)
	}
}

// Write shows text, log lines for instance, above the bar.
func (p *Progress) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	line := p.line
	p.show("")
	n, err := p.options.Out.Write(text)
	p.show(line)
	return n, err
}

// Stop takes the bar from the terminal.
func (p *Progress) Stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.show("")
}

// draw shows the bar with details by weight: what is at the end is cut where the terminal is narrow. The bar's end
// stays one row ahead while the run goes on, as a full bar never moves again.
func (p *Progress) draw(s *Summary, eta string, done int) {
	var details spelling.Texts
	doubts, need := s.Rows.InDoubt, s.Attention()
	details.Add(s.Paused != "", "paused: %s", s.Paused)
	details.Add(doubts > 0, "%s in doubt", humanize.Comma(int64(doubts)))
	details.Add(need > 0, "%s need attention", humanize.Comma(int64(need)))
	details.Add(eta != "", "%s left", eta)
	details.Add(true, "%.0f rows/s", p.perSecond)
	p.bar.Describe(strings.Join(details, ", "))
	if p.options.Total > 0 {
		p.bar.ChangeMax(max(p.options.Total, done+1))
	}
	_ = p.bar.Set(done)
	p.show(strings.TrimSpace(p.bar.String()))
}

func (p *Progress) log(s *Summary, eta string) {
	p.options.Log.Info("progress", "read", s.Rows.Read, "sent", s.Sent, "known", s.Rows.Ended()-s.Sent,
		"attention", s.Attention(), "in_doubt", s.Rows.InDoubt, "in_flight", s.InFlight,
		"rows_per_s", int(p.perSecond+0.5), "left", eta, "paused", spelling.Escape(s.Paused))
}
