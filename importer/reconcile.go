package importer

import (
	"context"
	"errors"
	"strings"
	"time"

	"leadferry/checkpoint"
	"leadferry/importer/report"
	"leadferry/leadapi"
	"leadferry/mapping"
)

// Reconciling says which leads Reconcile reads.
type Reconciling struct {
	None   bool          // --remote none: no lead
	Fresh  time.Duration // none that was confirmed or read since; 0: all
	Sample int           // so many that are picked at random; 0: all
	Seed   uint64        // by which they are picked
}

// Reconcile compares, for each row, the file with what was last confirmed of its lead and with
// what the service holds now, and changes no lead's Status, Content or owner. What it saw is kept
// beside what was confirmed. It returns as Import does.
func Reconcile(ctx context.Context, o Options) (*report.Summary, error) {
	if o.Mapping.KeyFrom() == "row" && !o.Mapping.HasLeadID() {
		return nil, errNoIdentity
	}
	o.Require = true
	return newReconcile(o).carryOut(ctx)
}

func newReconcile(o Options) *run {
	p := &reconcilePlanner{reads: !o.Reconciling.None}
	if o.Reconciling.Fresh > 0 {
		p.since = time.Now().Add(-o.Reconciling.Fresh)
	}
	r := newRun(o, p)
	r.matches, r.intake.fields = true, true
	r.drift = newDrift(o.Reconciling.Seed)
	return r
}

// Verdict says how a row, its lead as last confirmed, and its lead on the service stand to one
// another.
type Verdict uint8

// The verdicts; NoVerdict is one of rows that were not compared, such as invalid ones.
const (
	NoVerdict Verdict = iota
	Same
	FileAhead    // the service is as last confirmed, the file is not
	ServiceAhead // the other way round
	BothChanged
	Unread   // its lead cannot be read, could not, or was not to be
	NoLead   // none is known
	Absent   // a lead that no row names
	Doubtful // nobody can tell whether its lead was made
	verdictCount
)

// String is the verdict's name in files.
func (v Verdict) String() string {
	return [verdictCount]string{"", "same", "file_ahead", "service_ahead", "both_changed", "unread", "unmatched", "absent", "in_doubt"}[v]
}

// comparison is what came of comparing a row.
type comparison struct {
	verdict   Verdict
	changedBy string    // file, service, both or ""
	service   string    // the status that the service shows, or was seen to show
	changed   time.Time // when the service last changed the lead, as it says; or zero
	keys      string    // the names of the content keys that differ
	owner     string    // to which the lead belongs now
	sampled   bool      // the lead is one of a sample, and was read in this run or, with Fresh, not long before
}

// reconcilePlanner has leads read, or judges by what was seen of them before.
type reconcilePlanner struct {
	reads   bool
	since   time.Time           // leads known since are not read; zero: all are
	sampled map[string]struct{} // keys of those that are read; nil: all
}

func (p *reconcilePlanner) Plan(c *Case) Step {
	rec, known := c.Record, c.Known
	none := func(o Outcome, v Verdict, reason string) Step {
		return Step{Outcome: o, Reason: reason, Found: comparison{verdict: v}}
	}
	switch {
	case c.Found == checkpoint.Ambiguous:
		return none(Conflict, NoLead, namesTwo)
	case known.State == checkpoint.Forgotten:
		return forgotten()
	case known.State == checkpoint.InDoubt:
		held := heldBack(known)
		held.Found.verdict = Doubtful
		return held
	case c.Found == checkpoint.NoMatch:
		return none(Unmatched, NoLead, "no lead is known for the row")
	case known.LeadID == "":
		return none(Unmatched, NoLead, "the lead exists, but its ID is not known")
	case rec.LeadID != "" && known.LeadID != rec.LeadID:
		return none(Conflict, NoLead, namesAnother)
	}
	step := Step{Send: c.changes()}
	step.Found.keys = keysOf(rec, &step.Send)
	before := beforeOf(known)
	kept := before.status
	if before.seen.Status != "" {
		kept = before.seen.Status
	}
	_, chosen := p.sampled[known.Key]
	switch {
	case !p.reads, !p.since.IsZero() && shown(known) && whenKnown(known).After(p.since):
		step = step.judged(rec.Status, &before, kept)
		step.Found.owner, step.Found.sampled = before.seen.Organization, chosen
		return step
	case p.sampled != nil && !chosen:
		return none(Skipped, Unread, "its lead is not in the sample")
	case known.ExternalID == "":
		return none(Unmatched, Unread, "its lead cannot be read: no ExternalID of it is known")
	}
	step.Action, step.Found.sampled = Read, chosen
	return step
}

