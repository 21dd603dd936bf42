package report

import (
	"cmp"
	"iter"
	"slices"

	"github.com/gocarina/gocsv"

	"leadferry/checkpoint"
)

// Compared is one line of the reconciliation: a row beside its lead, or a lead that no row names,
// which has no File, Line and Row. Of content it names the keys that differ, never values.
type Compared struct {
	File             string `csv:"file"`
	Line             string `csv:"line"`
	Row              string `csv:"row"`
	Key              string `csv:"key"`
	LeadID           string `csv:"lead_id"`
	ExternalID       string `csv:"external_id"`
	ExternalService  string `csv:"external_id_service"`
	StatusFile       string `csv:"status_file"`
	StatusConfirmed  string `csv:"status_confirmed"`
	StatusService    string `csv:"status_service"`
	Verdict          string `csv:"verdict"`
	ChangedBy        string `csv:"changed_by"` // file, service, both or ""
	ConfirmedAt      string `csv:"confirmed_at"`
	ServiceUpdatedAt string `csv:"service_updated_at"`
	ContentKeys      string `csv:"content_keys"`
	OrganizationID   string `csv:"organization_id"`
	Error            string `csv:"error"`
}

// Reconciles reports whether a reconciliation is written.
func (r *Run) Reconciles() bool { return r.reconciliation != nil }

// Reconciliation writes lines of it, whose texts it makes fit to be shown.
func (r *Run) Reconciliation(batch []Compared) error {
	if r.err != nil || r.reconciliation == nil || len(batch) == 0 {
		return r.err
	}
	for i := range batch {
		l := &batch[i]
		for _, text := range []*string{
			&l.File, &l.Key, &l.LeadID, &l.ExternalID, &l.ExternalService, &l.StatusFile,
			&l.StatusConfirmed, &l.StatusService, &l.OrganizationID,
		} {
			*text = EscapeLine(*text)
		}
		l.ContentKeys, l.Error = Cell(l.ContentKeys), Cell(l.Error)
	}
	r.err = gocsv.MarshalCSVWithoutHeaders(batch, r.reconciliation.lines)
	return r.err
}

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

// Pulled is one line of the pull file: a lead whose status the CRM should take over, in the CRM's
// own word, or content, as its import reads it.
type Pulled struct {
	ExternalID     string `csv:"external_id"`
	Status         string `csv:"status"`
	LeadID         string `csv:"lead_id"`
	UpdatedAt      string `csv:"updated_at"`
	OrganizationID string `csv:"organization_id"`

	Content []string `csv:"-"` // people's data, in the order of the file's columns that take it over
}

// Pull writes the pull file as a whole, with these columns of the rows' own behind those that it always has; an error
// ends the lines. A run that does not call it, since it stopped before its end, leaves the file of an earlier one as
// it is.
func (r *Run) Pull(columns []string, lines iter.Seq2[Pulled, error]) error {
	if r.err != nil || r.pull == nil {
		return r.err
	}
	r.err = beginLines[Pulled](r.pull, false, columns)
	for l, err := range lines {
		for _, text := range []*string{&l.ExternalID, &l.Status, &l.LeadID, &l.OrganizationID} {
			*text = EscapeLine(*text)
		}
		if r.err = cmp.Or(r.err, err); r.err == nil {
			content := func(cells []string) []string { return append(cells, l.Content...) }
			r.err = gocsv.MarshalCSVWithoutHeaders([]Pulled{l}, widened{r.pull.lines, content})
			r.pulled++
		}
	}
	return r.err
}
