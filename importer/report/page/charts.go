package page

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize/english"

	"leadferry/importer/report"
)

// bars are a table of counts, with a bar beside each.
type bars struct {
	Title, What, Unit string
	List              []bar
}

type bar struct {
	Name, Note string
	Count      int
	Attention  bool
	Share      string // of all of them
	Width      string // percent of the longest; "": several together, which are not compared
}

func newBars(title, what, unit string, list []bar) *bars {
	if len(list) == 0 {
		return nil
	}
	all, most := 0, 1
	for _, b := range list {
		all += b.Count
		most = max(most, b.Count)
	}
	for i := range list {
		b := &list[i]
		b.Share = percent(b.Count, all)
		if i < mostOrganizations {
			b.Width = rounded(max(100*float64(b.Count)/float64(most), 0.7)) // one row of a million may be the one that matters
		}
	}
	return &bars{title, what, unit, list}
}

// barsOf gives each item a bar, and puts those together that are more than a page shows.
func barsOf[T any](all []T, barOf func(T) bar) (list []bar) {
	for i, item := range all {
		switch b := barOf(item); {
		case i < mostOrganizations:
			list = append(list, b)
		case i == mostOrganizations:
			n := len(all) - i
			list = append(list, bar{Name: comma(n) + english.PluralWord(n, " other", " others"), Count: b.Count})
		default:
			list[mostOrganizations].Count += b.Count
		}
	}
	return list
}

func (c *content) Outcomes() *bars {
	var list []bar
	for _, o := range c.Summary.Outcomes() {
		if o.Rows > 0 {
			list = append(list, bar{Name: spoken(o.Name), Note: o.Meaning, Count: o.Rows, Attention: o.Attention})
		}
	}
	return newBars("What became of the rows", "Outcome", "Rows", list)
}

func (c *content) Organizations() *bars {
	return newBars("Leads per organization", "Organization", "Leads", barsOf(c.Summary.Organizations, func(o report.Organization) bar {
		return bar{Name: path(o.ID), Note: path(o.Location), Count: o.Leads}
	}))
}

// Assigned shows to whom a check expects leads to go.
func (c *content) Assigned() *bars {
	return newBars("Rows by whom they would be assigned to", "Assigned", "Rows", barsOf(c.Checks.Assignments, func(a report.Assignment) bar {
		return bar{Name: report.Escape(a.Whom()), Count: a.Rows}
	}))
}

func (c *content) Verdicts() *bars {
	if c.Reconciliation == nil {
		return nil
	}
	var list []bar
	for _, v := range clip(c.Reconciliation.Verdicts, mostOrganizations).Items {
		if v.Leads > 0 {
			list = append(list, bar{Name: spoken(report.Escape(v.Verdict)), Note: v.Meaning(), Count: v.Leads})
		}
	}
	return newBars("File beside service", "Verdict", "Leads", list)
}

func (c *content) Moves() *bars {
	return movesOf("Changes of status that the service confirmed", "not known", c.Transitions)
}

func (c *content) Statuses() *bars {
	return movesOf("Status in the file and on the service", "none", c.Reconciliation.Statuses)
}

func (c *content) Owners() *bars {
	return movesOf("Leads that belong to another organization now", "none", c.Reconciliation.Owners)
}

// movesOf shows how many leads have one thing here and another there; none is what an empty one means.
func movesOf(title, none string, moves []report.Transition) *bars {
	named := func(word string) string { return cmp.Or(path(word), none) }
	return newBars(title, "From, to", "Leads", barsOf(moves, func(t report.Transition) bar {
		return bar{Name: named(t.From) + " → " + named(t.To), Count: t.Leads}
	}))
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
	return plot{id, title, "At most " + label(most) + ".", label(top), label(top / 2), len(values[0]), lines}
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
