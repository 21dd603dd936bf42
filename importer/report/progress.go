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
	"github.com/dustin/go-humanize/english"
	"github.com/schollz/progressbar/v3"

	"leadferry/internal/spelling"
)

// ProgressOptions say where and how to show progress. Without a terminal, progress goes to Log only.
type ProgressOptions struct {
	Out      io.Writer    // standard error
	Terminal bool         // Out is a terminal
	Width    func() int   // of the terminal now: it may change
	Log      *slog.Logger // leaves out empty texts
	Total    int          // rows that will be read; 0: not known
}

// Progress shows how far a run is: a bar on a terminal, else a log line every 10 seconds. The time left counts only
// rows still to send. Several goroutines may call its methods.
type Progress struct {
	options ProgressOptions

	began     time.Time // about when the first row was sent
	mu        sync.Mutex
	bar       *progressbar.ProgressBar
	perSecond float64   // rows sent since began
	logged    time.Time // when the last log line was written
}

const (
	logEvery = 10 * time.Second
	barWidth = 10 // leaves room for the figures beside it on a terminal of 80 characters
)

// NewProgress begins to show progress. The bar is drawn into a text and cut to the terminal's current width: a line
// that fills the terminal cannot be overwritten. The library's estimate of the time left is off, because it counts on
// while nothing moves. Its spinner is off, because it needs a goroutine that nobody waits for.
func NewProgress(o ProgressOptions) *Progress {
	bar := progressbar.NewOptions(cmp.Or(o.Total, -1),
		progressbar.OptionSetWriter(&fitted{ProgressOptions: &o}), progressbar.OptionSetTheme(progressbar.ThemeASCII),
		progressbar.OptionSetWidth(barWidth), progressbar.OptionShowCount(),
		progressbar.OptionShowDescriptionAtLineEnd(),
		progressbar.OptionSetPredictTime(false), progressbar.OptionSetElapsedTime(false),
		progressbar.OptionShowTotalBytes(o.Total > 0), progressbar.OptionSetSpinnerChangeInterval(0),
	)
	now := time.Now()
	return &Progress{options: o, began: now, bar: bar, logged: now}
}

// fitted is a terminal that cuts the bar to its current width: a line that fills it cannot be overwritten.
type fitted struct {
	*ProgressOptions
	line string // on the terminal now
}

// Write replaces the line; a blank one clears it. It ignores errors: a lost terminal must not stop the run.
func (f *fitted) Write(drawn []byte) (int, error) {
	room := max(1, f.Width()-1)
	line := spelling.Shorten(strings.TrimSpace(string(drawn)), room)
	text := fmt.Sprintf("\r%-*s", min(utf8.RuneCountInString(f.line), room), line)
	if f.line = line; line == "" {
		text += "\r"
	}
	_, _ = io.WriteString(f.Out, text)
	return len(drawn), nil
}

// Update shows how far the run is. A run that sends nothing counts the rows that it has read.
func (p *Progress) Update(s *Summary) {
	p.mu.Lock()
	defer p.mu.Unlock()
	done, sent := s.Rows.Ended(), s.Sent
	if s.DryRun {
		done, sent = s.Rows.Read, s.Rows.Read
	}
	now, eta := time.Now(), ""
	if sent == 0 { // rows that need no request say nothing about the time of the others
		p.began = now
	}
	if passed := now.Sub(p.began).Seconds(); passed >= 1 {
		p.perSecond = float64(sent) / passed
	}
	if p.options.Total > 0 && s.Paused == "" && p.perSecond >= 0.01 {
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

// Write shows text above the bar, for example log lines.
func (p *Progress) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.bar.Clear()
	n, err := p.options.Out.Write(text)
	_ = p.bar.RenderBlank()
	return n, err
}

// Stop removes the bar from the terminal.
func (p *Progress) Stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.bar.Clear()
}

// draw shows the bar and details, the most important first, because a narrow terminal cuts the end. The bar's maximum
// stays at least one row ahead: a full bar never moves again.
func (p *Progress) draw(s *Summary, eta string, done int) {
	var details spelling.Texts
	doubts, need := s.Rows.InDoubt, s.Attention()
	details.Add(s.Paused != "", "paused: %s", s.Paused)
	details.Add(doubts > 0, "%s in doubt", humanize.Comma(int64(doubts)))
	details.Add(need > 0, "%s %s attention", humanize.Comma(int64(need)), english.PluralWord(need, "needs", "need"))
	details.Add(eta != "", "%s left", eta)
	details.Add(true, "%.0f rows/s", p.perSecond)
	p.bar.Describe(strings.Join(details, ", "))
	if p.options.Total > 0 {
		p.bar.ChangeMax(max(p.options.Total, done+1))
	}
	_ = p.bar.Set(done)
}

func (p *Progress) log(s *Summary, eta string) {
	p.options.Log.Info("progress", "read", s.Rows.Read, "sent", s.Sent, "known", s.Rows.Ended()-s.Sent,
		"attention", s.Attention(), "in_doubt", s.Rows.InDoubt, "in_flight", s.InFlight,
		"rows_per_s", int(p.perSecond+0.5), "left", eta, "paused", spelling.Escape(s.Paused))
}
