package report

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"leadferry/internal/testsupport/must"
)

// screen is what a terminal of one line shows after all that was written to it.
func screen(written string) string {
	var line []rune
	at := 0
	for _, r := range written {
		switch r {
		case '\r':
			at = 0
		case '\n':
			line, at = nil, 0
		default:
			line = append(line[:at], append([]rune{r}, line[min(at+1, len(line)):]...)...)
			at++
		}
	}
	return strings.TrimRight(string(line), " ")
}

func wide() int { return 80 }

// tick is how far a run is.
type tick struct {
	Read, Sent, Known, Rejected, InDoubt, InFlight int
	Paused                                         string
	DryRun                                         bool
}

func (t tick) summary() *Summary {
	rows := RowCounts{Read: t.Read, Created: t.Sent - t.Rejected - t.InDoubt, Skipped: t.Known, Rejected: t.Rejected, InDoubt: t.InDoubt}
	return &Summary{Rows: rows, Sent: t.Sent, InFlight: t.InFlight, Paused: t.Paused, DryRun: t.DryRun}
}

func TestTheBarShowsWhatIsLeftToSend(t *testing.T) {
	run := func(step tick, last tick) func(*Progress) {
		return func(p *Progress) {
			for i := range 10 {
				p.Update(tick{Read: step.Read * i, Sent: step.Sent * i, Known: step.Known, DryRun: step.DryRun}.summary())
				time.Sleep(time.Second)
			}
			p.Update(last.summary())
		}
	}
	tests := []struct {
		name    string
		options ProgressOptions
		act     func(*Progress)
		want    string
	}{
		{"from the start", ProgressOptions{Total: 1000}, run(tick{Sent: 40}, tick{Sent: 400, InFlight: 8}), "40% [===>......] (400/1000) 15s left, 40 rows/s"},
		{"known rows are not left", ProgressOptions{Total: 1000}, run(tick{Sent: 10, Known: 800}, tick{Sent: 100, Known: 800, Rejected: 2, InDoubt: 1}), "90% [========>.] (900/1000) 1 in doubt, 3 need attention, 10s left, 10 rows/s"},
		{"all known", ProgressOptions{Total: 1000}, run(tick{Known: 1000}, tick{Known: 1000}), "99% [========>.] (1000/1001) 0 rows/s"},
		{"more rows than were counted", ProgressOptions{Total: 10}, run(tick{Sent: 40}, tick{Sent: 400}), "99% [========>.] (400/401) 0s left, 40 rows/s"},
		{"a pause", ProgressOptions{Total: 1000}, run(tick{Sent: 40}, tick{Sent: 400, Paused: "the service\x1b[2J is away"}), `40% [===>......] (400/1000) paused: the service\x1b[2J is away, 40 rows/s`},
		{"nothing is sent", ProgressOptions{Total: 1000}, run(tick{Read: 40, DryRun: true}, tick{Read: 400, DryRun: true}), "40% [===>......] (400/1000) 15s left, 40 rows/s"},
		{"no total", ProgressOptions{}, run(tick{Sent: 400}, tick{Sent: 4000, Rejected: 2000}), `(4000) 2,000 need attention, 400 rows/s`},
		{"a narrow terminal", ProgressOptions{Total: 1000, Width: func() int { return 40 }}, run(tick{Sent: 40}, tick{Sent: 400}), "40% [===>......] (400/1000) 15s left, …"},
		{"nothing moves", ProgressOptions{Total: 1000}, run(tick{}, tick{}), "0% [..........] (0/1000) 0 rows/s"},
		{"stopped", ProgressOptions{Total: 1000}, func(p *Progress) { p.Update(tick{Sent: 40}.summary()); p.Stop() }, ""},
	}
	for _, tt := range tests {
		synctest.Test(t, func(t *testing.T) {
			var out strings.Builder
			tt.options.Out, tt.options.Terminal = &out, true
			if tt.options.Width == nil {
				tt.options.Width = wide
			}
			tt.act(NewProgress(tt.options))
			got := screen(out.String())
			if tt.options.Total == 0 && tt.want != "" {
				got = got[strings.IndexByte(got, '('):]
			}
			must.Same(t, tt.want, got, "the terminal shows", tt.name)
			if strings.ContainsAny(out.String(), "\x1b\n") {
				t.Errorf("%v: raw escapes or line ends in %q", tt.name, out.String())
			}
		})
	}
}

func TestTheBarNeverOutgrowsTheTerminal(t *testing.T) {
	width := 0
	var out strings.Builder
	p := NewProgress(ProgressOptions{Out: &out, Terminal: true, Width: func() int { return width }, Total: 99999})
	for i, now := range []int{100, 45, 20, 60, 2} { // a window that is made narrower and wider
		out.Reset()
		width = now
		p.Update(tick{Sent: 12345 + i, Rejected: 900, InDoubt: 99, Paused: strings.Repeat("é", 30)}.summary())
		for part := range strings.SplitSeq(out.String(), "\r") {
			if n := utf8.RuneCountInString(part); n >= width {
				t.Errorf("%d characters at width %d: %q", n, width, part)
			}
		}
	}
}

func TestLogLinesAppearAboveTheBar(t *testing.T) {
	var out strings.Builder
	p := NewProgress(ProgressOptions{Out: &out, Terminal: true, Width: wide, Total: 10})
	p.Update(tick{Sent: 1}.summary())
	bar := screen(out.String())
	if _, err := fmt.Fprint(p, "a warning\n"); err != nil {
		t.Fatal(err)
	}
	before, _, _ := strings.Cut(out.String(), "\n")
	must.Same(t, "a warning", screen(before), "the log line is shown as")
	if got := screen(out.String()); got != bar || bar == "" {
		t.Errorf("the bar is %q, was %q", got, bar)
	}
}

func TestWithoutATerminalProgressIsALogLineEachTenSeconds(t *testing.T) { // faults 118
	synctest.Test(t, func(t *testing.T) {
		var out, log strings.Builder
		noTime := func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey || a.Value.Equal(slog.StringValue("")) {
				return slog.Attr{}
			}
			return a
		}
		p := NewProgress(ProgressOptions{
			Out: &out, Width: wide, Total: 1000,
			Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{ReplaceAttr: noTime})),
		})
		for i := range 5 * 25 { // 25 s
			p.Update(tick{Read: 8 * i, Sent: 4 * i, Known: 400, InFlight: 8}.summary())
			time.Sleep(200 * time.Millisecond)
		}
		time.Sleep(5 * time.Second)
		p.Update(tick{Read: 1000, Sent: 500, Known: 400, Rejected: 1, InDoubt: 1, Paused: "a\nb"}.summary())
		p.Stop()
		want := `level=INFO msg=progress read=400 sent=200 known=400 attention=0 in_doubt=0 in_flight=8 rows_per_s=20 left=20s
level=INFO msg=progress read=800 sent=400 known=400 attention=0 in_doubt=0 in_flight=8 rows_per_s=20 left=10s
level=INFO msg=progress read=1000 sent=500 known=400 attention=2 in_doubt=1 in_flight=0 rows_per_s=17 paused=a\nb
`
		must.Same(t, want, log.String())
		must.Same(t, "", out.String(), "written besides")
	})
}
