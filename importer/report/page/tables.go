package page

import (
	"fmt"
	"slices"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"

	"leadferry/importer/report"
)

// table is a list of what a run has to tell, with a bar beside each count.
type table struct {
	report.Section
	Most, More int // the largest count; lines that are not shown
}

func (c *content) Tables() (all []table) {
	for _, of := range append(c.Sections(), c.overTime()) {
		if of.Private || len(of.Lines) == 0 {
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
func width(count, most int) string {
	return fmt.Sprintf("%.1f", max(100*float64(count)/float64(most), 0.7))
}

// A shorter run, or one with fewer buckets, gets no table of its time.
const (
	shortest    = 5 // seconds
	fewest      = 10
	mostStrokes = 24 // of the time that are told apart
)

// overTime tells how many rows were settled when, which requests that took, and how they fared.
func (c *content) overTime() report.Section {
	of := report.Section{ID: "time", Title: "Over time"}
	buckets := clip(c.Timeline, report.MostBuckets).Items
	if len(buckets) < fewest || c.DurationS < shortest {
		return of
	}
	for part := range slices.Chunk(buckets, (len(buckets)+mostStrokes-1)/mostStrokes) {
		var all report.Bucket
		for _, b := range part {
			all.Rows, all.Requests, all.Retries = all.Rows+b.Rows, all.Requests+b.Requests, all.Retries+b.Retries
			all.P95, all.Paused = max(all.P95, b.P95), all.Paused+b.Paused
		}
		line := report.Line{Count: all.Rows, Name: report.Duration(part[0].Time.Sub(c.StartedAt).Seconds())}
		if all.Requests > 0 {
			line.Text = english.Plural(all.Requests, "request", "") + ", p95 " + milliseconds(all.P95)
		}
		if all.Retries > 0 {
			line.Text += ", " + english.Plural(all.Retries, "retry", "retries")
		}
		if all.Paused > 0 {
			line.Where = "waited " + report.Duration(all.Paused)
		}
		of.Lines = append(of.Lines, line)
	}
	return of
}

// rate is how many a second.
func rate(v float64) string { return humanize.CommafWithDigits(v, 1) }
