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
)

// ProgressOptions say where and how progress is shown. Without a Terminal it goes to Log, and Out gets nothing.
type ProgressOptions struct {
	Out      io.Writer  // standard error
	Terminal bool       // Out is one
	Width    func() int // of the terminal, which may change
	Log      *slog.Logger
	Total    int  // rows that are to be read; 0 = not known
	DryRun   bool // nothing is sent: what counts is rows read
}

// Tick is how far a run has come.
type Tick struct {
	Read      int // rows read
	Sent      int // rows whose requests are done with
	Known     int // rows that needed none: known from before, invalid or skipped
	Attention int
	InDoubt   int
	InFlight  int
	Paused    string // why requests wait, or ""
}

// Progress shows how far a run has come: a bar on a terminal, else a log line every 10 seconds. The time left counts
// only rows that are left to send. Its methods may be called by several goroutines.
type Progress struct {
	options ProgressOptions

	began     time.Time // with the first row sent
	mu        sync.Mutex
	bar       *progressbar.ProgressBar
	drawn     *fitted // by the bar
	perSecond float64 // rows sent since then
	logged    time.Time
}

const (
	logEvery = 10 * time.Second
	barWidth = 10 // leaves room for the facts beside it where a terminal has 80 characters
)

// NewProgress begins to show progress. The bar guesses no time left, since it would do so while nothing moves, too; a
// spinner that turns by itself would have a goroutine that nobody waits for.
func NewProgress(o ProgressOptions) *Progress {
	drawn := &fitted{out: o.Out, width: o.Width}
	bar := progressbar.NewOptions(cmp.Or(o.Total, -1),
		progressbar.OptionSetWriter(drawn), progressbar.OptionSetTheme(progressbar.ThemeASCII),
		progressbar.OptionSetWidth(barWidth), progressbar.OptionShowCount(),
		progressbar.OptionShowDescriptionAtLineEnd(),
		progressbar.OptionSetPredictTime(false), progressbar.OptionSetElapsedTime(false),
		progressbar.OptionShowTotalBytes(o.Total > 0), progressbar.OptionSetSpinnerChangeInterval(0),
	)
	now := time.Now()
	return &Progress{options: o, began: now, bar: bar, drawn: drawn, logged: now}
}

// fitted is a terminal on which no line of the bar wraps: what fills it cannot be drawn over.
type fitted struct {
	out   io.Writer
	width func() int // which may change
	line  string     // that is there now
}

// Write takes what the bar draws, except the blanks that it draws before: show writes over all that stood there.
func (f *fitted) Write(drawn []byte) (int, error) {
	if line := strings.TrimSpace(string(drawn)); line != "" {
		f.show(line)
	}
	return len(drawn), nil
}

// show puts another line there; "" leaves nothing. That a terminal is gone is noticed where it matters.
func (f *fitted) show(line string) {
	room := max(1, f.width()-1)
	if line = escape(line, room); line == f.line {
		return
	}
	length := utf8.RuneCountInString(line)
	text := "\r" + line + strings.Repeat(" ", max(0, min(utf8.RuneCountInString(f.line), room)-length))
	if f.line = line; line == "" {
		text += "\r"
	}
	_, _ = io.WriteString(f.out, text)
}

// Update shows a new state.
func (p *Progress) Update(t Tick) {
	p.mu.Lock()
	defer p.mu.Unlock()
	done, sent := t.Known+t.Sent, t.Sent
	if p.options.DryRun {
		done, sent = t.Read, t.Read
	}
	now, eta := time.Now(), ""
	if sent == 0 { // known rows say nothing of how fast others are
		p.began = now
	}
	if passed := now.Sub(p.began).Seconds(); passed >= 1 {
		p.perSecond = float64(sent) / passed
	}
	if p.options.Total > 0 && t.Paused == "" && p.perSecond >= 0.01 { // else nobody can tell
		eta = Duration(math.Ceil(float64(max(0, p.options.Total-done)) / p.perSecond))
	}
	switch {
	case p.options.Terminal:
		p.draw(t, eta, done)
	case now.Sub(p.logged) >= logEvery:
		p.logged = now
		p.log(t, eta)
	}
}

// Write shows text, log lines for instance, above the bar.
func (p *Progress) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	line := p.drawn.line
	p.drawn.show("")
	n, err := p.options.Out.Write(text)
	p.drawn.show(line)
	return n, err
}

// Stop takes the bar from the terminal.
func (p *Progress) Stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drawn.show("")
}

// draw shows the bar with details by weight: those at the end go where the terminal is narrow. The bar's end stays one
// row ahead while the run goes on, as a full bar never moves again.
func (p *Progress) draw(t Tick, eta string, done int) {
	var details []string
	add := func(shown bool, format string, value any) {
		if shown {
			details = append(details, fmt.Sprintf(format, value))
		}
	}
	add(t.Paused != "", "paused: %s", EscapeLine(t.Paused))
	add(t.InDoubt > 0, "%s in doubt", humanize.Comma(int64(t.InDoubt)))
	add(t.Attention > 0, "%s need attention", humanize.Comma(int64(t.Attention)))
	add(eta != "", "%s left", eta)
	add(true, "%.0f rows/s", p.perSecond)
	total := max(p.options.Total, done+1)
	room := p.options.Width() - len(fmt.Sprintf("100%% [%*s] (%d/%d) ", barWidth, "", done, total))
	for utf8.RuneCountInString(strings.Join(details, ", ")) >= room && len(details) > 1 {
		details = details[:len(details)-1]
	}
	p.bar.Describe(strings.Join(details, ", "))
	if p.options.Total > 0 {
		p.bar.ChangeMax(total)
	}
	_ = p.bar.Set(done)
}

func (p *Progress) log(t Tick, eta string) {
	fields := []any{
		"read", t.Read, "sent", t.Sent, "known", t.Known, "attention", t.Attention,
		"in_doubt", t.InDoubt, "in_flight", t.InFlight, "rows_per_s", int(p.perSecond + 0.5),
	}
	if eta != "" {
		fields = append(fields, "left", eta)
	}
	if t.Paused != "" {
		fields = append(fields, "paused", Escape(t.Paused))
	}
	p.options.Log.Info("progress", fields...)
}
