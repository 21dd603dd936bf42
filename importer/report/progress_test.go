package report

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"
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

func TestTheBarShowsWhatIsLeftToSend(t *testing.T) {
	run := func(step Tick, last Tick) func(*Progress) {
		return func(p *Progress) {
			for i := range 10 {
				p.Update(Tick{Read: step.Read * i, Sent: step.Sent * i, Known: step.Known})
				time.Sleep(time.Second)
			}
			p.Update(last)
		}
	}
	tests := []struct {
		name    string
		options ProgressOptions
		act     func(*Progress)
		want    string
	}{
		{"from the start", ProgressOptions{Total: 1000}, run(Tick{Sent: 40}, Tick{Sent: 400, InFlight: 8}), "40% [===>......] (400/1000) 15s left, 40 rows/s"},
		{"known rows are not left", ProgressOptions{Total: 1000}, run(Tick{Sent: 10, Known: 800}, Tick{Sent: 100, Known: 800, Attention: 3, InDoubt: 1}), "90% [========>.] (900/1000) 1 in doubt, 3 need attention, 10s left, 10 rows/s"},
		{"all known", ProgressOptions{Total: 1000}, run(Tick{Known: 1000}, Tick{Known: 1000}), "99% [========>.] (1000/1001) 0 rows/s"},
		{"more rows than were counted", ProgressOptions{Total: 10}, run(Tick{Sent: 40}, Tick{Sent: 400}), "99% [========>.] (400/401) 0s left, 40 rows/s"},
		{"a pause", ProgressOptions{Total: 1000}, run(Tick{Sent: 40}, Tick{Sent: 400, Paused: "the service\x1b[2J is away"}), `40% [===>......] (400/1000) paused: the service\x1b[2J is away, 40 rows/s`},
		{"nothing is sent", ProgressOptions{Total: 1000, DryRun: true}, run(Tick{Read: 40}, Tick{Read: 400}), "40% [===>......] (400/1000) 15s left, 40 rows/s"},
		{"no total", ProgressOptions{}, run(Tick{Sent: 40}, Tick{Sent: 400, Attention: 2000}), `(400) 2,000 need attention, 40 rows/s`},
		{"a narrow terminal", ProgressOptions{Total: 1000, Width: func() int { return 40 }}, run(Tick{Sent: 40}, Tick{Sent: 400}), "40% [===>......] (400/1000) 15s left, …"},
		{"nothing moves", ProgressOptions{Total: 1000}, run(Tick{}, Tick{}), "0% [..........] (0/1000) 0 rows/s"},
		{"stopped", ProgressOptions{Total: 1000}, func(p *Progress) { p.Update(Tick{Sent: 40}); p.Stop() }, ""},
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
			same(t, tt.want, got, "the terminal shows", tt.name)
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
		p.Update(Tick{Sent: 12345 + i, Attention: 999, InDoubt: 99, Paused: strings.Repeat("é", 30)})
		for part := range strings.SplitSeq(out.String(), "\r") {
			if n := utf8.RuneCountInString(part); n >= width {
				t.Errorf("%d characters at width %d: %q", n, width, part)
			}
		}
	}
}

func TestLogLinesStandAboveTheBar(t *testing.T) {
	var out strings.Builder
	p := NewProgress(ProgressOptions{Out: &out, Terminal: true, Width: wide, Total: 10})
	p.Update(Tick{Sent: 1})
	bar := screen(out.String())
	if _, err := fmt.Fprint(p, "a warning\n"); err != nil {
		t.Fatal(err)
	}
	before, _, _ := strings.Cut(out.String(), "\n")
	same(t, "a warning", screen(before), "the log line is shown as")
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
			p.Update(Tick{Read: 8 * i, Sent: 4 * i, Known: 400, InFlight: 8})
			time.Sleep(200 * time.Millisecond)
		}
		time.Sleep(5 * time.Second)
		p.Update(Tick{Read: 1000, Sent: 500, Known: 400, Attention: 2, InDoubt: 1, Paused: "a\nb"})
		p.Stop()
		want := `level=INFO msg=progress read=400 sent=200 known=400 attention=0 in_doubt=0 in_flight=8 rows_per_s=20 left=20s
level=INFO msg=progress read=800 sent=400 known=400 attention=0 in_doubt=0 in_flight=8 rows_per_s=20 left=10s
level=INFO msg=progress read=1000 sent=500 known=400 attention=2 in_doubt=1 in_flight=0 rows_per_s=17 paused=a\nb
`
		same(t, want, log.String())
		same(t, "", out.String(), "written besides")
	})
}
