package page

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"leadferry/importer/report"
)

// timeline is a run over time: how fast rows and requests went, how long answers took, and
// when requests were tried again or had to wait. A drawing is as many units wide as there are
// buckets and is stretched to the width of the page.
type timeline struct {
	Units                 int
	Rate                  *plot
	Latency               *plot // nil: there were no requests
	Lanes                 []lane
	Ticks                 []tick
	Buckets               []bucket
	Sends                 bool // lead requests
	TotalRetries          int
	TotalPaused           float64
	RateDesc, LatencyDesc string
}

// plot has a scale from its foot to its head and some lines.
type plot struct {
	Units         int // as wide as the timeline
	Height, lanes int // pixels; of the lanes below
	Marks         []mark
	Lines         []line
	Area          string // path below the first line
	Log           bool
}

// linear gives the plot a scale from 0 up to a round number, marked at its head, middle and foot.
func (p *plot) linear(top float64, label func(float64) string) (scale func(float64) float64) {
	top = nice(top)
	p.Marks = []mark{{"0", label(top)}, {rounded(plotHeight / 2), label(top / 2)}, {rounded(plotHeight), ""}}
	return func(v float64) float64 { return plotHeight * (1 - v/top) }
}

// TickY is where the times stand below the plot and its lanes.
func (p *plot) TickY() int { return plotFrom + p.Height + p.lanes + tickBelow }

// Total is how high the chart is.
func (p *plot) Total() int { return p.TickY() + 6 }

type mark struct{ Y, Label string }

type line struct{ Series, Name, Path, Dashes string }

// lane is a narrow band of marks below the rate.
type lane struct {
	Series, Name, Path string
	Y, Foot, TextY     int
}

type tick struct{ X, Anchor, Label string }

// bucket is one line of the tables.
type bucket struct {
	At, RowRate, RequestRate string
	report.Bucket
	covered float64 // seconds of it that the run took
}

const plotHeight = 150

func timelineOf(s *report.Summary) *timeline {
	list := clip(s.Timeline, report.MostBuckets).Items
	if len(list) == 0 {
		return nil
	}
	width := widthOf(s, list)
	t := &timeline{Units: len(list)}
	var p50, p95, p99, retries, pauses []float64
	for i, b := range list {
		covered := width.Seconds()
		if i == len(list)-1 {
			covered = lastOf(s, b.Time, width).Seconds()
		}
		r, q := float64(b.Rows)/covered, float64(b.Requests)/covered
		p50, p95, p99 = append(p50, b.P50), append(p95, b.P95), append(p99, b.P99)
		retries, pauses = append(retries, float64(b.Retries)), append(pauses, b.Paused)
		t.Sends = t.Sends || b.Requests > 0
		t.TotalRetries += b.Retries
		t.TotalPaused += b.Paused
		t.Buckets = append(t.Buckets, bucket{since(time.Duration(i) * width), rate(r), rate(q), b, covered})
	}
	t.rates()
	if t.Sends {
		t.latencies(p50, p95, p99)
	}
	t.lane("retries: "+comma(t.TotalRetries), "s1", retries)
	t.lane("requests waited: "+seconds(t.TotalPaused), "s7", pauses)
	t.ticks(time.Duration(len(list)-1)*width + lastOf(s, list[len(list)-1].Time, width))
	return t
}

// widthOf is how long each bucket is; of a single one, as long as the run took.
func widthOf(s *report.Summary, list []report.Bucket) time.Duration {
	width := time.Duration(s.DurationS * float64(time.Second))
	if len(list) > 1 {
		width = list[1].Time.Sub(list[0].Time)
	}
	return min(max(width, time.Millisecond), 100*365*24*time.Hour)
}

// lastOf is how much of the last bucket the run took; a sliver of it would show a rate that
// never was.
func lastOf(s *report.Summary, begins time.Time, width time.Duration) time.Duration {
	return min(max(s.FinishedAt.Sub(begins), width/4), width)
}

// coarse is how many buckets one step of the rate stands for: with a few rows in each, it would
// show when each ended, and not how fast they went.
func (t *timeline) coarse() int {
	const fewest, enough = 30, 12
	events, each := 0, 1
	for _, b := range t.Buckets {
		events += b.Rows + b.Requests
	}
	for ; t.Units/each > fewest && events/(t.Units/each) < enough; each *= 2 {
	}
	return each
}

func (t *timeline) rates() {
	var rows, requests []float64
	each := t.coarse()
	for some := range slices.Chunk(t.Buckets, each) {
		r, q, took := 0, 0, 0.0
		for _, b := range some {
			r, q, took = r+b.Rows, q+b.Requests, took+b.covered
		}
		rows, requests = append(rows, float64(r)/took), append(requests, float64(q)/took)
	}
	t.Rate = &plot{Units: t.Units, Height: plotHeight}
	scale := t.Rate.linear(max(peak(rows), peak(requests)), rate)
	t.Rate.Marks[0].Label += " a second"
	t.Rate.Lines = []line{{"s0", "rows", steps(rows, each, t.Units, scale), ""}}
	t.Rate.Area = t.Rate.Lines[0].Path + fmt.Sprintf("V%sH0Z", rounded(scale(0)))
	if t.Sends {
		t.Rate.Lines = append(t.Rate.Lines, line{"s1", "requests", steps(requests, each, t.Units, scale), "5 4"})
	}
	t.RateDesc = fmt.Sprintf("At most %s rows a second%s; retries: %s; requests waited for %s.", rate(peak(rows)), map[bool]string{true: " and " + rate(peak(requests)) + " requests a second"}[t.Sends],
		comma(t.TotalRetries), seconds(t.TotalPaused))
}