// shown reports whether the service itself has shown what a lead holds: of one that was taken over
// from a list, nobody but the list has.
func shown(known *checkpoint.Entry) bool {
	return known.Seen.Status != "" || known.Digest != checkpoint.Digest{} || known.Synced || len(known.Content) > 0
}

const (
	namesTwo     = "the row names two leads: its key, lead ID and ExternalID do not belong to one"
	namesAnother = "the row names another lead than the one that is known by its key"
)

// keysOf names the content keys that differ; values are people's data.
func keysOf(rec *mapping.Record, send *Changes) string {
	var names []string
	for _, i := range send.Fields {
		names = append(names, rec.Content[i].Name)
	}
	return strings.Join(names, ", ")
}

// judged completes the step of a row by the status that the service shows.
func (s Step) judged(file string, before *leadBefore, service string) Step {
	byFile, byService := before.changedBy(file, service)
	content := s.Send.ExternalID || len(s.Send.Fields) > 0
	f := &s.Found
	f.service, s.Outcome = service, Conflict
	switch byFile = byFile || content; {
	case byFile && byService:
		f.verdict, f.changedBy, s.Reason = BothChanged, "both", before.changedElsewhere(service)
	case byService:
		f.verdict, f.changedBy, s.Reason = ServiceAhead, "service", before.changedElsewhere(service)
	case byFile:
		f.verdict, f.changedBy, s.Reason = FileAhead, "file", "the file has changed since"
	default:
		f.verdict, s.Outcome = Same, Unchanged
	}
	if s.Send.ExternalID {
		s.Reason += "; its ExternalID is not the one that is linked"
	}
	s.Kind = verdictKinds[f.verdict]
	return s
}

// verdictKinds are the reasons without what differs from row to row.
var verdictKinds = map[Verdict]string{
	FileAhead: "the file has changed since: a sync sends it", ServiceAhead: "the lead's status was changed on the service", BothChanged: "both sides have changed",
}

// reconcile reads a lead and compares it with its row. Nothing but what was seen is kept.
func (c *carrier) reconcile(ctx context.Context, j *job) {
	j.leadBefore = beforeOf(&j.entry)
	j.found = j.step.Found
	lead, err := c.readLead(ctx, j)
	if err != nil {
		j.found.verdict = Unread
		c.notRead(j, err)
		return
	}
	j.entry.Seen = j.leadBefore.sight(lead)
	step := j.step.judged(j.it.rec.Status, &j.leadBefore, lead.Status)
	step.Found.changed, step.Found.owner = lead.UpdatedAt, lead.OwnerID
	j.found, j.text, j.kind = step.Found, step.Reason, step.Kind
	j.noteOwner(lead)
	c.release(j, step.Outcome)
	if j.outcome != step.Outcome {
		j.found.verdict = Unread
	}
}

// notRead ends a row whose lead was not shown.
func (c *carrier) notRead(j *job, err error) {
	stop, stops := stopOf(err)
	var ae *leadapi.Error
	switch {
	case stops:
		c.stopRun(j, stop)
		j.outcome, j.found.verdict = Pending, NoVerdict
	case errors.As(err, &ae):
		j.entry.Code = ae.Status
		j.refuse("its lead could not be read: %s", ae)
		j.outcome = Failed
	default:
		j.outcome, j.text = Failed, "its lead could not be read: "+err.Error()
	}
}
