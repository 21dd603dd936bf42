package report

import (
	"fmt"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"

	"leadferry/internal/spelling"
)

// RowCounts are the rows of a run by outcome; Read is the sum.
type RowCounts struct {
	Read      int `json:"read"`
	Created   int `json:"created"`
	Updated   int `json:"updated"`
	Unchanged int `json:"unchanged"`
	Changed   int `json:"changed"`
	Skipped   int `json:"skipped"`
	Invalid   int `json:"invalid"`
	Rejected  int `json:"rejected"`
	Failed    int `json:"failed"`
	Partial   int `json:"partial"`
	InDoubt   int `json:"in_doubt"`
	Unmatched int `json:"unmatched"`
	Conflict  int `json:"conflict"`
	Pending   int `json:"pending"`
}

// outcomes lists all counts in the order of the README. Pending rows need no attention: the next run sends them.
func (c RowCounts) outcomes() []Line {
	return []Line{
		{c.Created, "created", "the lead exists, with all that was asked for", "", false},
		{c.Updated, "updated", "changed fields were sent and confirmed", "", false},
		{c.Unchanged, "unchanged", "the lead exists, there was nothing to send", "", false},
		{c.Changed, "changed", "the row, or what the mapping makes of it, has changed; nothing was sent", "", true},
		{c.Skipped, "skipped", "left out on purpose", "", false},
		{c.Invalid, "invalid", "fails a check, was not sent", "", true},
		{c.Rejected, "rejected", "the service refused it; sent again once its data change", "", true},
		{c.Failed, "failed", "did not get through, will be sent again", "", true},
		{c.Partial, "partial", "created, its ExternalID is not linked yet", "", true},
		{c.InDoubt, "in_doubt", "nobody can tell if a lead was made", "", true},
		{c.Unmatched, "unmatched", "no lead is known for the row", "", true},
		{c.Conflict, "conflict", "held for a person to decide, nothing was sent", "", true},
		{c.Pending, "pending", "was not sent before the run stopped", "", false},
	}
}

// Outcomes lists all counts of the run's rows, including zeros, in a fixed order. For a reconciliation, the verdicts say
// what they mean.
func (s *Summary) Outcomes() []Line {
	all := s.Rows.outcomes()
	if s.DryRun {
		all[len(all)-1].Text = "good"
		if s.Checks != nil && s.Checks.sends() {
			all[len(all)-1].Text = "good, would be sent"
		}
	}
	if s.Reconciliation != nil {
		each(all, func(o *Line) { o.Text = "" })
	}
	return all
}

// Attention returns how many rows need attention. Pending rows do, unless nothing was to be sent.
func (s *Summary) Attention() (n int) {
	for _, o := range s.Rows.outcomes() {
		if o.Attention || o.Name == "pending" && !s.DryRun {
			n += o.Count
		}
	}
	return n
}

// Ended returns how many rows have an outcome: at the end of the run, all that were read.
func (c RowCounts) Ended() int {
	return sum(c.outcomes(), func(o Line) int { return o.Count })
}

// ByName returns the counts by their JSON names, including read and zeros.
func (c RowCounts) ByName() map[string]int {
	m := map[string]int{"read": c.Read}
	for _, o := range c.outcomes() {
		m[o.Name] = o.Count
	}
	return m
}

// Attentions counts the rows that need attention. New did not in the run before, or for another reason.
type Attentions struct {
	Rows  int       `json:"rows"`
	New   int       `json:"new"`
	Since time.Time `json:"since,omitzero"` // when that run began; zero: none is known
}

// news says how many of the rows that need attention are new, or returns "" if no earlier run is known.
func (s *Summary) news() string {
	if s.Asks == nil || s.Asks.Since.IsZero() {
		return ""
	}
	return fmt.Sprintf(", %s of them new since %s", humanize.Comma(int64(s.Asks.New)),
		s.Asks.Since.UTC().Format("2 Jan 15:04Z"))
}

// InService counts the rows that have a lead in the service when the run ends. Skipped rows do not count.
type InService struct {
	Rows    int `json:"rows"`
	InDoubt int `json:"in_doubt"` // nobody can tell
	None    int `json:"none"`
	Of      int `json:"of"` // the sum
}

// inService says how many rows have a lead, or returns "" if no row should have one.
func (s *Summary) inService() string {
	n := s.InService
	if n == nil || n.Of == 0 {
		return ""
	}
	var parts spelling.Texts
	so := ""
	if s.halted() { // it may not have read all rows
		so = " read so far"
	}
	parts.Add(true, "In the service: %s of %s%s", humanize.Comma(int64(n.Rows)), english.Plural(n.Of, "row", ""), so)
	parts.Add(n.InDoubt > 0, "%s in doubt", humanize.Comma(int64(n.InDoubt)))
	parts.Add(n.None > 0, "%s without a lead", humanize.Comma(int64(n.None)))
	return strings.Join(parts, ", ")
}

// Reconciliation is the result of a reconciliation in figures. Absent leads have no row.
type Reconciliation struct {
	Verdicts []VerdictCount `json:"verdicts"`
	Sample   *Sample        `json:"sample,omitempty"`
	Rewrites bool           `json:"rewrites,omitzero"` // leads were read by updating their ExternalID
}

// VerdictCount is how many rows, or absent leads, have a verdict.
type VerdictCount struct {
	Verdict string `json:"verdict"`
	Leads   int    `json:"leads"`
}

// Sample is the result for a random sample of the leads. Share is the part, 0 to 1, that differs of the leads that were
// read, in this run or as recently as --fresh allows. Low and High are its 95 % interval (Wilson).
type Sample struct {
	Picked int     `json:"picked"`
	Read   int     `json:"read"`
	Differ int     `json:"differ"`
	Share  float64 `json:"share"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
}

var verdictMeanings = map[string]string{
	"same": "file and service agree", "file_ahead": "the file has changed: a sync sends it",
	"service_ahead": "the service has changed",
	"both_changed":  "both have changed", "unread": "the lead was not read",
	"unmatched": "no lead is known for the row",
	"absent":    "known leads that no row names", "in_doubt": "nobody can tell if a lead was made",
}
