package importer

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"leadferry/importer/report"
)

// summary is the run's figures as INTERFACE fixes them.
func (e *engine) summary(started time.Time) *report.Summary {
	now := time.Now()
	took := now.Sub(started)
	s := &report.Summary{
		RunID: e.RunID, Command: e.Command, Version: e.Version, DryRun: e.DryRun || e.ledger == nil,
		StartedAt: started.UTC(), FinishedAt: now.UTC(), DurationS: took.Seconds(),
		Flags:   e.Flags,
		Mapping: report.File{Path: e.MappingFile.Path, SHA256: e.MappingFile.SHA256},
	}
	s.Outcome, s.StopReason, s.ExitCode = e.verdict()
	if e.stopped != nil {
		s.Hint, s.Same = e.stopped.Hint, e.stopped.Same
	}
	if o := e.opened; o != nil && o.Checkpoint != "" {
		s.Checkpoint = report.Checkpoint{
			Path: o.Checkpoint, ID: e.db.Info().ID, Sequence: e.db.Info().Sequence, New: o.New, Leads: o.Leads,
		}
	}
	s.Target = report.Target{BaseURL: e.Target.BaseURL, LeadsURL: e.Target.LeadsURL, TrunkID: e.Target.TrunkID}
	for i, f := range e.Inputs {
		in := f.Info()
		s.Inputs = append(s.Inputs, report.Input{
			Path: in.Path, Format: in.Format, Bytes: in.Bytes, Rows: e.tally.rows[i], Blank: in.Blank, SHA256: in.SHA256, Changed: in.Changed,
		})
	}
	s.Rows = e.counts()
	if took > 0 {
		s.ThroughputRowsPerS = float64(e.tally.total) / took.Seconds()
	}
	if h := e.rehearsal; h != nil && h.repeats != nil {
		h.repeated = h.repeats.found(mostRepeats)
	}
	s.Notes = e.notes()
	if e.rehearsal != nil {
		s.Checks = e.preview(s.Notes)
	}
	e.requests(s)
	e.places(s)
	e.transitions(s)
	e.errors(s)
	e.doubts(s)
	return s
}

// verdict is how the run as a whole ended, with its exit code: the first that
// applies of interrupted, stopped, in doubt, attention.
func (e *engine) verdict() (outcome, reason string, code int) {
	outcome, code = "complete", CodeComplete
	if e.tally.attention(e.sender == nil) > 0 || e.rehearsal != nil && e.rehearsal.fails(e.rows) {
		outcome, code = "attention", CodeAttention
	}
	if e.tally.outcomes[InDoubt] > 0 {
		code = CodeInDoubt
	}
	s := e.stopped
	switch {
	case s == nil:
		return outcome, "", code
	case s.Code == CodeInterrupted:
		return "interrupted", s.Reason, s.Code
	case s.Code == CodeStopped, s.Code == CodeCheckpoint: // both go before a row in doubt
		code = s.Code
	default:
		code = max(code, s.Code)
	}
	return "stopped", s.Reason, code
}

func (e *engine) counts() report.RowCounts {
	n := e.tally.outcomes
	return report.RowCounts{
		Read: e.tally.total, Created: n[Created], Updated: n[Updated], Unchanged: n[Unchanged], Changed: n[Changed],
		Skipped: n[Skipped], Invalid: n[Invalid], Rejected: n[Rejected], Failed: n[Failed], Partial: n[Partial],
		InDoubt: n[InDoubt], Unmatched: n[Unmatched], Conflict: n[Conflict], Pending: n[Pending],
	}
}

func (e *engine) requests(s *report.Summary) {
	m := e.meter
	m.mu.Lock()
	defer m.mu.Unlock()
	s.Requests = report.Requests{
		Create: m.kinds["create"], Update: m.kinds["update"], Token: m.kinds["token"], Retries: m.retries,
		ByStatus: map[string]int{},
	}
	for status, n := range m.statuses {
		s.Requests.ByStatus[strconv.Itoa(status)] = n
	}
	s.LatencyMs = report.Latency{P50: m.percentile(0.5), P90: m.percentile(0.9), P95: m.percentile(0.95), P99: m.percentile(0.99), Max: millis(m.longest)}
	s.PeakInFlight = m.peak
}

func (e *engine) places(s *report.Summary) {
	for p, n := range e.tally.places {
		s.Organizations = append(s.Organizations, report.Organization{ID: p.organization, Location: p.location, Leads: n})
	}
	slices.SortFunc(s.Organizations, func(a, b report.Organization) int {
		return cmp.Or(cmp.Compare(b.Leads, a.Leads), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Location, b.Location))
	})
}

func (e *engine) transitions(s *report.Summary) {
	for m, n := range e.tally.moves {
		s.Transitions = append(s.Transitions, report.Transition{From: m.from, To: m.to, Leads: n})
	}
	slices.SortFunc(s.Transitions, func(a, b report.Transition) int {
		return cmp.Or(cmp.Compare(b.Leads, a.Leads), cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To))
	})
}

func (e *engine) errors(s *report.Summary) {
	for _, r := range e.tally.frequent() {
		reason := report.Reason{Outcome: r.outcome.String(), Error: r.text, Rows: r.rows}
		for _, at := range r.places {
			reason.Examples = append(reason.Examples, e.place(at))
		}
		s.Errors = append(s.Errors, reason)
	}
}

// doubts are what a person needs to look rows in doubt up. Two rows of one key are one.
func (e *engine) doubts(s *report.Summary) {
	for i := range e.tally.doubts {
		d := &e.tally.doubts[i]
		s.InDoubt = append(s.InDoubt, report.Doubt{
			Place: e.place(d.at), SentAt: d.entry.Updated, OrganizationID: AskedFor(&d.entry), Reason: Explain(&d.entry),
		})
	}
}