// Beyond this ratio of the longest times to the usual ones, the scale is a logarithmic one.
const wideRange = 30

func (t *timeline) latencies(p50, p95, p99 []float64) {
	low, top := math.Inf(1), peak(p99)
	for _, v := range p50 {
		if v > 0 {
			low = min(low, v)
		}
	}
	low = min(low, top) // where nothing was measured
	p := &plot{Units: t.Units, Height: plotHeight, Log: top/low > wideRange}
	scale := p.linear(top, milliseconds)
	if p.Log {
		p.Marks = nil
		foot, head := math.Floor(math.Log10(low)), math.Ceil(math.Log10(top))
		scale = func(v float64) float64 { return plotHeight * (1 - (math.Log10(max(v, low))-foot)/(head-foot)) }
		for at := head; at >= foot; at-- {
			p.Marks = append(p.Marks, mark{rounded(plotHeight * (head - at) / (head - foot)), milliseconds(math.Pow(10, at))})
		}
	}
	p.Lines = []line{{"s1", "p99", gaps(p99, scale), "1.5 3.5"}, {"s4", "p95", gaps(p95, scale), "7 4"}, {"s0", "p50", gaps(p50, scale), ""}}
	t.Latency = p
	t.LatencyDesc = fmt.Sprintf("Half of the answers came within %s at best, 99 %% within %s at worst.", milliseconds(low), milliseconds(top))
}

func (t *timeline) ticks(whole time.Duration) {
	for i, anchor := range []string{"start", "middle", "middle", "middle", "end"} {
		t.Ticks = append(t.Ticks, tick{fmt.Sprint(25 * i), anchor, since(whole * time.Duration(i) / 4)})
	}
}

func since(d time.Duration) string {
	switch {
	case d <= 0:
		return "0 s"
	case d < 10*time.Second:
		return fmt.Sprintf("%.2f s", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%d:%02d min", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%d:%02d h", int(d.Hours()), int(d.Minutes())%60)
}

func rate(v float64) string {
	if v >= 10 {
		return comma(int(min(math.Round(v), 1e15)))
	}
	return rounded(v)
}

func peak(values []float64) (most float64) {
	for _, v := range values {
		most = max(most, v)
	}
	return most
}

// nice is the next 1, 2 or 5 with zeros.
func nice(v float64) float64 {
	if !(v > 0) || math.IsInf(v, 0) {
		return 1
	}
	unit := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 2.5, 5} {
		if m*unit >= v {
			return m * unit
		}
	}
	return 10 * unit
}

// steps draws each value as wide as its buckets, of which there are units in all.
func steps(values []float64, each, units int, scale func(float64) float64) string {
	var b strings.Builder
	last := ""
	for i, v := range values {
		y := rounded(scale(v))
		switch {
		case i == 0:
			fmt.Fprintf(&b, "M0 %s", y)
		case y != last:
			fmt.Fprintf(&b, "H%dV%s", i*each, y)
		}
		last = y
	}
	fmt.Fprintf(&b, "H%d", units)
	return b.String()
}

// gaps draws a line through the middles of the buckets that have a value. It breaks off where
// there is none for some time.
func gaps(values []float64, scale func(float64) float64) string {
	var b strings.Builder
	bridged := 1 + len(values)/25
	last := math.MinInt / 2
	for i, v := range values {
		if v <= 0 {
			continue
		}
		y := rounded(scale(v))
		if i-last <= bridged {
			fmt.Fprintf(&b, "L%d.5 %s", i, y)
		} else { // it may stand alone
			fmt.Fprintf(&b, "M%d %sH%d.5", i, y, i)
		}
		last = i
	}
	return b.String()
}

// Where things stand in a chart, in pixels.
const (
	plotFrom   = 16
	laneHeight = 16
	laneEvery  = 38
	tickBelow  = 18
)

// lane marks the buckets that have a value, the higher the larger.
func (t *timeline) lane(name, series string, values []float64) {
	most := peak(values)
	if most == 0 {
		return
	}
	var b strings.Builder
	for i, v := range values {
		if v > 0 {
			h := rounded(4 + (laneHeight-4)*v/most)
			fmt.Fprintf(&b, "M%d %dv-%sh1v%sz", i, laneHeight, h, h)
		}
	}
	y := plotFrom + plotHeight + t.Rate.lanes + 22
	t.Lanes = append(t.Lanes, lane{series, name, b.String(), y, y + laneHeight, y - 4})
	t.Rate.lanes += laneEvery
}
