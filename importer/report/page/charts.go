package page

import (
	"fmt"
	"math"
	"strconv"

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

// timeline is a run over time: how fast rows were settled, drawn in the widths of a bucket by plotHeight, and, in the
// table, requests and how long answers took.
type timeline struct {
	Sends    bool   // lead requests
	Took     string // the whole run
	Most     string // rows a second, the top of the drawing
	Area     string // "": the run was too short to draw
	Troubles string // marks below: requests were tried again, or waited
	Buckets  []bucket
}

// bucket is one line of the table.
type bucket struct {
	At, RowRate, RequestRate string
	report.Bucket
}

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
	rates, most := make([]float64, len(list)), 0.0
	for i, b := range list {
		covered := width
		if i == len(list)-1 {
			covered = last
		}
		rates[i] = float64(max(b.Rows, 0)) / covered
		most = max(most, rates[i])
		t.Sends = t.Sends || b.Requests > 0
		requests := rate(float64(b.Requests) / covered)
		t.Buckets = append(t.Buckets, bucket{report.Duration(float64(i) * width), rate(rates[i]), requests, b})
	}
	if whole < shortest || len(list) < fewest || s.Reconciliation != nil { // which is about leads, not about how fast
		return t
	}
	t.Most, t.Area = rate(most), fmt.Sprintf("M0 %d", plotHeight)
	for i, r := range rates {
		t.Area += "V" + rounded(plotHeight*(1-r/max(most, 1e-9))) + "h1"
		if list[i].Retries > 0 || list[i].Paused > 0 {
			t.Troubles += fmt.Sprintf("M%d %dv7h1v-7z", i, plotHeight+1)
		}
	}
	t.Area += fmt.Sprintf("V%dz", plotHeight)
	return t
}

// rate is how many a second; digits behind the point matter where there are few.
func rate(v float64) string {
	if v >= 10 {
		return comma(int(min(math.Round(v), 1e15)))
	}
	return rounded(v)
}

// rounded is one with two digits behind the point, which is less than anybody sees.
func rounded(f float64) string { return strconv.FormatFloat(math.Round(100*f)/100, 'f', -1, 64) }
