package report

import (
	"cmp"
	"slices"

	"leadferry/checkpoint"
)

// Reconciliation is what a reconciliation has found, in figures. Absent leads have no row.
type Reconciliation struct {
	Verdicts []VerdictCount `json:"verdicts"`
	Statuses []Transition   `json:"statuses"` // from the file's status to the service's
	Owners   []Transition   `json:"owners"`   // of leads that moved from one organization to another
	Sample   *Sample        `json:"sample,omitempty"`
	Rewrites bool           `json:"-"` // leads were read by an update of their ExternalID
	Path     string         `json:"-"` // of the file
}

// byLife puts moves between statuses into the order of a lead's life.
func byLife(of []Transition) []Transition {
	at := func(status string) int {
		i := slices.Index(checkpoint.Statuses[:], status)
		if i < 0 { // one that the specification does not name
			i = len(checkpoint.Statuses)
		}
		return i
	}
	return slices.SortedStableFunc(slices.Values(of), func(a, b Transition) int {
		return cmp.Or(cmp.Compare(at(a.From), at(b.From)), cmp.Compare(at(a.To), at(b.To)))
	})
}

func (r *Reconciliation) changedNothing() string {
	if r.Rewrites {
		return "No Status, Content or owner was changed; the ExternalID that was last confirmed was written again."
	}
	return "Nothing was changed on the service."
}

// absent is how many known leads no row names.
func (r *Reconciliation) absent() int {
	return sum(r.Verdicts, func(v VerdictCount) int {
		if v.Verdict == "absent" {
			return v.Leads
		}
		return 0
	})
}

// VerdictCount is how many rows, or absent leads, have a verdict.
type VerdictCount struct {
	Verdict string `json:"verdict"`
	Leads   int    `json:"leads"`
}

// Sample is what a random sample of the leads shows: the share of those that differ among the ones
// that were read, in this run or as lately as --fresh allows, from 0 to 1, and its 95 % interval
// (Wilson).
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
