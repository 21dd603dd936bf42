package importer

import (
	"cmp"
	"fmt"

	"github.com/dustin/go-humanize/english"

	"leadferry/checkpoint"
	"leadferry/importer/findings"
	"leadferry/importer/report"
)

// Bounds of what the tally keeps apart, so that memory does not grow with the input.
const (
	maxReasons       = 1000
	maxOrganizations = 10000
	maxDoubts        = 200
)

// doubt is a row in doubt with what the checkpoint knows of it.
type doubt struct {
	at    findings.Spot
	entry checkpoint.Entry
}

// tally counts a run. The scheduler alone writes it.
type tally struct {
	limits Limits
	counts checkpoint.Counts // what limits are about

	rows     []int // read, by input
	dropped  int   // values that on_invalid left out
	outcomes [outcomeCount]int
	known    int // rows for which nothing was sent
	held     int // rows in doubt that an incomplete checkpoint holds
	service  report.InService
	news     int // rows that need attention and did not in the run before, except pending ones

	reasons       *findings.Kinds[reason]
	organizations map[report.Organization]int
	moves         map[report.Transition]int // leads by the change of status that a run confirmed
	doubts        []doubt                   // the first ones
	remarks       [remarkCount]int

	creates creates
	refused refusals
	common  [outcomeCount]int   // of a fleet: outcomes, with what workers before this one did in their runs
	fellows map[string]struct{} // these runs; nil: there is no fleet
}

// creates are those of the run, for --max-creates.
type creates struct {
	begun  int  // leads made or perhaps being made
	made   int  // leads made or perhaps made
	enough bool // the fleet may make no more
}

// refusals are of the rows sent so far, as long as all were refused.
type refusals struct {
	enough int // so many show that something is wrong with every row
	status int // by which all were refused; -1: not all, or by several
}

// reason is why rows ended as they did.
type reason struct {
	outcome Outcome
	text    string
}

func keepReason(r reason, full bool) reason {
	if full {
		r.text = "other reasons"
	}
	return r
}

func newTally(inputs int, l Limits, slots int) *tally {
	return &tally{
		limits: l, refused: refusals{enough: slots}, rows: make([]int, inputs),
		reasons: findings.NewKinds(maxReasons, keepReason), organizations: map[report.Organization]int{},
		moves: map[report.Transition]int{},
	}
}

func (t *tally) read(it *item) {
	t.rows[it.input]++
	t.counts.Read++
	if it.fault == nil {
		t.dropped += len(it.rec.Dropped)
	}
}

// ended is how many rows have an outcome.
func (t *tally) ended() (n int) {
	for _, rows := range t.outcomes {
		n += rows
	}
	return n
}

// created gives back a create's share of --max-creates where no lead can have come of it.
func (t *tally) created(r *result, elsewhere bool) {
	switch {
	case r.outcome == Created, r.outcome == Partial, r.outcome == InDoubt && !elsewhere:
		t.creates.made++
	default:
		t.creates.begun--
	}
}

// count adds a row and says whether a limit ends the run.
func (t *tally) count(it *item, r *result) *Stop {
	t.outcomes[r.outcome]++
	if t.fellows != nil {
		t.common[t.first(r)]++
	}
	if r.text != "" {
		t.reasons.Add(spotOf(it), reason{r.outcome, cmp.Or(r.kind, r.text)})
	}
	if it.fault != nil {
		t.counts.Invalid++
	}
	if r.outcome == InDoubt {
		t.doubt(it, r)
	}
	t.inService(r)
	if r.attempts == 0 {
		t.known++
	} else {
		t.sent(r)
	}
	if m := &r.moved; m.from != m.to {
		t.moves[report.Transition{From: m.from, To: m.to}]++
	}
	r.remarks[notReadable], r.remarks[serviceKept] = r.unread, r.kept
	for i, is := range r.remarks {
		if is {
			t.remarks[i]++
		}
	}
	return t.limit()
}

// inService counts whether a row has a lead now.
func (t *tally) inService(r *result) {
	one := report.InService{Of: 1}
	switch {
	case r.outcome == Skipped:
		return
	case r.outcome == InDoubt || r.entry.State == checkpoint.InDoubt:
		one.InDoubt = 1
	case r.entry.State.HasLead():
		one.Rows = 1
	default:
		one.None = 1
	}
	t.service.Add(&one)
}

// doubt keeps the first rows in doubt, and counts those that were not sent for an incomplete checkpoint.
func (t *tally) doubt(it *item, r *result) {
	if r.entry.Reason == checkpoint.ReasonIncomplete || r.text == doubtReason(checkpoint.ReasonIncomplete, 0) {
		t.held++
	}
	if len(t.doubts) < maxDoubts {
		t.doubts = append(t.doubts, doubt{spotOf(it), r.entry})
	}
}

// sent counts a row whose request was sent.
func (t *tally) sent(r *result) {
	t.counts.Sent++
	t.refused.count(r)
	switch r.outcome {
	case InDoubt:
		t.counts.Doubts++
	case Rejected, Failed:
		t.counts.Refused++
	case Created, Partial:
		if e := &r.entry; e.Organization != "" {
			countUp(t.organizations, maxOrganizations, report.Organization{ID: e.Organization, Location: e.Location},
				report.Organization{ID: "others"})
		}
	}
}

// share makes the tally that of a worker in a place where others were before, in these runs. The ledger counts the
// leads that all make.
func (t *tally) share(runs []string) {
	t.limits.MaxCreates, t.fellows = 0, map[string]struct{}{}
	for _, run := range runs {
		t.fellows[run] = struct{}{}
	}
}

