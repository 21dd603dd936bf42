package page

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"leadferry/importer/report"
)

// table is a list of what a run has to tell, with a bar beside each count.
type table struct {
	ID, Title string
	Lines     []row
	More      int // that are not shown
}

type row struct {
	report.Line
	Width string // percent of the longest bar; "": nothing is counted
}

func (c *content) Tables() (all []table) {
	for _, of := range c.Sections() {
		if of.Private {
			continue
		}
		most := 0
		for _, l := range of.Lines {
			most = max(most, l.Count)
		}
		shown := clip(of.Lines, mostListed)
		t := table{ID: of.ID, Title: of.Title, More: shown.More}
		for _, l := range shown.Items {
			r := row{Line: l}
			if most > 0 { // one row of a million may be the one that matters
				r.Width = rounded(max(100*float64(l.Count)/float64(most), 0.7))
			}
			t.Lines = append(t.Lines, r)
		}
		all = append(all, t)
	}
	return all
}

// timeline is a run over time: how fast rows and requests went, and how long answers took. A drawing is as many units wide
// as there are buckets and is stretched to the width of the page.
type timeline struct {
	Sends   bool // lead requests
	Took    string
	Plots   []plot
	Buckets []bucket
}

// bucket is one line of the table.
type bucket struct {
	At, RowRate, RequestRate string
	report.Bucket
}

// plot has some lines on a scale from 0 to a round number.
type plot struct {
	ID, Title, Desc string
	Top, Middle     string
	Units           int
	Lines           []line
	Troubles        string // marks below: requests were tried again, or waited
}

type line struct{ Series, Name, Dashes, Path string }

// plotHeight is in pixels; run.html has it too.
const plotHeight = 150

func timelineOf(s *report.Summary) *timeline {
	list := clip(s.Timeline, report.MostBuckets).Items
	if len(list) == 0 {
		return nil
	}
	width := time.Duration(s.DurationS * float64(time.Second))
	if len(list) > 1 {
		width = list[1].Time.Sub(list[0].Time)
	}
	width = min(max(width, time.Millisecond), 100*365*24*time.Hour)
	// The run took a part of the last bucket only; a sliver of it would show a rate that never was.
	last := min(max(s.FinishedAt.Sub(list[len(list)-1].Time), width/4), width)
	t := &timeline{Took: since(time.Duration(len(list)-1)*width + last)}
	var rows, requests, p50, p95, p99 []float64
	var troubles strings.Builder
	for i, b := range list {
		covered := width.Seconds()
		if i == len(list)-1 {
			covered = last.Seconds()
		}
		r, q := float64(b.Rows)/covered, float64(b.Requests)/covered
		rows, requests = append(rows, r), append(requests, q)
		if b.Requests <= 0 {
			b.P50, b.P95, b.P99 = -1, -1, -1
		}
		if b.Retries > 0 || b.Paused > 0 {
			fmt.Fprintf(&troubles, "M%d %dv7h1v-7z", i, plotHeight+1)
		}
		p50, p95, p99 = append(p50, b.P50), append(p95, b.P95), append(p99, b.P99)
		t.Sends = t.Sends || b.Requests > 0
		t.Buckets = append(t.Buckets, bucket{since(time.Duration(i) * width), rate(r), rate(q), b})
	}
	lines := []line{{"s0", "rows", "", ""}, {"s1", "requests", "5 4", ""}}
	if !t.Sends {
		t.Plots = []plot{newPlot("rate", "Rows a second", rate, lines[:1], rows)}
		return t
	}
	t.Plots = []plot{
		newPlot("rate", "Rows and requests a second", rate, lines, rows, requests),
		newPlot("latency", "How long answers took: half of them, 95 %, 99 %", milliseconds,
			[]line{{"s0", "p50", "", ""}, {"s4", "p95", "7 4", ""}, {"s1", "p99", "1.5 3.5", ""}}, p50, p95, p99),
	}
	t.Plots[0].Troubles = troubles.String()
	return t
}

// newPlot draws values, a list a line. A value below 0 is none.
func newPlot(id, title string, label func(float64) string, lines []line, values ...[]float64) plot {
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
			y := rounded(plotHeight * (1 - v/top))
			switch {
			case v < 0:
			case b.Len() == 0: // it may stand alone
				fmt.Fprintf(&b, "M%d %sH%d.5", at, y, at)
			default:
				fmt.Fprintf(&b, "L%d.5 %s", at, y)
			}
		}
		lines[i].Path = b.String()
	}
	return plot{
		ID: id, Title: title, Desc: "At most " + label(most) + ".", Top: label(top), Middle: label(top / 2), Units: len(values[0]), Lines: lines,
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

func since(d time.Duration) string {
	if d <= 0 {
		return "0 s"
	}
	return seconds(d.Seconds())
}

func rate(v float64) string {
	if v >= 10 {
		return comma(int(min(math.Round(v), 1e15)))
	}
	return rounded(v)
}

// rounded is one with two digits behind the point, which is less than anybody sees.
func rounded(f float64) string { return strconv.FormatFloat(math.Round(100*f)/100, 'f', -1, 64) }
