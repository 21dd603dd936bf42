package page

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"leadferry/importer/report"
)

// table is a list of what a run has to tell, with a bar beside each count.
type table struct {
	report.Section
	Most, More int // the largest count; lines that are not shown
}

func (c *content) Tables() (all []table) {
	for _, of := range c.Sections() {
		if of.Private {
			continue
		}
		t := table{Section: of}
		for _, l := range of.Lines {
			t.Most = max(t.Most, l.Count)
		}
		shown := clip(of.Lines, mostListed)
		t.Lines, t.More = shown.Items, shown.More
		all = append(all, t)
	}
	return all
}

// width is that of a bar, in percent of the longest one. One row of a million may be the one that matters.
func width(count, most int) string { return rounded(max(100*float64(count)/float64(most), 0.7)) }

// timeline is a run over time: how fast rows and requests were settled, and how long answers took.
type timeline struct {
	Sends   bool // lead requests
	Took    string
	Plots   []plot // none: the run was too short to draw
	Buckets []bucket
}

// bucket is one line of the table.
type bucket struct {
	At, RowRate, RequestRate string
	report.Bucket
}

// plot has some lines on a scale from 0 to a round number. Its drawing is Units wide, which is the time that the run
// took in widths of a bucket, and is stretched to the width of the page.
type plot struct {
	ID, Title, Desc string
	Top, Middle     string
	Units           string
	Ticks           []tick
	Lines           []line
	Troubles        string // marks below: requests were tried again, or waited
}

// tick is a time below a drawing, at so many percent of its width.
type tick struct{ At, Name string }

type line struct{ Series, Name, Dashes, Path string }

// plotHeight is in pixels; run.html has it too.
const plotHeight = 150

// A shorter run, or one with fewer buckets, gets a line of text.
const (
	shortest = 5 // seconds
	fewest   = 10
)

func timelineOf(s *report.Summary) *timeline {
	list := clip(s.Timeline, report.MostBuckets).Items
	if len(list) == 0 {
		return nil
	}
	width := s.DurationS
	if len(list) > 1 {
		width = list[1].Time.Sub(list[0].Time).Seconds()
	}
	width = min(max(width, 0.001), 1e10)
	// The run took a part of the last bucket only; a sliver of it would show a rate that never was.
	last := min(max(s.FinishedAt.Sub(list[len(list)-1].Time).Seconds(), width/4), width)
	whole := float64(len(list)-1)*width + last
	t := &timeline{Took: report.Duration(whole)}
	var rows, requests, p50, p95, p99 []float64
	var troubles strings.Builder
	for i, b := range list {
		covered := width
		if i == len(list)-1 {
			covered = last
		}
		r, q := float64(b.Rows)/covered, float64(b.Requests)/covered
		rows, requests = append(rows, r), append(requests, q)
		if b.Requests <= 0 {
			b.P50, b.P95, b.P99 = -1, -1, -1
		}
		if b.Retries > 0 || b.Paused > 0 {
			fmt.Fprintf(&troubles, "M%d %dv7h%sv-7z", i, plotHeight+1, rounded(covered/width))
		}
		p50, p95, p99 = append(p50, b.P50), append(p95, b.P95), append(p99, b.P99)
		t.Sends = t.Sends || b.Requests > 0
		t.Buckets = append(t.Buckets, bucket{report.Duration(float64(i) * width), rate(r), rate(q), b})
	}
	if whole < shortest || len(list) < fewest || s.Reconciliation != nil { // which is about leads, not about how fast
		return t
	}
	draw := func(id, title string, label func(float64) string, lines []line, values ...[]float64) {
		p := newPlot(id, title, label, lines, last/width, values...)
		p.Ticks = ticks(whole)
		t.Plots = append(t.Plots, p)
	}
	lines := []line{{"s0", "rows", "", ""}, {"s1", "requests", "5 4", ""}}
	if !t.Sends {
		draw("rate", "Rows settled a second", rate, lines[:1], rows)
		return t
	}
	draw("rate", "Rows and requests settled a second", rate, lines, rows, requests)
	draw("latency", "How long answers took: half of them, 95 %, 99 %", milliseconds,
		[]line{{"s0", "p50", "", ""}, {"s2", "p95", "7 4", ""}, {"s1", "p99", "1.5 3.5", ""}}, p50, p95, p99)
	t.Plots[0].Troubles = troubles.String()
	return t
}

// ticks are at round times of so many seconds: 1, 2 or 5 with zeros, or parts of minutes and hours.
func ticks(whole float64) (all []tick) {
	step := nice(whole / 6)
	for _, s := range []float64{30, 60, 120, 300, 600, 1800, 3600, 7200, 6 * 3600, 24 * 3600} {
		if step > 20 && whole/s <= 8 {
			step = s
			break
		}
	}
	for at := step; at < 0.97*whole && len(all) < 20; at += step {
		all = append(all, tick{rounded(100 * at / whole), report.Duration(at)})
	}
	return all
}

// newPlot draws values, a list a line, each in the middle of its bucket, of which the last has so much of a whole one.
// A value below 0 is none.
func newPlot(id, title string, label func(float64) string, lines []line, last float64, values ...[]float64) plot {
	most := 0.0
	for _, list := range values {
		for _, v := range list {
			most = max(most, v)
		}
	}
	top := nice(most)
	for i, list := range values {
		var b strings.Builder
		for at, v := range list {
			middle := float64(at) + 0.5
			if at == len(list)-1 {
				middle = float64(at) + last/2
			}
			y := rounded(plotHeight * (1 - v/top))
			switch {
			case v < 0:
			case b.Len() == 0: // it may be alone
				fmt.Fprintf(&b, "M%d %sH%s", at, y, rounded(middle))
			default:
				fmt.Fprintf(&b, "L%s %s", rounded(middle), y)
			}
		}
		lines[i].Path = b.String()
	}
	return plot{
		ID: id, Title: title, Desc: "At most " + label(most) + ".", Top: label(top), Middle: label(top / 2),
		Lines: lines,
		Units: rounded(float64(len(values[0])-1) + last),
	}
}

// nice is the next 1, 2 or 5 with zeros.
func nice(v float64) float64 {
	if !(v > 0) || math.IsInf(v, 0) {
		return 1
	}
	unit := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 5} {
		if m*unit >= v {
			return m * unit
		}
	}
	return 10 * unit
}

func rate(v float64) string {
	if v >= 10 {
		return comma(int(min(math.Round(v), 1e15)))
	}
	if v > 0 && v < 0.1 {
		return strconv.FormatFloat(v, 'g', 1, 64)
	}
	return rounded(v)
}

// rounded is one with two digits behind the point, which is less than anybody sees.
func rounded(f float64) string { return strconv.FormatFloat(math.Round(100*f)/100, 'f', -1, 64) }