// first is how a row ended for the first worker of its shard that took it to its end.
func (t *tally) first(r *result) Outcome {
	if _, fellow := t.fellows[r.entry.Run]; !fellow || r.outcome != Unchanged {
		return r.outcome
	}
	if r.entry.Synced {
		return Updated
	}
	return Created
}

// countUp counts one more of a kind, or of the others once so many kinds are told apart as there may be.
func countUp[K comparable](kinds map[K]int, most int, kind, others K) {
	if _, known := kinds[kind]; !known && len(kinds) >= most {
		kind = others
	}
	kinds[kind]++
}

func (f *refusals) count(r *result) {
	if r.outcome == Rejected && (f.status == 0 || f.status == r.entry.Code) {
		f.status = r.entry.Code
	} else {
		f.status = -1
	}
}

// makeUp counts the row at which the program itself failed: it was not sent.
func (t *tally) makeUp() {
	missing := t.counts.Read - t.ended()
	t.outcomes[Pending] += missing
	t.common[Pending] += missing
}

// attention is how many rows want a person's eye.
func (t *tally) attention(dry bool) int {
	return (&report.Summary{Rows: rowCounts(t.counts.Read, &t.outcomes), DryRun: dry}).Attention()
}

func rowCounts(read int, n *[outcomeCount]int) report.RowCounts {
	return report.RowCounts{
		Read: read, Created: n[Created], Updated: n[Updated], Unchanged: n[Unchanged], Changed: n[Changed],
		Skipped: n[Skipped], Invalid: n[Invalid], Rejected: n[Rejected], Failed: n[Failed], Partial: n[Partial],
		InDoubt: n[InDoubt], Unmatched: n[Unmatched], Conflict: n[Conflict], Pending: n[Pending],
	}
}

// report puts what was counted into the run's figures.
func (t *tally) report(s *report.Summary, at func(findings.Spot) report.Place) {
	s.Rows = rowCounts(t.counts.Read, &t.outcomes)
	s.Organizations, s.Transitions = report.Organizations(t.organizations), report.Transitions(t.moves)
	for _, r := range t.reasons.List(func(r reason) string { return r.text }) {
		s.Errors = append(s.Errors, report.Reason{
			Outcome: r.Of.outcome.String(), Error: r.Of.text, Rows: r.Count,
			Examples: r.Places(at),
		})
	}
	// What a person needs to look rows in doubt up. Two rows of one key are one.
	for _, d := range t.doubts {
		s.InDoubt = append(s.InDoubt, report.Doubt{
			Place: at(d.at), SentAt: d.entry.Updated, OrganizationID: AskedFor(&d.entry), Reason: Explain(&d.entry),
			RequestID: d.entry.RequestID,
		})
	}
}

const whyHeld = ": the checkpoint is incomplete, and their leads may exist. `leadferry checkpoint resolve` settles " +
	"them one by one; results of earlier runs may know their lead IDs. `leadferry checkpoint check --accept-loss` " +
	"gives up what is missing, so that they are sent."

// notes are remarks for people: on rows that were held, and on what others did to the leads
// that the run changed.
func (t *tally) notes() (notes []string) {
	if t.held > 0 {
		notes = append(notes, english.Plural(t.held, "row was", "rows were")+" held, not sent"+whyHeld)
	}
	for i, leads := range t.remarks {
		if leads > 0 {
			notes = append(notes, fmt.Sprintf(remarkNotes[i], leads))
		}
	}
	return notes
}

// mayLeave reports whether a row may be handed to a carrier while so many are under way; why is set where that ends
// the run.
func (t *tally) mayLeave(a Action, underWay int) (may bool, why *Stop) {
	switch most := t.limits.MaxCreates; {
	case a.sends() && t.onTrial(underWay):
		return false, nil
	case a != Create:
		return true, nil
	case t.limits.doubts(0):
		return false, t.limits.tooMany()
	case t.creates.enough && underWay == 0: // what was claimed has been sent
		return false, ledgerFailed(checkpoint.ErrEnough)
	case t.creates.enough:
		return false, nil
	case most > 0 && t.creates.made >= most:
		return false, &Stop{Reason: "as many leads as --max-creates allows have been made", Code: CodeStopped}
	default: // those under way may use it up
		return most == 0 || t.creates.begun < most, nil
	}
}

// onTrial holds rows back, while some are under way, until one was not refused like all
// before it: no more are sent than show that something is wrong with every row.
func (t *tally) onTrial(underWay int) bool {
	return t.noneAccepted() && underWay > 0 && t.counts.Sent+underWay >= t.refused.enough
}

// noneAccepted reports whether every row sent so far, if any, was refused with one status,
// where --max-rejects asks to look at that.
func (t *tally) noneAccepted() bool {
	return !t.limits.MaxRejects.none() && (t.refused.status > 0 || t.counts.Sent == 0)
}

// limit returns why the run must end, or nil. Those of a fleet are judged by what all its workers did.
func (t *tally) limit() *Stop {
	if t.fellows == nil {
		if stop := t.limits.reached(&t.counts); stop != nil {
			return stop
		}
	}
	if t.noneAccepted() && t.counts.Sent >= max(t.refused.enough, 1) {
		return &Stop{
			Code: CodeStopped, Reason: fmt.Sprintf("the first %d rows sent were all refused with HTTP %d",
				t.counts.Sent, t.refused.status),
			Hint: "see the service's words: check the account's rights, the trunk ID and the addresses, and what all " +
				"rows send alike; then send them again with --retry-rejected. --max-rejects 0 turns this limit off",
		}
	}
	return nil
}
