package report

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"

	"leadferry/internal/spelling"
)

// Outcome says how a row ended in a run, in the words of the README.
type Outcome uint8

// The outcomes, in the order of the README.
const (
	Created Outcome = iota
	Updated
	Unchanged
	Changed
	Skipped
	Invalid
	Rejected
	Failed
	Partial
	InDoubt
	Unmatched
	Conflict
	Pending
	outcomeCount
)

// outcomes has, for each outcome, its name in files, its meaning, and whether its rows are rejects for a person to see.
var outcomes = [outcomeCount]struct {
	name, meaning string
	attention     bool
}{
	Created:   {"created", "the lead exists, with all that was asked for", false},
	Updated:   {"updated", "changed fields were sent and confirmed", false},
	Unchanged: {"unchanged", "the lead exists, there was nothing to send", false},
	Changed:   {"changed", "the row, or what the mapping makes of it, has changed; nothing was sent", true},
	Skipped:   {"skipped", "left out on purpose", false},
	Invalid:   {"invalid", "fails a check, was not sent", true},
	Rejected:  {"rejected", "the service refused it; sent again once its data change", true},
	Failed:    {"failed", "did not get through, will be sent again", true},
	Partial:   {"partial", "created, its ExternalID is not linked yet", true},
	InDoubt:   {"in_doubt", "nobody can tell if a lead was made", true},
	Unmatched: {"unmatched", "no lead is known for the row", true},
	Conflict:  {"conflict", "held for a person to decide", true},
	Pending:   {"pending", "was not sent before the run stopped", false}, // the next run sends it
}

// String is the name of the outcome in files.
func (o Outcome) String() string { return outcomes[o].name }

// OutcomeNamed returns the outcome of this name.
func OutcomeNamed(name string) (o Outcome, known bool) {
	for o := range outcomeCount {
		if o.String() == name {
			return o, true
		}
	}
	return 0, false
}

// Attention reports whether a person should look at the row. If so, the row is in the rejects.
func (o Outcome) Attention() bool { return outcomes[o].attention }

// RowCounts counts the rows of a run by outcome. At the end of the run, Read is their sum.
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

// Of returns the count of an outcome.
func (c *RowCounts) Of(o Outcome) *int {
	return [outcomeCount]*int{
		&c.Created, &c.Updated, &c.Unchanged, &c.Changed, &c.Skipped, &c.Invalid, &c.Rejected, &c.Failed, &c.Partial,
		&c.InDoubt, &c.Unmatched, &c.Conflict, &c.Pending,
	}[o]
}

// Ended returns how many rows have an outcome: at the end of the run, all that were read.
func (c *RowCounts) Ended() (n int) {
	for o := range outcomeCount {
		n += *c.Of(o)
	}
	return n
}

// ByName returns the counts by their JSON names, including read and zeros.
func (c *RowCounts) ByName() map[string]int {
	m := map[string]int{"read": c.Read}
	for o, is := range outcomes {
		m[is.name] = *c.Of(Outcome(o))
	}
	return m
}

// Outcomes lists all counts of rows, zeros too, in a fixed order. A reconciliation explains its verdicts instead.
func (s *Summary) Outcomes() (all []Line) {
	for o, is := range outcomes {
		all = append(all, Line{*s.Rows.Of(Outcome(o)), is.name, is.meaning, "", is.attention})
	}
	switch {
	case s.Reconciliation != nil:
		each(all, func(o *Line) { o.Text = "" })
	case s.DryRun:
		all[Pending].Text = "good"
	}
	return all
}

// Attention returns how many rows need attention. Pending rows do, unless nothing was to be sent.
func (s *Summary) Attention() (n int) {
	for o, is := range outcomes {
		if is.attention || Outcome(o) == Pending && !s.DryRun {
			n += *s.Rows.Of(Outcome(o))
		}
	}
	return n
}

// Attentions counts the rows that need attention. New are those that did not in the run before, or for another reason.
type Attentions struct {
	Rows  int       `json:"rows"`
	New   int       `json:"new"`
	Since time.Time `json:"since,omitzero"` // when the run before began; zero: no earlier run is known
}

// news says how many of the rows that need attention are new, or returns "" if no earlier run is known.
func (s *Summary) news() string {
	if s.Asks == nil || s.Asks.Since.IsZero() {
		return ""
	}
	return fmt.Sprintf(", %s of them new since %s or not settled", humanize.Comma(int64(s.Asks.New)),
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

// Sample is the result for a random sample of the leads. Read counts leads read in this run, and those known recently
// enough for --fresh. Share is the part of them that differs, 0 to 1. Low and High are its 95 % interval (Wilson).
type Sample struct {
	Picked int     `json:"picked"`
	Read   int     `json:"read"`
	Differ int     `json:"differ"`
	Share  float64 `json:"share"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
}

// NewSample returns the figures of a sample.
func NewSample(picked, read, differ int) *Sample {
	s := &Sample{Picked: picked, Read: read, Differ: differ, High: 1}
	if n := float64(read); read > 0 {
		const z = 1.959964
		s.Share = float64(differ) / n
		middle, width := s.Share+z*z/(2*n), z*math.Sqrt(s.Share*(1-s.Share)/n+z*z/(4*n*n))
		s.Low, s.High = max(0, (middle-width)/(1+z*z/n)), min(1, (middle+width)/(1+z*z/n))
	}
	return s
}

var verdictMeanings = map[string]string{
	"same": "file and service agree", "file_ahead": "the file has changed: a sync sends it",
	"service_ahead": "the service has changed",
	"both_changed":  "both have changed", "unread": "the lead was not read",
	"unmatched": "no lead is known for the row",
	"absent":    "known leads that no row names", "in_doubt": "nobody can tell if a lead was made",
}
